// Arithmetic of the heat map: cells, colour classes and percentiles.
import type { HeatMap, SlowExchange } from "../types/report";

/** Commands that started in an interval and took a time between two edges. */
export interface Cell {
  /** Interval, in nanoseconds from the origin. */
  from: number;
  to: number;
  /** Range of response times. */
  low: number;
  high: number;
  count: number;
}

/** Returns the range of response times. The first bucket, from 0, is drawn as wide as the second. */
export function latencyRange(map: HeatMap): [number, number] {
  let lowest = Number.POSITIVE_INFINITY;
  let highest = -1;
  for (const bin of map.bins) {
    for (const [bucket] of bin.counts) {
      lowest = Math.min(lowest, bucket);
      highest = Math.max(highest, bucket);
    }
  }
  return highest < 0 ? [1e3, 1e9] : [bucketLow(map, lowest), bucketHigh(map, highest)];
}

export function bucketLow(map: HeatMap, bucket: number): number {
  const edge = map.edges_ns[bucket] ?? 0;
  return edge > 0 ? edge : (map.edges_ns[1] ?? 1e3) ** 2 / (map.edges_ns[2] ?? 1e4);
}

export function bucketHigh(map: HeatMap, bucket: number): number {
  const next = map.edges_ns[bucket + 1];
  return next ?? bucketLow(map, bucket) ** 2 / bucketLow(map, bucket - 1);
}

/** Returns the cells, merging `across` intervals and `up` buckets into one. */
export function cells(map: HeatMap, origin: number, across: number, up: number): Cell[] {
  const found = new Map<string, Cell>();
  for (const bin of map.bins) {
    // Rounded, as a double holds points in time to 256 ns only.
    const interval = Math.floor(Math.round((bin.start_ns - origin) / map.width_ns) / across);
    for (const [bucket, count] of bin.counts) {
      const row = Math.floor(bucket / up);
      const key = `${interval} ${row}`;
      const cell = found.get(key);
      if (cell) {
        cell.count += count;
      } else {
        found.set(key, {
          from: interval * across * map.width_ns,
          to: (interval + 1) * across * map.width_ns,
          low: bucketLow(map, row * up),
          high: bucketHigh(map, Math.min(row * up + up - 1, map.edges_ns.length - 1)),
          count,
        });
      }
    }
  }
  return [...found.values()];
}

/** Returns the lower bounds of at most `most` classes of counts, which widen by a constant factor. */
export function classes(highest: number, most: number): number[] {
  if (highest <= most) return Array.from({ length: Math.max(1, highest) }, (_, i) => i + 1);
  const factor = highest ** (1 / most);
  const bounds = new Set([1]);
  for (let i = 1; i < most; i += 1) bounds.add(Math.max(Math.ceil(factor ** i), [...bounds].length + 1));
  return [...bounds];
}

export function classOf(bounds: readonly number[], count: number): number {
  return bounds.findLastIndex((bound) => bound <= count);
}

/** Command that is drawn as a point over the heat map. */
export type SlowPoint = Pick<SlowExchange, "response_time_ns">;

/** Minimum number of points, for captures with few commands. */
const POINTS_MIN = 10;

/** Returns the slowest 1% of commands, at least ten, as far as the document lists them. */
export function outliers<Point extends SlowPoint>(map: HeatMap, slowest: readonly Point[]): Point[] {
  const total = map.bins.reduce((sum, { counts }) => counts.reduce((all, [, count]) => all + count, sum), 0);
  const sorted = [...slowest].sort((a, b) => b.response_time_ns - a.response_time_ns);
  return sorted.slice(0, Math.max(POINTS_MIN, Math.ceil(total / 100)));
}

/** Estimates a quantile of response times as the geometric mean of its bucket. */
export function quantile(map: HeatMap, counts: readonly (readonly [number, number])[], share: number): number | null {
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  let passed = 0;
  for (const [bucket, count] of counts) {
    passed += count;
    if (passed >= share * total) return Math.sqrt(bucketLow(map, bucket) * bucketHigh(map, bucket));
  }
  return null;
}

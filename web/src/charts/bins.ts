// The arithmetic of the heat map: its cells, the classes of their colour, and what an interval says.
import type { HeatMap } from "../types/report";

/** Commands that began in an interval and took a time between two edges. */
export interface Cell {
  /** Of the time line, in nanoseconds from the origin. */
  from: number;
  to: number;
  /** Of the response time. */
  low: number;
  high: number;
  count: number;
}

/** Response times that the heat map spans; its first bucket, from 0, is drawn as wide as its second. */
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

/** The cells, `across` intervals and `up` buckets put together in one. */
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

/** The lower bounds of at most `most` classes of counts, each wider than the one before by the same factor. */
export function classes(highest: number, most: number): number[] {
  if (highest <= most) return Array.from({ length: Math.max(1, highest) }, (_, i) => i + 1);
  const factor = highest ** (1 / most);
  const bounds = new Set([1]);
  for (let i = 1; i < most; i += 1) bounds.add(Math.max(Math.ceil(factor ** i), [...bounds].length + 1));
  return [...bounds];
}

/** The class of a count. */
export function classOf(bounds: readonly number[], count: number): number {
  return bounds.findLastIndex((bound) => bound <= count);
}

/** Where a share of an interval's commands was answered, as well as its buckets tell: the middle of the bucket. */
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

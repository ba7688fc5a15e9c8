import { describe, expect, it } from "vitest";
import { spaced } from "../../src/bench/charts";
import { logTicks, timeText, timeTicks } from "../../src/charts/axes";
import {
  bucketHigh,
  bucketLow,
  cells,
  classes,
  classOf,
  latencyRange,
  outliers,
  quantile,
} from "../../src/charts/bins";
import { factorDomain, factorText, ratioTicks, verdictText, wrapped } from "../../src/charts/factors";
import { PAPER_HEIGHT, pageEnds } from "../../src/charts/figure";
import { valueAt } from "../../src/charts/lines";
import { FIGURES, groupStroke, seriesStroke } from "../../src/charts/palette";
import { splitShares, waitedTime } from "../../src/charts/split";
import { lanes, rows } from "../../src/charts/waterfall";
import { levelOf, loadLevels } from "../../src/report/groups";
import { keyText } from "../../src/report/slices";
import { wiresharkFilter } from "../../src/report/slowest";
import type { HeatMap, SlowExchange, TimeSplit } from "../../src/types/report";

describe("response time under load", () => {
  const level = (outstanding_from: number, commands = 20) => ({
    outstanding_from,
    outstanding_to: outstanding_from * Math.SQRT2,
    time_ns: 1,
    commands,
    request_bytes: 0,
    response_bytes: 0,
    response_time: { mean: 1, p50: 1, p95: 1 },
  });

  it("is not drawn for commands one after the other, whose response time makes the load", () => {
    expect(loadLevels([level(0.25), level(0.5), level(1)])).toEqual([]);
  });

  it("leaves out levels with few commands", () => {
    const kept = [level(0.5), level(1), level(2)];
    expect(loadLevels([level(0.25, 19), ...kept, level(4, 3)])).toEqual(kept);
    expect(loadLevels([level(0.5, 19), level(1), level(2)])).toEqual([]);
  });
});

const bin = (start_ns: number, counts: [number, number][]) => ({
  start_ns,
  outstanding_ns: 0,
  request_bytes: 0,
  response_bytes: 0,
  counts,
});
const map: HeatMap = {
  width_ns: 100,
  edges_ns: [0, 1_000, 10_000, 100_000],
  bins: [
    bin(5_000, [
      [0, 2],
      [2, 1],
    ]),
    bin(5_100, [[2, 4]]),
    bin(5_400, [[3, 1]]),
  ],
};

describe("the heat map", () => {
  it("draws the bucket from zero as wide as its neighbour, and the endless one as wide as the last", () => {
    expect([bucketLow(map, 0), bucketHigh(map, 0), bucketLow(map, 3), bucketHigh(map, 3)]).toEqual([
      100, 1_000, 100_000, 1_000_000,
    ]);
    expect(latencyRange(map)).toEqual([100, 1_000_000]);
    expect(latencyRange({ ...map, bins: [] })).toEqual([1_000, 1_000_000_000]);
  });

  it("has a cell for each pair of interval and bucket", () => {
    expect(cells(map, 5_000, 1, 1).map(({ from, to, low, count }) => [from, to, low, count])).toEqual([
      [0, 100, 100, 2],
      [0, 100, 10_000, 1],
      [100, 200, 10_000, 4],
      [400, 500, 100_000, 1],
    ]);
  });

  it("adds up the counts of cells that are put together", () => {
    // Two intervals and two buckets in one: 2 alone, 1 + 4 together, 1 alone.
    expect(cells(map, 5_000, 2, 2).map(({ from, low, high, count }) => [from, low, high, count])).toEqual([
      [0, 100, 10_000, 2],
      [0, 10_000, 1_000_000, 5],
      [400, 10_000, 1_000_000, 1],
    ]);
  });

  it("finds intervals whose points in time a double cannot hold", () => {
    // At 1.7e18 doubles are 256 apart; the second interval is given as 1 ms later, rounded down.
    const origin = 1_763_757_000_000_000_000;
    const far = {
      ...map,
      width_ns: 1_000_000,
      bins: [bin(origin, [[0, 1]]), bin(origin + 1_000_000 - 256, [[0, 1]]), bin(origin + 2_000_000 + 256, [[0, 1]])],
    };
    expect(cells(far, origin, 1, 1).map((cell) => cell.from)).toEqual([0, 1_000_000, 2_000_000]);
  });

  it("divides counts into classes that all occur", () => {
    expect(classes(1, 7)).toEqual([1]);
    expect(classes(5, 7)).toEqual([1, 2, 3, 4, 5]);
    // 128 is 2 to the 7th: each class is twice as wide as the one before.
    expect(classes(128, 7)).toEqual([1, 2, 4, 8, 16, 32, 64]);
    for (let highest = 1; highest < 500; highest += 1) {
      const bounds = classes(highest, 7);
      expect(bounds.length).toBe(Math.min(7, highest));
      expect(bounds.every((bound, i) => i === 0 || bound > (bounds[i - 1] ?? 0))).toBe(true);
      expect(bounds.at(-1)).toBeLessThanOrEqual(highest);
    }
    expect([1, 3, 4, 64, 9_999].map((count) => classOf([1, 2, 4, 8, 16, 32, 64], count))).toEqual([0, 1, 2, 6, 6]);
  });

  it("has a point for the slowest 1% of commands, and for at least ten", () => {
    const slow = Array.from({ length: 40 }, (_, i) => ({
      request_first_ns: 5_000,
      response_time_ns: i,
      command: "READ",
      path: null,
    }));
    const times = (found: HeatMap) => outliers(found, slow).map(({ response_time_ns }) => response_time_ns);
    expect(times(map)).toEqual([39, 38, 37, 36, 35, 34, 33, 32, 31, 30]);
    // 1% of 2,001 commands is 20.01.
    expect(times({ ...map, bins: [bin(5_000, [[0, 2_001]])] }).length).toBe(21);
    expect(times({ ...map, bins: [bin(5_000, [[0, 90_000]])] }).length).toBe(40);
  });

  it("tells the median of an interval as the middle of its bucket", () => {
    // 2 of 3 are in the first bucket, from 100 to 1,000: its middle by factors is 316.
    expect(quantile(map, map.bins[0]?.counts ?? [], 0.5)).toBeCloseTo(316.2, 1);
    expect(quantile(map, map.bins[0]?.counts ?? [], 1)).toBeCloseTo(31_622.8, 0);
    expect(quantile(map, [], 0.5)).toBeNull();
  });
});

describe("axes", () => {
  it("have ticks at decades, and within them if there is room", () => {
    expect(logTicks(1_000, 100_000, 10)).toEqual([1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000]);
    expect(logTicks(1_000, 100_000, 5)).toEqual([1_000, 3_000, 10_000, 30_000, 100_000]);
    expect(logTicks(1_000, 100_000, 3)).toEqual([1_000, 10_000, 100_000]);
    expect(logTicks(1, 1e9, 5)).toEqual([1, 100, 1e4, 1e6, 1e8]);
  });

  it("mark round times of the day and not times since the beginning", () => {
    // The origin is 3 s past a full 10 s.
    const origin = 1_000_003e9;
    const ticks = timeTicks(0, 40e9, origin, 5);
    expect(ticks.map((tick) => ((origin + tick) / 1e9) % 10)).toEqual([0, 0, 0, 0]);
    expect(timeText(7e9, 0, [7e9, 17e9])).toBe("00:00:07");
    expect(timeText(7.25e9, 0, [7e9, 7.25e9])).toBe("00:00:07.2");
    expect(timeText(3_600e9, 0, [0, 3_600e9])).toBe("01:00:00");
  });

  it("never have the same text twice, nor one that could be minutes as well as hours", () => {
    const origin = 1_763_800_000_000_000_000;
    for (let span = 8e6; span < 4e16; span *= 1.7) {
      const ticks = timeTicks(0, span, origin, 9);
      const texts = ticks.map((tick) => timeText(tick, origin, ticks));
      expect(new Set(texts).size, texts.join()).toBe(texts.length);
      for (const text of texts) expect(text).toMatch(/^(\d\d:\d\d:\d\d(\.\d+)?|\d\d-\d\d \d\d:\d\d|\d{4}-\d\d-\d\d)$/);
    }
  });

  it("of ratios are the same factors up and down", () => {
    for (const widest of [1.2, 2.2, 5, 30, 5_000]) {
      const ticks = ratioTicks(1 / widest, widest, 9);
      expect(ticks).toContain(1);
      expect(
        ticks
          .map((tick) => 1 / tick)
          .reverse()
          .map((tick) => tick.toFixed(6)),
      ).toEqual(ticks.map((tick) => tick.toFixed(6)));
      expect(ticks.length).toBeLessThanOrEqual(9);
    }
  });

  it("of factors cover all factors and include 1", () => {
    expect(ratioTicks(0.9, 600, 9)).toEqual([1, 2, 5, 10, 20, 50, 100, 200, 500]);
    expect(ratioTicks(0.9, 600, 6)).toEqual([1, 10, 100]);
    expect(ratioTicks(0.001, 1.1, 6)).toEqual([0.001, 0.01, 0.1, 1]);
    expect(ratioTicks(0.98, 1.03, 9)).toEqual([1 / 1.02, 1, 1.02]);
  });

  it("of users leave out load points that would crowd", () => {
    expect(spaced([1, 2, 3, 100, 200, 240])).toEqual([1, 100, 200, 240]);
  });
});

describe("factors", () => {
  const factor = (ratio: number, interval: [number, number] | null = null) => ({
    ratio,
    interval,
    range: null,
    verdict: "slower" as const,
    needed: null,
  });

  it("are all on the axis with the baseline, and intervals as far as they say something", () => {
    const [low, high] = factorDomain([factor(541, [530, 1e9]), factor(1.14)]);
    expect(low).toBeLessThan(1);
    expect(low).toBeGreaterThan(0.5);
    // An interval without an end does not squeeze the factors: five times the greatest factor, and a little air.
    expect(high).toBeGreaterThan(5 * 541);
    expect(high).toBeLessThan(6.5 * 541);
  });

  it("stand with their interval, or in brackets with their range, and what they mean", () => {
    expect(factorText(factor(541, [530, 552]))).toBe("541× (530× to 552×)");
    expect(factorText({ ...factor(1.5), range: [1.4, 1.6] })).toBe("1.50× [1.40× to 1.60×]");
    expect(verdictText({ verdict: "undecided", needed: 12 })).toBe("undecided, 12\u00a0repetitions");
    expect([verdictText(factor(2)), verdictText({ verdict: null, needed: null })]).toEqual(["slower", ""]);
  });

  it("have names in lines that fit", () => {
    expect(wrapped("server old, dialect nt1", 12)).toEqual(["server old,", "dialect nt1"]);
    expect(wrapped("x".repeat(25), 10)).toEqual(["x".repeat(10), "x".repeat(10), "x".repeat(5)]);
  });
});

describe("lines", () => {
  const points: [number, number][] = [
    [10, 1],
    [20, 3],
    [20, 4],
    [30, 5],
  ];

  it("go straight between points, and are nowhere else", () => {
    expect([5, 10, 15, 20, 25, 31].map((x) => valueAt(points, x, true))).toEqual([null, 1, 2, 4, 4.5, null]);
  });

  it("of a distribution keep their value up to the next point, from zero on", () => {
    expect([5, 10, 15, 20, 29, 31].map((x) => valueAt(points, x, false))).toEqual([0, 1, 1, 4, 4, 5]);
  });
});

describe("the time split", () => {
  const none: TimeSplit = {
    connections: 1,
    elapsed_ns: 1_000,
    think_ns: 0,
    request_transfer_ns: 0,
    network_ns: 0,
    server_ns: 0,
    server_or_network_ns: 0,
    response_transfer_ns: 0,
    waiting_ns: 0,
    idle_ns: 0,
    unknown_ns: 0,
    filtered_out_ns: 0,
    busy_ns: 0,
    outstanding_ns: 0,
    round_trips: 0,
  };

  it("is divided into parts that begin where the one before ends", () => {
    const shares = splitShares({ ...none, server_ns: 250, think_ns: 500, idle_ns: 250 });
    expect(shares.map(({ part, from, to }) => [part.name, from, to])).toEqual([
      ["Server", 0, 0.25],
      ["Client", 0.25, 0.75],
      ["Idle", 0.75, 1],
    ]);
    expect(splitShares(none)).toEqual([]);
  });

  it("counts as waited what lies between a request and its response", () => {
    const split = {
      ...none,
      server_ns: 1,
      network_ns: 10,
      request_transfer_ns: 100,
      think_ns: 1_000,
      waiting_ns: 10_000,
    };
    expect(waitedTime(split)).toBe(111);
  });
});

describe("a level of load", () => {
  it("is in the middle of its bounds by factors, and halfway where it begins at none", () => {
    expect([
      levelOf({ outstanding_from: 2, outstanding_to: 8 }),
      levelOf({ outstanding_from: 0, outstanding_to: 1 }),
    ]).toEqual([4, 0.5]);
  });
});

describe("the palette", () => {
  it("has one colour for reads and one for writes, as commands and as bytes", () => {
    expect(seriesStroke(FIGURES.read).colour).toBe(groupStroke("Read").colour);
    expect(seriesStroke(FIGURES.written).colour).toBe(groupStroke("Write").colour);
    const all = Object.values(FIGURES).map((index) => seriesStroke(index).colour);
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("a filter for Wireshark", () => {
  const exchange = {
    capture: "a.pcap",
    response_capture: null,
    request_first_packet: 123,
    request_last_packet: 123,
    response_first_packet: 130,
    response_last_packet: 125,
  } as SlowExchange;

  it("names each packet once, in order", () => {
    expect(wiresharkFilter(exchange)).toBe("frame.number in {123, 125, 130}");
  });

  it("leaves out packets of another file and those that are not known", () => {
    expect(wiresharkFilter({ ...exchange, response_capture: "b.pcap" })).toBe("frame.number in {123}");
    expect(wiresharkFilter({ ...exchange, response_first_packet: 0, response_last_packet: 0 })).toBe(
      "frame.number in {123}",
    );
  });
});

describe("a key of a breakdown", () => {
  it("has words for empty, unknown and other values", () => {
    const key = { file: null, directory: "", extension: "", size: 4_096, flow_id: 1_234 };
    const texts = ["file", "directory", "extension", "size", "flow_id", "user"].map((name) => keyText(name, key));
    expect(texts).toEqual([null, "(root)", "(none)", "4.10\u00a0kB to 8.19\u00a0kB", "1,234", "(other)"]);
  });
});

describe("the waterfall", () => {
  const at = (request_first_ns: number, response_time_ns: number) =>
    ({ request_first_ns, response_time_ns }) as SlowExchange;

  it("puts a command in the first lane that is free when it begins", () => {
    // The third begins as the second ends; the fourth while two are outstanding.
    const bars = lanes([at(1_000, 100), at(1_010, 20), at(1_030, 50), at(1_040, 10), at(1_100, 5)]);
    expect(bars.map(({ from, to, lane }) => [from, to, lane])).toEqual([
      [0, 100, 0],
      [10, 30, 1],
      [30, 80, 1],
      [40, 50, 2],
      [100, 105, 0],
    ]);
  });

  it("gives each of few commands a row, in the order of their start", () => {
    const bars = rows([at(1_030, 50), at(1_000, 100), at(1_100, 5)]);
    expect(bars.map(({ from, lane }) => [from, lane])).toEqual([
      [0, 0],
      [30, 1],
      [100, 2],
    ]);
  });
});

describe("drawings on paper", () => {
  it("are cut where a piece would be higher than a page", () => {
    const [page, row] = [PAPER_HEIGHT, PAPER_HEIGHT / 2 - 1];
    expect(pageEnds(page, [])).toEqual([page]);
    expect(pageEnds(page, [row, 2 * row])).toEqual([page]);
    expect(pageEnds(5 * row, [row, 2 * row, 3 * row, 4 * row])).toEqual([2 * row, 4 * row, 5 * row]);
  });

  it("stay whole without a place to cut, and a part that is higher than a page keeps its own piece", () => {
    expect(pageEnds(3_000, [])).toEqual([3_000]);
    expect(pageEnds(3_000, [0, 100, 2_900])).toEqual([100, 2_900, 3_000]);
  });
});

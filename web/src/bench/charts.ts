// The charts of a ramp, as in figures 2 and 3 of Swartz (1997): response time and throughput above each other on the
// same axis of users, and response time by group.
import { lines, type Panel, type Series } from "../charts/lines";
import { groupStroke, seriesStroke } from "../charts/palette";
import { h } from "../lib/dom";
import { clock, counted, duration, rate, short, thousands, tickDuration } from "../lib/format";
import type { Interval, Run, SmbscopeBenchDocument, Times } from "../types/bench";
import { byRate, headline, load, loadText } from "./load";

/** Points where the value is known. */
function points(
  bench: SmbscopeBenchDocument,
  runs: readonly Run[],
  value: (run: Run) => number | null | undefined,
): [number, number][] {
  return runs.flatMap((run) => {
    const found = value(run);
    return found === null || found === undefined ? [] : [[load(bench, run), found] as [number, number]];
  });
}

const perSecondText = (value: number) => `${thousands(Math.round(value))}/s`;
const perSecondTick = (value: number) => `${short(value)}/s`;

function loadAxis(bench: SmbscopeBenchDocument, runs: readonly Run[]) {
  const users = [...new Set(runs.map((run) => load(bench, run)))];
  const few = users.length <= 12;
  return {
    title: loadTitle(bench),
    text: (n: number) => loadText(bench, n),
    tickText: thousands,
    logarithmic: false,
    ...(few ? { ticks: spaced(users) } : {}),
  };
}

function loadTitle(bench: SmbscopeBenchDocument): string {
  return byRate(bench) ? "Operations each second" : "Users";
}

/** Load points that do not crowd each other on the axis. */
export function spaced(users: readonly number[]): number[] {
  const widest = Math.max(...users) - Math.min(...users);
  const kept: number[] = [];
  for (const n of [...users].sort((a, b) => a - b)) {
    const last = kept.at(-1);
    if (last === undefined || n - last >= widest / 24) kept.push(n);
  }
  return kept;
}

function capacityMark(bench: SmbscopeBenchDocument) {
  const users = byRate(bench) ? bench.capacity?.rate : bench.capacity?.users;
  return typeof users === "number" ? { x: users, text: `capacity: ${thousands(users)}` } : undefined;
}

export function rampChart(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const open = runs.some((run) => run.due !== null);
  const seconds = (run: Run) => Math.max(run.duration_ns, 1) / 1e9;
  const client = (name: string, index: number, value: (run: Run) => number | null): Series => ({
    name,
    stroke: seriesStroke(index),
    points: points(bench, runs, value),
    dots: true,
  });
  return lines({
    label: "Response time and throughput against the number of users",
    at: "At",
    x: loadAxis(bench, runs),
    mark: capacityMark(bench),
    panels: [
      {
        title: open ? "Response time of operations, from when they were due" : "Response time in the client",
        height: 230,
        text: duration,
        tickText: tickDuration,
        series: [
          client("Median", 2, (run) => headline(run).p50),
          client("Mean", 0, (run) => headline(run).mean),
          client("95 %", 1, (run) => headline(run).p95),
          ...(open ? [client("95 % of commands", 6, (run) => run.total.client.p95)] : []),
        ],
      },
      {
        title: "Commands each second",
        height: 150,
        text: perSecondText,
        tickText: perSecondTick,
        series: [client("Commands", 3, (run) => run.operations_per_second)],
      },
      {
        title: "Bytes each second",
        height: 110,
        text: rate,
        series: [
          client("Read", 5, (run) => run.bytes_read / seconds(run)),
          client("Written", 4, (run) => run.bytes_written / seconds(run)),
        ],
      },
    ],
    interpolate: true,
    numbers: () => ({
      headings: [loadTitle(bench), "Median", "Mean", "95 %", "Commands/s", "Read/s", "Written/s"],
      rows: runs.map((run) => [
        thousands(load(bench, run)),
        duration(headline(run).p50),
        duration(headline(run).mean),
        duration(headline(run).p95),
        thousands(Math.round(run.operations_per_second)),
        rate(run.bytes_read / seconds(run)),
        rate(run.bytes_written / seconds(run)),
      ]),
    }),
  });
}

/** Response time and throughput of each group; the parts of a group are there when asked for. */
export function groupChart(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const parts = new Map(runs.flatMap((run) => run.groups.map((group) => [group.group, group.part_of !== null])));
  const names = [...parts.keys()];
  const of = (run: Run, name: string) => run.groups.find((group) => group.group === name);
  const mean = (run: Run, name: string) => of(run, name)?.client.mean ?? null;
  const perSecond = (run: Run, name: string) => {
    const found = of(run, name);
    return found && run.duration_ns > 0 ? (found.operations * 1e9) / run.duration_ns : null;
  };
  const series = (value: (run: Run, name: string) => number | null) =>
    names.map((name) => ({
      name,
      stroke: groupStroke(name),
      points: points(bench, runs, (run) => value(run, name)),
      dots: true,
      hidden: parts.get(name) ?? false,
    }));
  return lines({
    label: "Mean response time and throughput by group of commands against the number of users",
    at: "At",
    x: loadAxis(bench, runs),
    mark: capacityMark(bench),
    panels: [
      {
        title: "Mean response time in the client",
        height: 230,
        text: duration,
        tickText: tickDuration,
        series: series(mean),
      },
      {
        title: "Commands each second",
        height: 150,
        text: perSecondText,
        tickText: perSecondTick,
        series: series(perSecond),
      },
    ],
    interpolate: true,
    numbers: () => ({
      headings: [loadTitle(bench), ...names, ...names.map((name) => `${name}/s`)],
      rows: runs.map((run) => [
        thousands(load(bench, run)),
        ...names.map((name) => duration(mean(run, name))),
        ...names.map((name) => thousands(Math.round(perSecond(run, name) ?? 0))),
      ]),
    }),
  });
}

/** What lies between client and wire: of commands seen from both places, otherwise of the percentiles. */
export function added(measured: { client: Times; wire: Times | null; difference: Times | null }, time: "p50" | "p95") {
  if (measured.difference) return measured.difference[time];
  const [client, wire] = [measured.client[time], measured.wire?.[time] ?? null];
  return client === null || wire === null ? null : client - wire;
}

/** The client's and the wire's view of the same commands above each other, and what lies between them. */
export function sidesChart(bench: SmbscopeBenchDocument): HTMLElement {
  const runs = bench.runs.filter((run) => run.total.wire);
  const line = (name: string, index: number, value: (run: Run) => number | null): Series => ({
    name,
    stroke: seriesStroke(index),
    points: points(bench, runs, value),
    dots: true,
  });
  const wire = (time: "p50" | "p95") => (run: Run) => run.total.wire?.[time] ?? null;
  return lines({
    label: "Response time in the client and on the wire against the number of users",
    at: "At",
    x: loadAxis(bench, runs),
    mark: capacityMark(bench),
    panels: [
      {
        title: "Response time",
        height: 200,
        text: duration,
        tickText: tickDuration,
        series: [
          line("Client median", 0, (run) => run.total.client.p50),
          line("Wire median", 2, wire("p50")),
          line("Client 95 %", 3, (run) => run.total.client.p95),
          line("Wire 95 %", 1, wire("p95")),
        ],
      },
      {
        title: "Added by the client's system",
        height: 120,
        text: duration,
        tickText: tickDuration,
        series: [
          line("Added, median", 4, (run) => added(run.total, "p50")),
          line("Added, 95 %", 5, (run) => added(run.total, "p95")),
        ],
      },
    ],
    interpolate: true,
    numbers: () => ({
      headings: [loadTitle(bench), "Client median", "Wire median", "Added", "Client 95 %", "Wire 95 %", "Added"],
      rows: runs.map((run) => [
        thousands(load(bench, run)),
        duration(run.total.client.p50),
        duration(run.total.wire?.p50),
        duration(added(run.total, "p50")),
        duration(run.total.client.p95),
        duration(run.total.wire?.p95),
        duration(added(run.total, "p95")),
      ]),
    }),
  });
}

/** The intervals of one run, which can be chosen. */
export function intervalsPart(bench: SmbscopeBenchDocument): HTMLElement {
  const runs = bench.runs.filter((run) => run.intervals.length > 1);
  const place = h("div", { class: "chosen" });
  const show = (run: Run | undefined) => run && place.replaceChildren(intervalChart(run));
  const choice = h(
    "select",
    { change: () => show(runs[Number(choice.value)]) },
    ...runs.map((run, i) =>
      h("option", { value: i, selected: i === runs.length - 1 }, loadText(bench, load(bench, run))),
    ),
  );
  show(runs.at(-1));
  return h("div", {}, h("label", { class: "choice no-print" }, "Run", choice), place);
}

/** Stretches in which no command was answered. */
export function stalls(intervals: readonly Interval[], width: number): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  for (const { start_ns, operations } of intervals) {
    const last = found.at(-1);
    if (operations > 0) continue;
    if (last && start_ns - last.to < width / 2) last.to = start_ns + width;
    else found.push({ from: start_ns, to: start_ns + width });
  }
  return found;
}

function intervalChart(run: Run): HTMLElement {
  const first = run.intervals[0]?.start_ns ?? 0;
  const second = run.intervals[1]?.start_ns ?? first + 1e9;
  const width = (second - first) / 1e9;
  const series = (name: string, index: number, value: (interval: Interval) => number | null): Series => ({
    name,
    stroke: seriesStroke(index),
    points: run.intervals.flatMap((interval) => {
      const found = value(interval);
      return found === null ? [] : [[interval.start_ns - first, found] as [number, number]];
    }),
  });
  const known = run.stalls.map(({ start_ns, duration_ns }) => ({ from: start_ns, to: start_ns + duration_ns }));
  const found = known.length > 0 ? known : stalls(run.intervals, second - first);
  const bands = found.map(({ from, to }) => ({
    from: from - first,
    to: to - first,
    text: `no command was answered for ${duration(to - from)}`,
  }));
  const panels: Panel[] = [
    {
      title: "Response time",
      height: 200,
      text: duration,
      tickText: tickDuration,
      logarithmic: true,
      series: [
        series("Median", 2, (interval) => interval.p50),
        series("95 %", 1, (interval) => interval.p95),
        series("Slowest", 6, (interval) => interval.max),
      ],
    },
    {
      title: "Commands each second",
      height: 110,
      text: perSecondText,
      tickText: perSecondTick,
      series: [series("Commands", 3, (interval) => interval.operations / width)],
    },
    {
      title: "Bytes each second",
      height: 90,
      text: rate,
      series: [
        series("Read", 5, (interval) => interval.bytes_read / width),
        series("Written", 4, (interval) => interval.bytes_written / width),
      ],
    },
  ];
  const chart = lines({
    label: `Response time and throughput of the run with ${counted(run.users, "user")} over time`,
    at: "After",
    x: { title: "Time since the beginning", text: tickDuration, logarithmic: false },
    panels,
    bands,
    interpolate: true,
    numbers: () => ({
      headings: ["At (UTC)", "Users", "Commands", "Errors", "Median", "95 %", "Slowest", "Read/s", "Written/s"],
      rows: run.intervals.map((interval) => [
        clock(interval.start_ns),
        thousands(interval.users),
        thousands(interval.operations),
        thousands(interval.errors),
        duration(interval.p50),
        duration(interval.p95),
        duration(interval.max),
        rate(interval.bytes_read / width),
        rate(interval.bytes_written / width),
      ]),
    }),
  });
  const still = bands.map(({ from, text }) => `From ${tickDuration(from)} on, ${text}.`);
  return h("div", {}, still.length > 0 ? h("p", { class: "lead stalls" }, still.join(" ")) : null, chart);
}

// The charts of a ramp, as in figures 2 and 3 of Swartz (1997): response time and throughput above each other on the
// same axis of users, and response time by group.
import { lines, type Panel, type Series } from "../charts/lines";
import { groupStroke, seriesStroke } from "../charts/palette";
import { h } from "../lib/dom";
import { clock, counted, duration, rate, short, thousands, tickDuration } from "../lib/format";
import type { Run, SmbscopeBenchDocument } from "../types/bench";

/** Points where the value is known. */
function points(runs: readonly Run[], value: (run: Run) => number | null | undefined): [number, number][] {
  return runs.flatMap((run) => {
    const found = value(run);
    return found === null || found === undefined ? [] : [[run.users, found] as [number, number]];
  });
}

function usersAxis(runs: readonly Run[]) {
  const users = [...new Set(runs.map((run) => run.users))];
  const few = users.length <= 12;
  return {
    title: "Users",
    text: (n: number) => counted(n, "user"),
    tickText: thousands,
    logarithmic: false,
    ...(few ? { ticks: spaced(users) } : {}),
  };
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
  const users = bench.capacity?.users;
  return typeof users === "number" ? { x: users, text: `capacity: ${thousands(users)}` } : undefined;
}

export function rampChart(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const seconds = (run: Run) => Math.max(run.duration_ns, 1) / 1e9;
  const client = (name: string, index: number, value: (run: Run) => number | null): Series => ({
    name,
    stroke: seriesStroke(index),
    points: points(runs, value),
    dots: true,
  });
  return lines({
    label: "Response time and throughput against the number of users",
    at: "At",
    x: usersAxis(runs),
    mark: capacityMark(bench),
    panels: [
      {
        title: "Response time in the client",
        height: 230,
        text: duration,
        tickText: tickDuration,
        series: [
          client("Median", 2, (run) => run.total.client.p50),
          client("Mean", 0, (run) => run.total.client.mean),
          client("95 %", 1, (run) => run.total.client.p95),
        ],
      },
      {
        title: "Operations each second",
        height: 150,
        text: (value) => `${thousands(Math.round(value))}/s`,
        tickText: (value) => `${short(value)}/s`,
        series: [client("Operations", 3, (run) => run.operations_per_second)],
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
      headings: ["Users", "Median", "Mean", "95 %", "Operations/s", "Read/s", "Written/s"],
      rows: runs.map((run) => [
        thousands(run.users),
        duration(run.total.client.p50),
        duration(run.total.client.mean),
        duration(run.total.client.p95),
        thousands(Math.round(run.operations_per_second)),
        rate(run.bytes_read / seconds(run)),
        rate(run.bytes_written / seconds(run)),
      ]),
    }),
  });
}

export function groupChart(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const names = [...new Set(runs.flatMap((run) => run.groups.map((group) => group.group)))];
  const mean = (run: Run, name: string) => run.groups.find((group) => group.group === name)?.client.mean ?? null;
  return lines({
    label: "Mean response time by group of commands against the number of users",
    at: "At",
    x: usersAxis(runs),
    mark: capacityMark(bench),
    panels: [
      {
        title: "Mean response time in the client",
        height: 260,
        text: duration,
        tickText: tickDuration,
        series: names.map((name) => ({
          name,
          stroke: groupStroke(name),
          points: points(runs, (run) => mean(run, name)),
          dots: true,
        })),
      },
    ],
    interpolate: true,
    numbers: () => ({
      headings: ["Users", ...names],
      rows: runs.map((run) => [thousands(run.users), ...names.map((name) => duration(mean(run, name)))]),
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
    ...runs.map((run, i) => h("option", { value: i, selected: i === runs.length - 1 }, counted(run.users, "user"))),
  );
  show(runs.at(-1));
  return h("div", {}, h("label", { class: "choice no-print" }, "Run", choice), place);
}

function intervalChart(run: Run): HTMLElement {
  const first = run.intervals[0]?.start_ns ?? 0;
  const second = run.intervals[1]?.start_ns ?? first + 1e9;
  const width = (second - first) / 1e9;
  const series = (
    name: string,
    index: number,
    value: (interval: Run["intervals"][number]) => number | null,
  ): Series => ({
    name,
    stroke: seriesStroke(index),
    points: run.intervals.flatMap((interval) => {
      const found = value(interval);
      return found === null ? [] : [[interval.start_ns - first, found] as [number, number]];
    }),
  });
  const panels: Panel[] = [
    {
      title: "Response time",
      height: 180,
      text: duration,
      tickText: tickDuration,
      series: [series("Median", 2, (interval) => interval.p50), series("95 %", 1, (interval) => interval.p95)],
    },
    {
      title: "Operations each second",
      height: 110,
      text: (value) => `${thousands(Math.round(value))}/s`,
      tickText: (value) => `${short(value)}/s`,
      series: [series("Operations", 3, (interval) => interval.operations / width)],
    },
  ];
  return lines({
    label: `Response time and throughput of the run with ${counted(run.users, "user")} over time`,
    at: "After",
    x: { title: "Time since the beginning", text: tickDuration, logarithmic: false },
    panels,
    interpolate: true,
    numbers: () => ({
      headings: ["At (UTC)", "Operations", "Errors", "Median", "95 %", "Read/s", "Written/s"],
      rows: run.intervals.map((interval) => [
        clock(interval.start_ns),
        thousands(interval.operations),
        thousands(interval.errors),
        duration(interval.p50),
        duration(interval.p95),
        rate(interval.bytes_read / width),
        rate(interval.bytes_written / width),
      ]),
    }),
  });
}

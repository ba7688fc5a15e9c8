// Charts of a ramp, as in figures 2 and 3 of Swartz (1997): response time and throughput against users, and response time
// by group.
import { bytesPanel, curve, lines, type Panel, ratePanel, timePanel } from "../charts/lines";
import { FIGURES, figureStroke, groupStroke, type Stroke } from "../charts/palette";
import { serverPanels } from "../charts/server";
import { elapsed, perSecond, short, thousands } from "../lib/format";
import type { BenchRun, SmbscopeBenchDocument, Times } from "../types/bench";
import { byRate, headline, load, loadText } from "./load";

/** Creates a chart with the load points on its x axis. */
function overLoad(
  bench: SmbscopeBenchDocument,
  runs: readonly BenchRun[],
  label: string,
  panels: Panel[],
): HTMLElement {
  return lines({
    label: `${label} against the number of users`,
    at: "At",
    x: loadAxis(bench, runs),
    mark: capacityMark(bench),
    panels,
    interpolate: true,
  });
}

function loadAxis(bench: SmbscopeBenchDocument, runs: readonly BenchRun[]) {
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
  return byRate(bench) ? "Operations per second" : "Users";
}

/** Selects load points whose ticks do not overlap. */
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

/** Draws response time against throughput, one point per load point. */
export function throughputCurve(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const at = (run: BenchRun) => run.operations_per_second;
  const users = (n: number) => {
    const run = runs.find((run) => at(run) === n);
    return run ? loadText(bench, load(bench, run)) : "";
  };
  const kept = runs.find((run) => load(bench, run) === capacityMark(bench)?.x);
  return lines({
    label: "Response time against throughput by load point",
    at: "At",
    x: {
      title: "Commands per second",
      text: (n) => `${perSecond(n)} (${users(n)})`,
      tickText: (n) => `${short(n)}/s`,
      logarithmic: false,
    },
    mark: kept && { x: at(kept), text: `capacity: ${loadText(bench, load(bench, kept))}` },
    panels: [
      timePanel("Response time", 210, [
        curve("p95", FIGURES.p95, runs, at, (run) => headline(run).p95, { dots: true, label: users }),
        curve("Median", FIGURES.median, runs, at, (run) => headline(run).p50),
      ]),
    ],
    interpolate: true,
  });
}

export function rampChart(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const open = runs.some((run) => run.due !== null);
  const seconds = (run: BenchRun) => Math.max(run.duration_ns, 1) / 1e9;
  const at = (run: BenchRun) => load(bench, run);
  const line = (name: string, stroke: Stroke | number, value: (run: BenchRun) => number | null | undefined) =>
    curve(name, stroke, runs, at, value);
  const panels = [
    timePanel(open ? "Response time of operations, from their due time" : "Response time in the client", 230, [
      line("Median", FIGURES.median, (run) => headline(run).p50),
      line("Mean", FIGURES.mean, (run) => headline(run).mean),
      line("p95", FIGURES.p95, (run) => headline(run).p95),
      ...(open ? [line("p95 of commands", figureStroke("p95", "2 3"), (run) => run.total.client.p95)] : []),
    ]),
    ratePanel(150, [line("Commands", FIGURES.commands, (run) => run.operations_per_second)]),
    bytesPanel("Bytes per second", 110, [
      line("Read", FIGURES.read, (run) => run.bytes_read / seconds(run)),
      line("Written", FIGURES.written, (run) => run.bytes_written / seconds(run)),
    ]),
    ...serverPanels(({ name, metric, of, stroke }) =>
      line(name, stroke, (run) => run.server?.metrics.find((series) => series.metric === metric)?.[of]),
    ),
  ];
  return overLoad(bench, runs, "Response time and throughput", panels);
}

/** Draws the server metrics of a load point. Returns null without samples. */
export function serverOverTime({ server, started_ns }: BenchRun): HTMLElement | null {
  if (!server || server.times_ns.length < 2) return null;
  const panels = serverPanels(({ name, metric, of, stroke }) => {
    const values = of === "mean" ? server.metrics.find((series) => series.metric === metric)?.values : undefined;
    const samples = server.times_ns.map((time, i) => ({ at: time - started_ns, value: values?.[i] }));
    return curve(
      name,
      stroke,
      samples,
      ({ at }) => at,
      ({ value }) => value,
      {},
    );
  });
  if (panels.length === 0) return null;
  return lines({
    label: "Server CPU and disks over time",
    at: "After",
    x: { title: "Time since the start of the load point", text: (at) => elapsed(at), logarithmic: false },
    panels,
    interpolate: true,
  });
}

/** Draws response time and throughput by group. Parts of a group are hidden at first. */
export function groupChart(bench: SmbscopeBenchDocument): HTMLElement {
  const { runs } = bench;
  const parts = new Map(runs.flatMap((run) => run.groups.map((group) => [group.group, group.part_of !== null])));
  const names = [...parts.keys()];
  const of = (run: BenchRun, name: string) => run.groups.find((group) => group.group === name);
  const mean = (run: BenchRun, name: string) => of(run, name)?.client.mean ?? null;
  const perSecond = (run: BenchRun, name: string) => {
    const found = of(run, name);
    return found && run.duration_ns > 0 ? (found.operations * 1e9) / run.duration_ns : null;
  };
  const series = (value: (run: BenchRun, name: string) => number | null) =>
    names.map((name) => {
      const more = { dots: true, hidden: parts.get(name) ?? false };
      const at = (run: BenchRun) => load(bench, run);
      return curve(name, groupStroke(name), runs, at, (run) => value(run, name), more);
    });
  const panels = [timePanel("Mean response time in the client", 230, series(mean)), ratePanel(150, series(perSecond))];
  return overLoad(bench, runs, "Mean response time and throughput by command group", panels);
}

/** Returns the time added by the client's system: from commands matched one by one, otherwise from the percentiles. */
export function added(measured: { client: Times; wire: Times | null; difference: Times | null }, time: "p50" | "p95") {
  if (measured.difference) return measured.difference[time];
  const [client, wire] = [measured.client[time], measured.wire?.[time] ?? null];
  return client === null || wire === null ? null : client - wire;
}

/** Draws response times in the client and on the wire, and their difference. */
export function sidesChart(bench: SmbscopeBenchDocument): HTMLElement {
  const runs = bench.runs.filter((run) => run.total.wire);
  const line = (name: string, stroke: Stroke, value: (run: BenchRun) => number | null) =>
    curve(name, stroke, runs, (run) => load(bench, run), value);
  const client = (time: "p50" | "p95") => (run: BenchRun) => run.total.client[time];
  const wire = (time: "p50" | "p95") => (run: BenchRun) => run.total.wire?.[time] ?? null;
  const between = (time: "p50" | "p95") => (run: BenchRun) => added(run.total, time);
  const panels = [
    timePanel("Response time", 200, [
      line("Client median", figureStroke("median", ""), client("p50")),
      line("Wire median", figureStroke("median", "2 3"), wire("p50")),
      line("Client p95", figureStroke("p95", ""), client("p95")),
      line("Wire p95", figureStroke("p95", "2 3"), wire("p95")),
    ]),
    timePanel("Added by the client's system", 120, [
      line("Added, median", figureStroke("median", "9 3 2 3"), between("p50")),
      line("Added, p95", figureStroke("p95", "9 3 2 3"), between("p95")),
    ]),
  ];
  return overLoad(bench, runs, "Response time in the client and on the wire", panels);
}

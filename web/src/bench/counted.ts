// Sections about one load point, which the reader selects. They match the sections of a capture's page.
import { overTime } from "../charts/overtime";
import { splitFigure } from "../charts/split";
import { h } from "../lib/dom";
import { counted as count, duration, elapsed, span } from "../lib/format";
import { Choice, lead, part, type Section, section } from "../lib/page";
import { firstScreen, furtherParts } from "../report/answer";
import { causes, notes } from "../report/causes";
import { cumulative, groupTable, loadCurve } from "../report/groups";
import { slicesTable } from "../report/slices";
import { slowestTable } from "../report/slowest";
import { entities } from "../report/tables";
import { pathColumn, textColumn } from "../table/columns";
import type { BenchRun, LoadPointBreakdown, SmbscopeBenchDocument } from "../types/bench";
import { groupChart, serverOverTime } from "./charts";
import { load, loadText } from "./load";
import { errorsPart, operationTable, runCommands } from "./tables";

type Shown = BenchRun & { counted: LoadPointBreakdown };

/** Creates the sections about one load point, in the order of a capture's page. */
export function countedSections(bench: SmbscopeBenchDocument): (Section | null)[] {
  // A program launched from a local folder sends no commands.
  const runs = bench.runs.filter((run): run is Shown => run.counted !== null && run.counted.groups.length > 0);
  const options = runs.map((run) => ({ name: loadText(bench, load(bench, run)), value: run }));
  const several = bench.runs.length > 1;
  if (options.length === 0) return [];
  const chosen = new Choice("Load point", options, options.length - 1);
  const named = <Row extends { is_other: boolean }>(rows: readonly Row[]) => rows.filter((row) => !row.is_other);
  const underLoad = ({ counted }: Shown) => {
    const curve = loadCurve(counted.concurrency);
    return curve && part("Response time under load", curve);
  };
  const server = (run: Shown) => {
    const chart = serverOverTime(run);
    return chart && part("Server over time", chart);
  };
  const spread = ({ counted }: Shown) => {
    const chart = cumulative(counted.groups);
    return chart && part("Latency distribution", chart);
  };
  return [
    section("time", "Over time", [
      chosen.place((run) => [...pointAnswer(run), ...timeContent(run), server(run), underLoad(run)]),
    ]),
    section("slices", "Breakdown", [
      options.some(({ value }) => value.counted.slices) &&
        chosen.place(({ counted: { slices } }) => [slices && slicesTable(slices)]),
    ]),
    section(
      "groups",
      "Command groups",
      [
        chosen.place((run) => [
          part(
            "Response times by group",
            groupTable(run.counted.groups, {
              count: run.operations,
              errors: run.errors,
              response_time: run.total.client,
            }),
          ),
          spread(run),
        ]),
        several && part("Groups against load", groupChart(bench)),
      ],
      "Groups",
    ),
    section("commands", "Commands", [
      chosen.place((run) => {
        const operations = operationTable(run);
        return [runCommands(run), errorsPart(run), operations && part("Operations of the workload", operations)];
      }),
    ]),
    section(
      "slowest",
      "Slowest commands",
      [chosen.place((run) => [slowestTable(run.counted.slowest, false)])],
      "Slowest",
    ),
    section(
      "who",
      "Files and users",
      [
        chosen.place(({ counted: { files, users } }) => [
          files.length > 0 && entities("Files", named(files), [pathColumn((row) => row.path)], 0),
          users.length > 1 && entities("Users", named(users), [textColumn("User", (row) => row.user)], 0),
        ]),
      ],
      "Files",
    ),
    section("where", "Where the time went", [chosen.place((run) => split(run))], "Time split"),
  ];
}

/** Creates the answer for a load point, as far as the client can tell. */
function pointAnswer({ answer }: Shown): (HTMLElement | null)[] {
  return answer === null ? [] : [firstScreen(answer), causes(answer, []), notes(answer, []), ...furtherParts(answer)];
}

/** Creates the heat map. Stalls are highlighted. */
function timeContent({ counted: { heatmap, slowest }, started_ns, duration_ns, stalls }: Shown): HTMLElement[] {
  const bands = stalls.map((stall) => ({
    ...stall,
    text: `no command was answered for ${duration(stall.duration_ns)}`,
  }));
  const said = bands.map(({ start_ns, text }) => `From ${elapsed(start_ns - started_ns)} on, ${text}.`);
  const stalled = said.length > 0 ? [h("p", { class: "lead stalls" }, said.join(" "))] : [];
  if (heatmap.bins.length === 0) return stalled;
  return [...stalled, overTime(heatmap, started_ns, started_ns + duration_ns, slowest, { bands })];
}

/** Sums the phases of all commands. The client cannot separate the server from the network. */
function split({ counted: { groups } }: Shown): HTMLElement[] {
  const timed = groups.filter((group) => group.headline);
  const sum = (time: "request_transfer" | "service_time" | "response_transfer" | "think_time") =>
    timed.reduce((total, group) => total + (group[time].mean ?? 0) * group[time].count, 0);
  const parts = {
    request_transfer_ns: sum("request_transfer"),
    server_or_network_ns: sum("service_time"),
    response_transfer_ns: sum("response_transfer"),
    think_ns: sum("think_time"),
  };
  const elapsed_ns = Object.values(parts).reduce((a, b) => a + b, 0);
  if (elapsed_ns === 0) return [];
  const none = { connections: 0, busy_ns: 0, outstanding_ns: 0, round_trips: 0, server_ns: 0, network_ns: 0 };
  const whole = { ...none, ...parts, unknown_ns: 0, elapsed_ns, waiting_ns: 0, idle_ns: 0, filtered_out_ns: 0 };
  const commands = timed.reduce((total, group) => total + group.count, 0);
  return [
    lead(`Total time of ${count(commands, "command")} as measured by the client: ${span(elapsed_ns)}.`),
    splitFigure(whole, "Where the time went"),
  ];
}

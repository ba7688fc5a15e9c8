// Episodes: bursts of activity by one client, and the commands of the selected one on a time axis.
import { waterfall } from "../charts/waterfall";
import { h } from "../lib/dom";
import { clock, span, thousands } from "../lib/format";
import { lead, part, type Section, section } from "../lib/page";
import { clientSelection } from "../lib/selection";
import {
  bytesColumn,
  countColumn,
  numberColumn,
  selectColumn,
  textColumn,
  timeColumn,
  waitedColumn,
} from "../table/columns";
import { scrollingGrid } from "../table/grid";
import { table } from "../table/table";
import type { Episode, SmbscopeReportDocument } from "../types/report";

export function episodes(report: SmbscopeReportDocument): Section | null {
  const found = report.episodes ?? [];
  const bars = report.waterfall ?? [];
  return section("episodes", "Episodes", [
    whatIf(report),
    bars.length > 0 && part("Commands of the episode", waterfall(bars)),
    found.length > 0 &&
      h(
        "div",
        {},
        lead(
          "An episode is a burst of activity by one client, without a pause of 2 s or more. ",
          h("code", {}, "analyze --episode N"),
          " shows a single episode with its commands on a time axis.",
        ),
        episodeTable(found),
      ),
  ]);
}

/** Predicted durations of the episode under other conditions. */
function whatIf(report: SmbscopeReportDocument): HTMLElement | null {
  const predictions = report.what_if ?? [];
  const [first] = predictions;
  if (!first) return null;
  const row = (what: string, ns: number, commands: number) => [
    what,
    span(ns),
    (ns / Math.max(1, first.now_ns)).toFixed(2),
    thousands(commands),
  ];
  const rows = predictions.map(({ scenario, then_ns, commands, saved }) => row(scenario, then_ns, commands - saved));
  return part(
    "What if",
    scrollingGrid({
      caption: "Predicted duration of the episode",
      columns: [
        ["Change", "text"],
        ["Duration", "number"],
        ["×", "number"],
        ["Commands", "number"],
      ],
      rows: [row("as captured", first.now_ns, first.commands), ...rows],
    }),
    lead(
      "Assumes that each request still follows the previous response after the same think time, at the same bandwidth and server load.",
    ),
  );
}

function episodeTable(found: readonly Episode[]): HTMLElement {
  return table<Episode>({
    caption: "Episodes",
    columns: [
      numberColumn<Episode>("N", (row) => row.number, String),
      textColumn("What", (row) => row.label, { width: 30 }),
      selectColumn(
        textColumn("Client", (row) => row.client),
        (row) => clientSelection(row.client),
      ),
      textColumn("Start (UTC)", (row) => clock(row.start_ns)),
      timeColumn("Duration", (row) => row.duration_ns),
      waitedColumn((row) => row.waited_ns, "Time with a command outstanding, summed over connections"),
      timeColumn("Think", (row) => row.think_ns, { help: "Duration minus total wait" }),
      countColumn("Commands", (row) => row.commands),
      countColumn("Opens", (row) => row.opens),
      countColumn("Files", (row) => row.files, { help: "Distinct paths; an estimate from 64 upwards" }),
      numberColumn<Episode>(
        "Opens/file",
        (row) => (row.files > 0 ? row.opens / row.files : null),
        (n) => n.toFixed(1),
      ),
      bytesColumn("Read", (row) => row.bytes_read),
      bytesColumn("Written", (row) => row.bytes_written),
    ],
    rows: found,
    time: (row) => [row.start_ns, row.end_ns],
    only: { client: (row, { name }) => row.client === name },
    sort: { title: "Total wait", descending: true },
  });
}

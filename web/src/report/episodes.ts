// Episodes: bursts of work of one client; of the one that was chosen, its commands on the axis of time.
import { waterfall } from "../charts/waterfall";
import { h } from "../lib/dom";
import { clock, span, thousands } from "../lib/format";
import { lead, part, type Section, section } from "../lib/page";
import { bytesColumn, countColumn, numberColumn, textColumn, timeColumn, waitedColumn } from "../table/columns";
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
          "An episode is work of one client without a pause of 2 s. ",
          h("code", {}, "analyze --episode N"),
          " shows one alone, with its commands on the axis of time.",
        ),
        episodeTable(found),
      ),
  ]);
}

/** How long the episode would take otherwise. */
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
      caption: "How long the episode would take",
      columns: [
        ["Change", "text"],
        ["Duration", "number"],
        ["×", "number"],
        ["Commands", "number"],
      ],
      rows: [row("as captured", first.now_ns, first.commands), ...rows],
    }),
    lead(
      "Each request follows the last response before it after the same think time; the bandwidth and the server's load stay as they are.",
    ),
  );
}

function episodeTable(found: readonly Episode[]): HTMLElement {
  return table<Episode>({
    caption: "Episodes",
    columns: [
      numberColumn<Episode>("N", (row) => row.number, String),
      textColumn("What", (row) => row.label, { width: 30 }),
      textColumn("Client", (row) => row.client),
      textColumn("Begin (UTC)", (row) => clock(row.start_ns)),
      timeColumn("Duration", (row) => row.duration_ns),
      waitedColumn((row) => row.waited_ns, "Time with a command outstanding, by connection"),
      timeColumn("Think", (row) => row.think_ns, { help: "The rest of the duration" }),
      countColumn("Commands", (row) => row.commands),
      countColumn("Opens", (row) => row.opens),
      countColumn("Files", (row) => row.files, { help: "Different paths, an estimate from 64 on" }),
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
    sort: { title: "Total wait", descending: true },
  });
}

// Episodes: bursts of activity by one client, and the commands of the selected one on a time axis.
import { waterfall } from "../charts/waterfall";
import { h } from "../lib/dom";
import { clock, span, thousands } from "../lib/format";
import { commandLine, facts, lead, openDialog, part, type Section, section } from "../lib/page";
import { clientSelection, selectButton } from "../lib/selection";
import {
  bytesColumn,
  countColumn,
  numberColumn,
  selectColumn,
  textColumn,
  timeColumn,
  waitedColumn,
} from "../table/columns";
import { table } from "../table/table";
import type { Episode, SlowExchange, SmbscopeReportDocument } from "../types/report";
import { openCommand } from "./command";
import { analyzeCommand } from "./commandline";

export function episodes(report: SmbscopeReportDocument): Section | null {
  const found = report.episodes ?? [];
  const bars = report.waterfall ?? [];
  return section("episodes", "Episodes", [
    bars.length > 0 && part("Commands of the episode", waterfall(bars, openCommand)),
    found.length > 0 &&
      h(
        "div",
        {},
        lead(
          "An episode is a burst of activity by one client, without a pause of 2 s or more. ",
          h("span", { class: "no-print" }, "Click one to see its commands on a time axis."),
        ),
        episodeTable(report),
      ),
  ]);
}

/** Returns the commands of an episode that the document lists. */
export function commandsOf(
  { waterfall }: Pick<SmbscopeReportDocument, "waterfall">,
  { client, start_ns, end_ns, longest }: Pick<Episode, "client" | "start_ns" | "end_ns" | "longest">,
): SlowExchange[] {
  if (waterfall.length === 0) return longest;
  return waterfall.filter(
    (row) => row.client === client && row.request_first_ns >= start_ns && row.request_first_ns <= end_ns,
  );
}

/** Opens a dialog with the figures of an episode and its commands on a time axis. */
function openEpisode(episode: Episode, report: SmbscopeReportDocument): void {
  const { number, label, client, timed } = episode;
  const bars = commandsOf(report, episode);
  const isSelected = report.waterfall.length > 0;
  const command = analyzeCommand(report, `--episode ${number} -o episode-${number}.html`);
  openDialog(
    `Episode ${number}: ${label}`,
    `Episode ${number}: ${label}`,
    facts([
      ["Client", selectButton(clientSelection(client))],
      ["Start", `${clock(episode.start_ns)} UTC`],
      ["Duration", span(episode.duration_ns)],
      ["Total wait", span(episode.waited_ns)],
      ["Commands", shownText(episode, bars.length, isSelected ? "first" : "longest")],
    ]),
    bars.length > 0 ? waterfall(bars, openCommand) : lead("The commands of this episode are not in the page."),
    isSelected || bars.length >= timed ? null : commandLine("All its commands:", command),
  );
}

/** Tells how many commands the chart lacks, and why. `which` says how they were chosen. */
export function shownText(
  { commands, timed }: Pick<Episode, "commands" | "timed">,
  shown: number,
  which: "first" | "longest",
): string {
  const untimed = commands - timed;
  const lacking = [
    timed > shown &&
      shown > 0 &&
      `the chart shows the ${thousands(shown)} ${which}, not the other ${thousands(timed - shown)}`,
    untimed > 0 && `${thousands(untimed)} without a response time`,
  ].filter((text) => text !== false);
  return [thousands(commands), ...lacking].join("; ");
}

function episodeTable(report: SmbscopeReportDocument): HTMLElement {
  return table<Episode>({
    caption: "Episodes",
    columns: [
      numberColumn<Episode>("N", (row) => row.number, String),
      textColumn("What", (row) => row.label, {
        width: 30,
        cell: (row) =>
          h(
            "button",
            {
              type: "button",
              class: "link",
              "aria-haspopup": "dialog",
              title: `Commands of episode ${row.number}`,
              click: () => openEpisode(row, report),
            },
            row.label,
          ),
      }),
      waitedColumn((row) => row.waited_ns, "Time with a command outstanding, summed over connections"),
      selectColumn(
        textColumn("Client", (row) => row.client),
        (row) => clientSelection(row.client),
      ),
      textColumn("Start (UTC)", (row) => clock(row.start_ns)),
      timeColumn("Duration", (row) => row.duration_ns),
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
    rows: report.episodes,
    time: (row) => [row.start_ns, row.end_ns],
    only: { client: (row, { name }) => row.client === name },
    sort: { title: "Total wait", descending: true },
  });
}

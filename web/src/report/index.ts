// The page of a report, `smbscope.report/1`.
import { overTime } from "../charts/overtime";
import { splitEvidence } from "../charts/split";
import { h } from "../lib/dom";
import { lead, type Page, part, section } from "../lib/page";
import { clientSelection, fileSelection, shareSelection } from "../lib/selection";
import { pathColumn, selectColumn, textColumn } from "../table/columns";
import type { ClientEntity, FileEntity, ShareEntity, SmbscopeReportDocument } from "../types/report";
import { firstScreen, furtherParts } from "./answer";
import { caching } from "./caching";
import { causes, notes } from "./causes";
import { openCommand } from "./command";
import { connectionTable } from "./connections";
import { episodes } from "./episodes";
import { keyFigures, origin, timeSplit, title } from "./facts";
import { errorEntries } from "./figures";
import { cumulative, groupTable, loadCurve } from "./groups";
import { method } from "./method";
import { negotiations, smb1Notice } from "./negotiation";
import { quality } from "./quality";
import { selectionPanel, wholeNote } from "./selected";
import { sides } from "./sides";
import { slicesTable } from "./slices";
import { slowestTable } from "./slowest";
import { commandFigures, commandTable, entities, errorTable } from "./tables";

export function reportPage(report: SmbscopeReportDocument): Page {
  const { answer, heatmap, totals, omitted } = report;
  const timed = heatmap.bins.length > 0 && totals.first_ns !== null && totals.last_ns !== null;
  const spread = cumulative(report.groups);
  const load = loadCurve(report.concurrency);
  const errors = errorTable(errorEntries(report.commands));
  const empty = totals.commands === 0;
  return {
    title: title(report),
    facts: [
      smb1Notice(report),
      origin(report),
      selectionPanel(report),
      wholeNote(report),
      firstScreen(answer, isOfSufferer(report) && splitEvidence(report.time_split), report.quality.sentence),
      causes(answer, report.captures),
      notes(answer, report.captures),
      ...furtherParts(answer),
      keyFigures(report),
    ],
    links: [answer.causes.length > 0 && { id: "causes", title: "Causes" }],
    version: report.generator.version,
    sections: [
      sides(report),
      section("time", "Over time", [
        timed && overTime(heatmap, totals.first_ns ?? 0, totals.last_ns ?? 0, report.slowest, { open: openCommand }),
        load &&
          part(
            "Response time under load",
            lead(
              "Each point covers intervals of the heat map with a similar number of outstanding commands. If response time rises while throughput does not, the server has reached its limit.",
            ),
            load,
          ),
      ]),
      episodes(report),
      section("slices", "Breakdown", [report.slices && slicesTable(report.slices)]),
      section(
        "groups",
        "Command groups",
        [
          part("Response times by group", groupTable(report.groups, totals.headline)),
          spread && part("Latency distribution", spread),
        ],
        "Groups",
      ),
      empty
        ? null
        : section("commands", "Commands", [
            commandTable(commandFigures(report.commands)),
            errors && part("Errors", errors),
          ]),
      report.slowest.length > 0
        ? section(
            "slowest",
            "Slowest commands",
            [
              lead(
                "Packet numbers match Wireshark. ",
                h("span", { class: "no-print" }, "Click them to copy a display filter for the command."),
              ),
              slowestTable(report.slowest, true, true),
            ],
            "Slowest",
          )
        : null,
      empty
        ? null
        : section(
            "who",
            "Files, shares and users",
            [
              lead(h("span", { class: "no-print" }, "Click a file or a share to show only its figures.")),
              filesPart(report),
              sharesPart(report),
              entities("Users", report.users, [textColumn("User", (row) => row.user)], omitted.users),
            ],
            "Files",
          ),
      report.connections.length > 0
        ? section(
            "hosts",
            "Clients, servers and connections",
            [
              lead(
                h(
                  "span",
                  { class: "no-print" },
                  "Click a client to show only its figures, a connection for its details.",
                ),
              ),
              clientsPart(report),
              entities(
                "Servers",
                report.servers,
                [
                  textColumn("Server", (row) =>
                    row.server_port === null ? row.server : `${row.server}:${row.server_port}`,
                  ),
                ],
                omitted.servers,
              ),
              part("Connections", connectionTable(report)),
            ],
            "Connections",
          )
        : null,
      section("caching", "Caching", caching(report)),
      section("negotiation", "Negotiation", negotiations(report)),
      section("where", "Where the time went", timeSplit(report), "Time split"),
      section("quality", "Capture quality", [quality(report)], "Quality"),
      { id: "method", title: "How the figures are computed", link: "Method", always: true, content: [method(report)] },
    ],
  };
}

function filesPart({ files, omitted }: SmbscopeReportDocument): HTMLElement {
  const path = selectColumn(
    pathColumn<FileEntity>((row) => row.path),
    (row) => (row.is_other ? null : fileSelection(row.path, row.share)),
  );
  const share = selectColumn(
    textColumn<FileEntity>("Share", (row) => row.share, { width: 14 }),
    (row) => (row.is_other || row.share === null ? null : shareSelection(row.share)),
  );
  return entities("Files", files, [path, share], omitted.files, {
    share: (row, { name }) => row.share === name && !row.is_other,
    file: (row, { name, share }) => row.path === name && row.share === share && !row.is_other,
  });
}

function sharesPart({ shares, omitted }: SmbscopeReportDocument): HTMLElement {
  const share = selectColumn(
    textColumn<ShareEntity>("Share", (row) => row.share),
    (row) => (row.is_other ? null : shareSelection(row.share)),
  );
  return entities("Shares", shares, [share], omitted.shares, {
    share: (row, { name }) => row.share === name && !row.is_other,
  });
}

function clientsPart({ clients, omitted }: SmbscopeReportDocument): HTMLElement {
  const client = selectColumn(
    textColumn<ClientEntity>("Client", (row) => row.client),
    (row) => (row.is_other ? null : clientSelection(row.client)),
  );
  return entities("Clients", clients, [client], omitted.clients, {
    client: (row, { name }) => row.client === name && !row.is_other,
  });
}

/** Returns true if the split of all time is the split of the time that the headline is about. */
function isOfSufferer({ answer, clients, servers, omitted }: SmbscopeReportDocument): boolean {
  const isOnly = clients.length + omitted.clients === 1 && servers.length + omitted.servers === 1;
  const isShared = (answer.causes[0]?.subject.clients ?? 0) > 1;
  return answer.culprit !== "nothing" && (isOnly || isShared);
}

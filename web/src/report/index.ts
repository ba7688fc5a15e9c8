// The page of a report, `smbscope.report/1`.
import { overTime } from "../charts/overtime";
import { splitEvidence } from "../charts/split";
import { h } from "../lib/dom";
import { lead, type Page, part, section } from "../lib/page";
import { pathColumn, textColumn } from "../table/columns";
import type { SmbscopeReportDocument } from "../types/report";
import { firstScreen, furtherParts } from "./answer";
import { caching } from "./caching";
import { causes, notes } from "./causes";
import { connectionTable } from "./connections";
import { episodes } from "./episodes";
import { keyFigures, origin, timeSplit, title } from "./facts";
import { errorEntries } from "./figures";
import { cumulative, groupTable, loadCurve } from "./groups";
import { method } from "./method";
import { negotiations, smb1Notice } from "./negotiation";
import { quality } from "./quality";
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
      firstScreen(answer, isOfSufferer(report) && splitEvidence(report.time_split), report.quality.sentence),
      causes(answer, report.captures),
      notes(answer, report.captures),
      ...furtherParts(answer),
      keyFigures(report),
    ],
    links: [answer.causes.length > 0 && { id: "causes", title: "Causes" }],
    version: report.generator.version,
    sections: [
      section("time", "Over time", [
        timed && overTime(heatmap, totals.first_ns ?? 0, totals.last_ns ?? 0, report.slowest),
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
              slowestTable(report.slowest, true),
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
              entities(
                "Files",
                report.files,
                [pathColumn((row) => row.path), textColumn("Share", (row) => row.share, { width: 14 })],
                omitted.files,
              ),
              entities("Shares", report.shares, [textColumn("Share", (row) => row.share)], omitted.shares),
              entities("Users", report.users, [textColumn("User", (row) => row.user)], omitted.users),
            ],
            "Files",
          ),
      report.connections.length > 0
        ? section(
            "hosts",
            "Clients, servers and connections",
            [
              entities("Clients", report.clients, [textColumn("Client", (row) => row.client)], omitted.clients),
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
      section("method", "How the figures are computed", [method(report)], "Method"),
    ],
  };
}

/** Returns true if the split of all time is the split of the time that the headline is about. */
function isOfSufferer({ answer, clients, servers, omitted }: SmbscopeReportDocument): boolean {
  const isOnly = clients.length + omitted.clients === 1 && servers.length + omitted.servers === 1;
  const isShared = (answer.causes[0]?.subject.clients ?? 0) > 1;
  return answer.culprit !== "nothing" && (isOnly || isShared);
}

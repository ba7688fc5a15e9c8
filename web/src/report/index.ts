// The page of a report, `smbscope.report/1`.
import { overTime } from "../charts/overtime";
import { lead, type Page, part, section } from "../lib/page";
import { pathColumn, textColumn } from "../table/columns";
import type { SmbscopeReportDocument } from "../types/report";
import { caching } from "./caching";
import { connectionTable } from "./connections";
import { episodes } from "./episodes";
import { keyFigures, origin, timeSplit, title, verdict } from "./facts";
import { errorEntries } from "./figures";
import { findings } from "./findings";
import { cumulative, groupTable, loadCurve } from "./groups";
import { method } from "./method";
import { negotiations, smb1Notice } from "./negotiation";
import { quality } from "./quality";
import { slicesTable } from "./slices";
import { slowestTable } from "./slowest";
import { commandFigures, commandTable, entities, errorTable } from "./tables";

export function reportPage(report: SmbscopeReportDocument): Page {
  const { heatmap, totals, omitted } = report;
  const timed = heatmap.bins.length > 0 && totals.first_ns !== null && totals.last_ns !== null;
  const spread = cumulative(report.groups);
  const load = loadCurve(report.concurrency);
  const errors = errorTable(errorEntries(report.commands));
  const empty = totals.commands === 0;
  return {
    title: title(report),
    facts: [smb1Notice(report), origin(report), verdict(report), findings(report), keyFigures(report)],
    version: report.generator.version,
    sections: [
      section("time", "Over time", [
        timed && overTime(heatmap, totals.first_ns ?? 0, totals.last_ns ?? 0),
        load &&
          part(
            "Response time under load",
            lead(
              "Intervals of the heat map, sorted by the number of outstanding commands. Where response time climbs and throughput does not, the server has reached its limit.",
            ),
            load,
          ),
      ]),
      episodes(report),
      section("slices", "Breakdown", [report.slices && slicesTable(report.slices)]),
      section(
        "groups",
        "Groups of commands",
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
              lead("Packet numbers are those of Wireshark; press them to copy its display filter for the command."),
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
      section("where", "Where the time went", timeSplit(report)),
      section("quality", "Quality of the capture", [quality(report)], "Quality"),
      section("method", "How it was computed", [method(report)], "Method"),
    ],
  };
}

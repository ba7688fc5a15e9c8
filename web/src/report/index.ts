// The page of a report, `smbscope.report/1`.
import { overTime } from "../charts/overtime";
import { headPart, lead, type Page, part, section } from "../lib/page";
import { textColumn } from "../table/columns";
import type { SmbscopeReportDocument } from "../types/report";
import { connectionTable } from "./connections";
import { keyFigures, origin, timeSplit, title, verdict } from "./facts";
import { cumulative, groupTable, loadCurve } from "./groups";
import { method } from "./method";
import { quality } from "./quality";
import { slicesTable } from "./slices";
import { slowestTable } from "./slowest";
import { commandTable, entities, errorTable } from "./tables";

export function reportPage(report: SmbscopeReportDocument): Page {
  const { heatmap, totals, omitted } = report;
  const facts = [origin(report), verdict(report), keyFigures(report), timeSplit(report)];
  const groups = headPart("Response times by group", groupTable(report));
  const timed = heatmap.bins.length > 0 && totals.first_ns !== null && totals.last_ns !== null;
  const distribution = cumulative(report);
  const load = loadCurve(report);
  const errors = errorTable(report);
  const empty = totals.commands === 0;
  return {
    title: title(report),
    facts: [...facts, groups],
    version: report.generator.version,
    sections: [
      section("time", "Over time", [timed && overTime(heatmap, totals.first_ns ?? 0, totals.last_ns ?? 0)]),
      distribution &&
        section(
          "distribution",
          "Latency distribution",
          [lead("Cumulative share of the commands of each group by response time."), distribution],
          "Distribution",
        ),
      load &&
        section(
          "load",
          "Response time under load",
          [
            lead(
              "Intervals of the heat map, sorted by the number of outstanding commands. Where response time climbs and throughput does not, the server has reached its limit.",
            ),
            load,
          ],
          "Load",
        ),
      section("slices", "Breakdown", [report.slices && slicesTable(report.slices)]),
      empty ? null : section("commands", "Commands", [commandTable(report), errors && part("Errors", errors)]),
      report.slowest.length > 0
        ? section(
            "slowest",
            "Slowest commands",
            [
              lead("Packet numbers are those that Wireshark shows for the file. The copied text is a display filter."),
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
                [textColumn("Path", (row) => row.path), textColumn("Share", (row) => row.share, { width: 14 })],
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
      section("quality", "Quality of the capture", [quality(report)], "Quality"),
      section("method", "How it was computed", [method(report)], "Method"),
    ],
  };
}

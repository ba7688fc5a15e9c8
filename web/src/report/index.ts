// The page of a report, `smbscope.report/1`.
import { overTime } from "../charts/overtime";
import { headPart, lead, type Page, part } from "../lib/page";
import { textColumn } from "../table/columns";
import type { SmbscopeReportDocument } from "../types/report";
import { connectionTable } from "./connections";
import { keyFigures, origin, timeSplit, title, verdict } from "./facts";
import { cumulative, groupTable, loadCurve } from "./groups";
import { method } from "./method";
import { quality } from "./quality";
import { slicesTable } from "./slices";
import { slowestTable } from "./slowest";
import { commandTable, entityTable, errorTable } from "./tables";

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
      timed
        ? {
            id: "time",
            title: "Over time",
            content: [overTime(heatmap, totals.first_ns ?? 0, totals.last_ns ?? 0)],
          }
        : null,
      distribution
        ? {
            id: "distribution",
            title: "How response times spread",
            link: "Distribution",
            content: [lead("The share of the commands of a group that were answered within a time."), distribution],
          }
        : null,
      load
        ? {
            id: "load",
            title: "Response time under load",
            link: "Load",
            content: [
              lead(
                "Intervals of the heat map, sorted by how many commands were under way. Where response time climbs and throughput does not, the limit is reached.",
              ),
              load,
            ],
          }
        : null,
      report.slices ? { id: "slices", title: "Breakdown", content: [slicesTable(report.slices)] } : null,
      empty
        ? null
        : {
            id: "commands",
            title: "Commands",
            content: [commandTable(report), errors ? part("Errors", errors) : null],
          },
      report.slowest.length > 0
        ? {
            id: "slowest",
            title: "Slowest commands",
            link: "Slowest",
            content: [
              lead("Packet numbers are those that Wireshark shows for the file. The copied text is a display filter."),
              slowestTable(report),
            ],
          }
        : null,
      empty
        ? null
        : {
            id: "who",
            title: "Files, shares and users",
            link: "Files",
            content: [
              part(
                "Files",
                entityTable(
                  "Files",
                  report.files,
                  [textColumn("Path", (row) => row.path), textColumn("Share", (row) => row.share, { width: 14 })],
                  omitted.files,
                ),
              ),
              part(
                "Shares",
                entityTable("Shares", report.shares, [textColumn("Share", (row) => row.share)], omitted.shares),
              ),
              part("Users", entityTable("Users", report.users, [textColumn("User", (row) => row.user)], omitted.users)),
            ],
          },
      report.connections.length > 0
        ? {
            id: "hosts",
            title: "Clients, servers and connections",
            link: "Connections",
            content: [
              part(
                "Clients",
                entityTable("Clients", report.clients, [textColumn("Client", (row) => row.client)], omitted.clients),
              ),
              part(
                "Servers",
                entityTable(
                  "Servers",
                  report.servers,
                  [
                    textColumn("Server", (row) =>
                      row.server_port === null ? row.server : `${row.server}:${row.server_port}`,
                    ),
                  ],
                  omitted.servers,
                ),
              ),
              part("Connections", connectionTable(report)),
            ],
          }
        : null,
      { id: "quality", title: "Quality of the capture", link: "Quality", content: [quality(report)] },
      { id: "method", title: "How it was computed", link: "Method", content: [method(report)] },
    ],
  };
}

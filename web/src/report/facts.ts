// Captures, key figures and the time split.
import { splitFigure } from "../charts/split";
import { type Child, h } from "../lib/dom";
import { bytes, counted, date, duration, percent, perSecond, rate, span, thousands } from "../lib/format";
import { facts, lead, tile, tiles } from "../lib/page";
import type { SmbscopeReportDocument } from "../types/report";
import { waited } from "./figures";

export function title(report: SmbscopeReportDocument): string {
  return report.title ? `SMB response times: ${report.title}` : "SMB response times";
}

/** Lists captures, time and filter below the title. */
export function origin(report: SmbscopeReportDocument): HTMLElement {
  const { captures, totals, filter, matched } = report;
  const chosen = matched
    ? `: ${thousands(matched.exchanges)} of ${counted(matched.of, "command")}; quality and connections are about the whole capture`
    : "";
  const names = captures.slice(0, 4).map((capture) => h("span", { class: "name" }, capture.name));
  const more = captures.length > 4 ? [`and ${counted(captures.length - 4, "more", "more")}`] : [];
  const when: Child =
    totals.first_ns === null ? "no packets" : `${date(totals.first_ns)} UTC, ${span(totals.elapsed_ns)}`;
  return facts([
    [captures.length === 1 ? "Capture" : "Captures", h("span", { class: "names" }, ...names, ...more)],
    ["Time", when],
    ...(filter === null ? [] : [["Only", h("span", {}, h("code", {}, filter), chosen)] as [string, Child]]),
  ]);
}

export function keyFigures(report: SmbscopeReportDocument): HTMLElement {
  const { headline, load, commands } = report.totals;
  const time = headline.response_time;
  const ifKnown = (value: number | null, show: (value: number) => string) => (value === null ? undefined : show(value));
  return tiles(
    tile("Commands", thousands(commands), ifKnown(load.commands_per_second, perSecond)),
    tile("Median", duration(time.p50)),
    tile("p95", duration(time.p95)),
    tile("p99", duration(time.p99)),
    tile("Slowest", duration(time.max)),
    tile("Total wait", span(waited(time)), `mean ${duration(time.mean)}`),
    tile("Read", bytes(load.bytes_read), ifKnown(load.read_bytes_per_second, rate)),
    tile("Written", bytes(load.bytes_written), ifKnown(load.written_bytes_per_second, rate)),
    tile("Errors", thousands(load.errors), percent(load.errors, commands)),
  );
}

export function timeSplit(report: SmbscopeReportDocument): HTMLElement[] {
  const split = report.time_split;
  const intro = `Total time of ${counted(split.connections, "connection")}: ${span(split.elapsed_ns)}.`;
  return [lead(intro), splitFigure(split, "Where the time went")];
}

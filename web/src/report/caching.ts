// Oplocks and leases granted to opens, and repeated reads of unchanged data.
import { bytes, counted, percent, thousands } from "../lib/format";
import { lead, part } from "../lib/page";
import { bytesColumn, type Column, countColumn, pathColumn, textColumn } from "../table/columns";
import { grid } from "../table/grid";
import { table } from "../table/table";
import type { FileRereads, SmbscopeReportDocument } from "../types/report";

export function caching(report: SmbscopeReportDocument): (HTMLElement | null)[] {
  const { opens, unknown_opens: unknown } = report.caching;
  return [opens.length > 0 ? opensPart(opens, unknown) : null, rereads(report)];
}

function opensPart(opens: SmbscopeReportDocument["caching"]["opens"], unknown: number): HTMLElement {
  const all = opens.reduce((sum, { count }) => sum + count, unknown);
  const rows: [string, number][] = opens.map(({ granted, count }) => [granted, count]);
  if (unknown > 0) rows.push(["not captured", unknown]);
  return part(
    "Opens by oplock or lease",
    grid({
      caption: "Opens by granted oplock or lease",
      columns: [["Granted"], ["Opens", "number"], ["Share", "number"]],
      rows: rows.map(([granted, count]) => [granted, thousands(count), percent(count, all)]),
      kind: "grid small",
    }),
  );
}

function rereads({ caching }: SmbscopeReportDocument): HTMLElement | null {
  const { repeated, reads, bytes_read: all, files } = caching;
  if (repeated.reads === 0) return null;
  const columns: Column<FileRereads>[] = [
    pathColumn((row) => row.path),
    bytesColumn("Bytes", (row) => row.bytes),
    countColumn("Repeated", (row) => row.reads, { help: "Reads of data that the session had already read" }),
    countColumn("Cacheable", (row) => row.cacheable_reads, {
      help: "Repeated reads under an oplock or lease that allowed the client to cache the data",
    }),
    textColumn("Share", (row) => row.share, { width: 14 }),
    textColumn("Client", (row) => row.client, { width: 14 }),
  ];
  return part(
    "Repeated reads",
    lead(
      `${thousands(repeated.reads)} of ${counted(reads, "read")} (${percent(repeated.bytes, all)} of ${bytes(all)}) returned data that the client had already read and that did not change during the capture. For ${thousands(repeated.cacheable_reads)} of them, an oplock or lease allowed the client to cache the data.`,
    ),
    table({ caption: "Repeated reads", columns, rows: files, sort: { title: "Bytes", descending: true } }),
  );
}

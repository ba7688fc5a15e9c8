// Oplocks and leases granted to opens, and repeated reads of unchanged data.
import { bytes, counted, percent, thousands } from "../lib/format";
import { part, wholeLead } from "../lib/page";
import { clientSelection, fileSelection, namesTests, shareSelection } from "../lib/selection";
import { bytesColumn, type Column, countColumn, pathColumn, selectColumn, textColumn } from "../table/columns";
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
    selectColumn(
      pathColumn((row) => row.path),
      (row) => fileSelection(row.path, row.share),
    ),
    bytesColumn("Bytes", (row) => row.bytes),
    countColumn("Repeated", (row) => row.reads, { help: "Reads of data that the session had already read" }),
    countColumn("Cacheable", (row) => row.cacheable_reads, {
      help: "Repeated reads under an oplock or lease that allowed the client to cache the data",
    }),
    selectColumn(
      textColumn("Share", (row) => row.share, { width: 14 }),
      ({ share }) => (share === null ? null : shareSelection(share)),
    ),
    selectColumn(
      textColumn("Client", (row) => row.client, { width: 14 }),
      (row) => clientSelection(row.client),
    ),
  ];
  return part(
    "Repeated reads",
    wholeLead(
      `${thousands(repeated.reads)} of ${counted(reads, "read")} (${percent(repeated.bytes, all)} of ${bytes(all)}) returned data that the client had already read and that did not change during the capture. For ${thousands(repeated.cacheable_reads)} of them, an oplock or lease allowed the client to cache the data.`,
    ),
    table({
      caption: "Repeated reads",
      columns,
      rows: files,
      sort: { title: "Bytes", descending: true },
      only: namesTests(),
    }),
  );
}

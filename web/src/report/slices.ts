// A breakdown that was asked for on the command line: a row for each combination of keys.

import { h } from "../lib/dom";
import { span, thousands } from "../lib/format";
import { lead } from "../lib/page";
import { bytesColumn, type Column, countColumn, numberColumn, textColumn, timeColumn } from "../table/columns";
import { table } from "../table/table";
import type { Times } from "../types/report";
import { errorCount, waited } from "./figures";

/** What is read of the document; further keys are left alone. */
export interface Slices {
  by: string[];
  sort?: string;
  entries: Slice[];
  omitted?: number;
}

interface Slice {
  key: Record<string, string | null>;
  count: number;
  errors?: number | Record<string, number>;
  bytes_read?: number;
  bytes_written?: number;
  request_bytes?: number;
  response_bytes?: number;
  response_time: Times;
}

export function slicesTable(slices: Slices): HTMLElement {
  const has = (key: keyof Slice) => slices.entries.some((entry) => entry[key] !== undefined);
  const errors = (row: Slice) =>
    row.errors === undefined ? null : typeof row.errors === "number" ? row.errors : errorCount({ errors: row.errors });
  const columns: Column<Slice>[] = [
    ...slices.by.map((key) =>
      textColumn<Slice>(key.charAt(0).toUpperCase() + key.slice(1), (row) => row.key[key] ?? null),
    ),
    countColumn("Commands", (row) => row.count),
    ...(has("errors") ? [countColumn<Slice>("Errors", errors)] : []),
    ...(has("bytes_read") ? [bytesColumn<Slice>("Read", (row) => row.bytes_read ?? null)] : []),
    ...(has("bytes_written") ? [bytesColumn<Slice>("Written", (row) => row.bytes_written ?? null)] : []),
    timeColumn("p50", (row) => row.response_time.p50),
    timeColumn("Mean", (row) => row.response_time.mean),
    timeColumn("p95", (row) => row.response_time.p95),
    timeColumn("p99", (row) => row.response_time.p99),
    timeColumn("Slowest", (row) => row.response_time.max),
    numberColumn("Waited", (row) => waited(row.response_time), span, {
      exported: "Waited (ns)",
      help: "Sum of the response times",
    }),
  ];
  const note = slices.omitted ? `${thousands(slices.omitted)} further combinations are left out.` : undefined;
  return h(
    "div",
    {},
    lead(`By ${slices.by.join(", ")}.`),
    table({ caption: `Breakdown by ${slices.by.join(", ")}`, columns, rows: slices.entries, note }),
  );
}

// The breakdown requested with --by: one row per combination of keys.
import { h } from "../lib/dom";
import { bytes, counted, span, thousands } from "../lib/format";
import { wholeLead } from "../lib/page";
import type { RowTests, Selection } from "../lib/selection";
import {
  bytesColumn,
  type Column,
  countColumn,
  serviceColumn,
  textColumn,
  timesColumns,
  waitedColumn,
} from "../table/columns";
import { table } from "../table/table";
import type { SliceListing } from "../types/report";

type Slice = SliceListing["entries"][number];

/** Column headings of the figures that slices can be sorted by. */
const SORTED: { [sort in SliceListing["sort"]]?: string } = {
  response_time: "Total wait",
  count: "Commands",
  errors: "Errors",
  mean: "Mean",
  p50: "p50",
  p95: "p95",
  p99: "p99",
  max: "Slowest",
};

export function slicesTable(slices: SliceListing): HTMLElement {
  const { by, entries, other, missed_at_most_ns: missed } = slices;
  const rows: Slice[] = other ? [...entries, { ...other, key: {}, missed_at_most_ns: 0 }] : entries;
  const key = (name: string) => (row: Slice) => keyText(name, row.key);
  const columns: Column<Slice>[] = [
    ...by.map((name) => textColumn<Slice>(name.charAt(0).toUpperCase() + name.slice(1), key(name))),
    waitedColumn((row) => row.response_time_sum_ns),
    countColumn("Commands", (row) => row.count),
    countColumn("Errors", (row) => row.errors),
    bytesColumn("Read", (row) => row.bytes_read),
    bytesColumn("Written", (row) => row.bytes_written),
    ...timesColumns<Slice>((row) => row.response_time),
    serviceColumn<Slice>(),
  ];
  const note =
    missed > 0
      ? `More combinations occurred than were kept. Each one not listed has a total wait of at most ${span(missed)}.`
      : undefined;
  return h(
    "div",
    {},
    wholeLead(
      `By ${by.join(", ")}: ${counted(entries.length, "combination")}, sorted by ${slices.sort.replaceAll("_", " ")}.`,
    ),
    table({
      caption: `Breakdown by ${by.join(", ")}`,
      columns,
      rows,
      sort: { title: SORTED[slices.sort] ?? "", descending: true },
      note,
      only: sliceTests(by),
    }),
  );
}

/** Creates the tests of slices for the dimensions that they have. */
function sliceTests(by: SliceListing["by"]): RowTests<Slice> {
  const has = (name: (typeof by)[number]) => by.includes(name);
  const client = (row: Slice, { name }: Selection) => row.key.client === name;
  const share = (row: Slice, { name }: Selection) => row.key.share === name;
  const file = (row: Slice, selection: Selection) =>
    row.key.file === selection.name && (!("share" in row.key) || row.key.share === selection.share);
  return { ...(has("client") && { client }), ...(has("share") && { share }), ...(has("file") && { file }) };
}

/** Formats the key of a slice. Joins a share and its file or directory. */
export function sliceName(key: Record<string, string | number | null>): string {
  const parts = Object.keys(key).map((name) => [name, keyText(name, key) ?? "(unknown)"] as const);
  return parts.reduce((text, [name, part], i) => {
    const onShare = parts[i - 1]?.[0] === "share" && (name === "file" || name === "directory");
    return i === 0 ? part : `${text}${onShare ? "\\" : ", "}${part}`;
  }, "");
}

/** Formats one part of a key. */
export function keyText(name: string, key: Record<string, string | number | null>): string | null {
  const value = key[name];
  if (value === undefined) return "(other)";
  if (value === null) return null;
  if (name === "size" && typeof value === "number") {
    return value === 0 ? "none" : `${bytes(value)} to ${bytes(value * 2)}`;
  }
  if (typeof value === "number") return thousands(value);
  if (value !== "") return value;
  return name === "directory" ? "(root)" : "(none)";
}

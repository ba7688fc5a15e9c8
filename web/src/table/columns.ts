// What a table shows of a row, what it sorts by and what it gives away.
import { type Child, h, muted } from "../lib/dom";
import { ABSENT, bytes, duration, percent, span, thousands } from "../lib/format";

/** What a cell sorts by: numbers before texts, the unknown always last. */
export type Value = number | string | null;

export interface Column<Row> {
  /** Heading; short. */
  title: string;
  /** What it means, where the heading alone does not say it. */
  help?: string;
  /** Heading in copies and downloads, with the unit; otherwise the title. */
  exported?: string;
  kind: "text" | "number" | "other";
  value(row: Row): Value;
  /** What is shown; otherwise the value. */
  text?(row: Row): string;
  /** A cell that is more than a text. */
  cell?(row: Row): Child;
  /** Width in characters, of texts the most; otherwise what the values need. */
  width?: number;
  /** Too long for its cell, it is cut at the start: the end of a path names the file. */
  cutStart?: boolean;
  /** Not in copies and downloads. */
  private?: boolean;
  /** Not on paper: a button does nothing there. */
  screenOnly?: boolean;
}

export function textColumn<Row>(
  title: string,
  value: (row: Row) => string | null,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  const text = (row: Row) => value(row) ?? ABSENT;
  return { title, kind: "text", value, text, ...more };
}

/** A path: its end is what tells it from others. */
export function pathColumn<Row>(value: (row: Row) => string | null, more: Partial<Column<Row>> = {}): Column<Row> {
  return textColumn("Path", value, { cutStart: true, ...more });
}

export function countColumn<Row>(
  title: string,
  value: (row: Row) => number | null,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return numberColumn(title, value, thousands, more);
}

export function timeColumn<Row>(
  title: string,
  value: (row: Row) => number | null,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return numberColumn(title, value, duration, { exported: `${title} (ns)`, ...more });
}

export function bytesColumn<Row>(
  title: string,
  value: (row: Row) => number | null,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return numberColumn(title, value, bytes, { exported: `${title} (bytes)`, ...more });
}

/** A share as a number between 0 and 1. */
export function shareColumn<Row>(
  title: string,
  value: (row: Row) => number | null,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return numberColumn(title, value, (share) => percent(share, 1), more);
}

/** Commands in a second. */
export function speedColumn<Row>(value: (row: Row) => number | null): Column<Row> {
  return numberColumn("Commands/s", value, (n) => thousands(Math.round(n)));
}

/** A sum of times that somebody waited. */
export function waitedColumn<Row>(value: (row: Row) => number | null, help = "Sum of the response times"): Column<Row> {
  return numberColumn("Total wait", value, span, { exported: "Total wait (ns)", help });
}

/** The share of all the time that somebody waited, as a number with a bar. */
export function waitedShareColumn<Row>(value: (row: Row) => number | null): Column<Row> {
  return shareColumn("Share", value, {
    help: "Share of the total wait, without expected waits",
    width: 12,
    cell: (row) => {
      const share = value(row);
      if (share === null) return muted();
      const bar = h("span", { style: `width: ${(100 * share).toFixed(2)}%` });
      return h(
        "span",
        { class: "share" },
        h("span", { class: "share-bar", "aria-hidden": "true" }, bar),
        h("span", { class: "share-text" }, percent(share, 1)),
      );
    },
  });
}

/** The figures of response times that most tables show. */
export function timesColumns<Row>(
  times: (row: Row) => { [figure in "p50" | "mean" | "p95" | "p99" | "max"]: number | null },
): Column<Row>[] {
  return [
    timeColumn("p50", (row) => times(row).p50),
    timeColumn("Mean", (row) => times(row).mean),
    timeColumn("p95", (row) => times(row).p95),
    timeColumn("p99", (row) => times(row).p99),
    timeColumn("Slowest", (row) => times(row).max),
  ];
}

/** The median of the service time. */
export function serviceColumn<Row extends { service_time?: { p50: number | null } }>(): Column<Row> {
  return timeColumn("Service", (row) => row.service_time?.p50 ?? null, {
    help: "Median from the last packet of the request to the first of the response",
    exported: "Service p50 (ns)",
  });
}

export function numberColumn<Row>(
  title: string,
  value: (row: Row) => number | null,
  show: (value: number) => string,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  const text = (row: Row) => {
    const found = value(row);
    return found === null ? ABSENT : show(found);
  };
  return { title, kind: "number", value, text, ...more };
}

/** The text of a cell. */
export function cellText<Row>(column: Column<Row>, row: Row): string {
  if (column.text) return column.text(row);
  const value = column.value(row);
  return value === null ? ABSENT : String(value);
}

/** Compares for sorting; the unknown comes last in either direction. */
export function compare(a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  return descending ? -order : order;
}

/** Names as people sort them: 10.0.0.9 before 10.0.0.10. The same everywhere, so not by the reader's language. */
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** The rows in a new order; equals keep theirs. */
export function sorted<Row>(rows: readonly Row[], column: Column<Row>, descending: boolean): Row[] {
  const keyed = rows.map((row) => ({ row, value: column.value(row) }));
  return keyed.sort((a, b) => compare(a.value, b.value, descending)).map(({ row }) => row);
}

/** Whether a text cell holds every word that is looked for. */
export function matches<Row>(columns: readonly Column<Row>[], row: Row, words: readonly string[]): boolean {
  const texts = columns.filter((column) => column.kind === "text").map((column) => cellText(column, row).toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

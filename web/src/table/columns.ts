// Columns: what a table displays, sorts by and exports.
import { type Child, h, muted } from "../lib/dom";
import { ABSENT, bytes, duration, percent, span, thousands } from "../lib/format";
import { type Selection, selectButton } from "../lib/selection";

/** Sort key of a cell. Unknown values are always last. */
export type Value = number | string | null;

export interface Column<Row> {
  title: string;
  /** Tooltip of the heading. */
  help?: string;
  /** Heading in copies and downloads, with the unit. Defaults to the title. */
  exported?: string;
  kind: "text" | "number" | "other";
  value(row: Row): Value;
  /** Displayed text. Defaults to the value. */
  text?(row: Row): string;
  /** Content of the cell, if it is more than text. */
  cell?(row: Row): Child;
  /** Width in characters; for text, the maximum. Defaults to the width of the values. */
  width?: number;
  /** Truncates long text at the start: the end of a path names the file. */
  cutStart?: boolean;
  /** Excluded from copies and downloads. */
  private?: boolean;
  /** Excluded from print. */
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

export function pathColumn<Row>(value: (row: Row) => string | null, more: Partial<Column<Row>> = {}): Column<Row> {
  return textColumn("Path", value, { cutStart: true, ...more });
}

/** Makes the cells of a column select what they name. Null for a row that names nothing. */
export function selectColumn<Row>(column: Column<Row>, selection: (row: Row) => Selection | null): Column<Row> {
  const cell = (row: Row) => {
    const text = cellText(column, row);
    const content = column.cutStart ? h("bdi", { dir: "ltr" }, text) : text;
    const found = selection(row);
    return found ? selectButton(found, content) : content;
  };
  return { ...column, cell };
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

/** Creates a column of shares between 0 and 1. */
export function shareColumn<Row>(
  title: string,
  value: (row: Row) => number | null,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return numberColumn(title, value, (share) => percent(share, 1), more);
}

export function speedColumn<Row>(value: (row: Row) => number | null): Column<Row> {
  return numberColumn("Commands/s", value, (n) => thousands(Math.round(n)));
}

export function waitedColumn<Row>(value: (row: Row) => number | null, help = "Sum of response times"): Column<Row> {
  return numberColumn("Total wait", value, span, { exported: "Total wait (ns)", help });
}

/** Creates the column of shares of the total wait, with bars. */
export function waitedShareColumn<Row>(value: (row: Row) => number | null): Column<Row> {
  return shareColumn("Share", value, {
    help: "Share of the total wait, excluding expected waits",
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

/** Creates the columns of response times that most tables have. */
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

export function serviceColumn<Row extends { service_time?: { p50: number | null } }>(): Column<Row> {
  return timeColumn("Service", (row) => row.service_time?.p50 ?? null, {
    help: "Median time from the last packet of the request to the first packet of the response",
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

export function cellText<Row>(column: Column<Row>, row: Row): string {
  if (column.text) return column.text(row);
  const value = column.value(row);
  return value === null ? ABSENT : String(value);
}

/** Compares for sorting. Unknown values are last in either direction. */
export function compare(a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  return descending ? -order : order;
}

/** Natural order: 10.0.0.9 before 10.0.0.10. Independent of the reader's locale. */
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Sorts rows. The sort is stable. */
export function sorted<Row>(rows: readonly Row[], column: Column<Row>, descending: boolean): Row[] {
  const keyed = rows.map((row) => ({ row, value: column.value(row) }));
  return keyed.sort((a, b) => compare(a.value, b.value, descending)).map(({ row }) => row);
}

/** Returns true if each word is in some text cell. */
export function matches<Row>(columns: readonly Column<Row>[], row: Row, words: readonly string[]): boolean {
  const texts = columns.filter((column) => column.kind === "text").map((column) => cellText(column, row).toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

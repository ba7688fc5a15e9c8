// Exports tables for spreadsheets: raw numbers, and names that cannot run as formulas.
import type { Column, Value } from "./columns";

/** Exports tab-separated text for the clipboard. */
export function tsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return lines(columns, rows, (text) => text.replace(/[\t\r\n]+/g, " "), "\t");
}

/** Exports CSV with a header line (RFC 4180). */
export function csv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return lines(columns, rows, (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text), ",");
}

function lines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  quoted: (text: string) => string,
  separator: string,
): string {
  const shown = columns.filter((column) => !column.private);
  const heading = shown.map((column) => quoted(column.exported ?? column.title));
  const body = rows.map((row) => shown.map((column) => quoted(plain(column.value(row)))));
  return [heading, ...body].map((cells) => `${cells.join(separator)}\r\n`).join("");
}

/** Escapes texts that a spreadsheet would run as a formula: a file may be called `=cmd|…`. */
function plain(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  return /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
}

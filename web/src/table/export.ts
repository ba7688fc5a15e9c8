// Tables as text for spreadsheets: raw numbers, and names that no spreadsheet takes for a formula.
import type { Column, Value } from "./columns";

/** Tab-separated, for the clipboard. */
export function tsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return lines(columns, rows, (text) => text.replace(/[\t\r\n]+/g, " "), "\t");
}

/** Comma-separated with a heading, as RFC 4180 has it. */
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

/** A text that begins like a formula would be run by a spreadsheet: a file may be called `=cmd|…`. */
function plain(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  return /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
}

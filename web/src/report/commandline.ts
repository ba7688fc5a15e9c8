// Command lines for the captures of a report, ready to paste.
import { clean } from "../lib/format";
import type { SmbscopeReportDocument } from "../types/report";

/** Number of captures that a command names. */
const NAMED = 4;

type Source = Pick<SmbscopeReportDocument, "captures" | "filter">;

/** Builds `smbscope analyze --filter '…' OPTIONS capture.pcap`. Keeps the filter of the report and adds tests to it. */
export function analyzeCommand({ captures, filter }: Source, options: string, tests: readonly string[] = []): string {
  const own = filter === null ? [] : [tests.length > 0 ? `(${filter})` : filter];
  const expression = [...own, ...tests].join(" and ");
  const names = captures.map((capture) => capture.name);
  const isNamed = names.length > 0 && names.length <= NAMED && names.every((name) => name !== "-" && isPlain(name));
  const files = isNamed ? names.map(shellWord) : ["FILE"];
  const filtered = expression === "" ? [] : ["--filter", shellWord(expression)];
  return ["smbscope analyze", ...filtered, options, ...files].join(" ");
}

/** Returns false for a text that does more in a terminal than it shows. */
export function isPlain(text: string): boolean {
  return clean(text) === text;
}

/** Quotes a value of a filter, as docs/filter.md describes. */
export function filterValue(value: string): string {
  return /[\s(),"'=!<>~&|*?]/.test(value) || value === "" ? `"${value.replaceAll('"', '""')}"` : value;
}

/** Quotes a word for a POSIX shell. */
function shellWord(text: string): string {
  const word = text.startsWith("-") ? `./${text}` : text;
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

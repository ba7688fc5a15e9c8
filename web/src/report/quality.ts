// Capture quality: every counter with its meaning. Counters at zero are collapsed.
import { h } from "../lib/dom";
import { bytes, percent, thousands } from "../lib/format";
import { facts, lead, list, meanings, part } from "../lib/page";
import { bytesColumn, type Column, countColumn, textColumn } from "../table/columns";
import { scrollingGrid } from "../table/grid";
import { table } from "../table/table";
import { COUNTERS } from "../types/counters";
import type { CaptureInfo, EncapsulatedTraffic, SkippedProtocolEntry, SmbscopeReportDocument } from "../types/report";

type CounterName = keyof typeof COUNTERS;

const NAMES = Object.keys(COUNTERS) as CounterName[];

/** Counters that describe the size of the capture rather than damage. */
const SIZES = new Set<CounterName>([
  "packets",
  "wire_bytes",
  "captured_bytes",
  "tcp_packets",
  "smb_flow_packets",
  "not_tcp",
  "pure_acks",
]);

export function quality(report: SmbscopeReportDocument): HTMLElement {
  const counters = report.quality;
  const seen = NAMES.filter((name) => counters[name] > 0);
  const zero = NAMES.filter((name) => counters[name] === 0);
  const outcomes = Object.entries(report.totals.outcomes);
  return h(
    "div",
    {},
    lead(counters.sentence),
    report.warnings.length > 0 ? list(report.warnings, "warnings") : null,
    counterTable(report, seen),
    encapsulationTable(counters.encapsulations),
    skippedTable(counters.skipped),
    h(
      "details",
      { class: "no-print" },
      h("summary", {}, `${zero.length} counters at zero`),
      meanings(zero.map((name) => [words(name), COUNTERS[name]])),
    ),
    part(
      "How commands ended",
      facts(
        outcomes.map(([name, count]) => [
          words(name),
          `${thousands(count)} (${percent(count, report.totals.commands)})`,
        ]),
      ),
    ),
    part("Capture files", captureTable(report)),
  );
}

/** Formats `dropped_packets` as `Dropped packets`. */
export function words(name: string): string {
  const text = name
    .replaceAll("_", " ")
    .replace("tcp", "TCP")
    .replace("smb", "SMB")
    .replace(/^ip /, "IP ")
    .replace("netbios", "NetBIOS");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function counterTable(report: SmbscopeReportDocument, names: CounterName[]): HTMLElement {
  const counters = report.quality;
  const ordered = [...names.filter((name) => !SIZES.has(name)), ...names.filter((name) => SIZES.has(name))];
  const show = (name: CounterName) => (name.endsWith("_bytes") ? bytes(counters[name]) : thousands(counters[name]));
  return scrollingGrid({
    caption: "Quality counters",
    columns: [["Counter"], ["Count", "number"], ["Meaning"]],
    rows: ordered.map((name) => [words(name), show(name), COUNTERS[name].replaceAll("`", "")]),
    kind: "counters",
    rowKind: (i) => (SIZES.has(ordered[i] as CounterName) ? "" : "notable"),
  });
}

/** Lists SMB connections by the headers around them. */
function encapsulationTable(encapsulations: EncapsulatedTraffic[]): HTMLElement | null {
  if (encapsulations.length === 0) return null;
  const columns: Column<EncapsulatedTraffic>[] = [
    textColumn("Inside", (row) => row.headers),
    countColumn("Connections", (row) => row.connections),
    countColumn("Packets", (row) => row.packets),
  ];
  return part("Headers around SMB", table({ caption: "Headers around SMB", columns, rows: encapsulations }));
}

/** Lists ignored packets by protocol. */
function skippedTable(skipped: SkippedProtocolEntry[]): HTMLElement | null {
  if (skipped.length === 0) return null;
  const number = ({ layer, number }: SkippedProtocolEntry) => {
    if (number === null) return null;
    return /EtherType|GRE|PPP|SAP/.test(layer) ? `0x${number.toString(16).padStart(4, "0")}` : String(number);
  };
  const columns: Column<SkippedProtocolEntry>[] = [
    textColumn("Protocol", (row) => [row.layer, number(row), row.name && `(${row.name})`].filter(Boolean).join(" ")),
    countColumn("Packets", (row) => row.packets),
  ];
  return part("Ignored packets (not TCP)", table({ caption: "Ignored packets (not TCP)", columns, rows: skipped }));
}

function captureTable(report: SmbscopeReportDocument): HTMLElement {
  const columns: Column<CaptureInfo>[] = [
    textColumn("File", (row) => row.name),
    textColumn("Format", (row) => [row.format, row.compression].filter(Boolean).join(", ")),
    countColumn("Packets", (row) => row.packets),
    bytesColumn("Size", (row) => row.bytes),
    countColumn("Snap length", (row) => row.snap_length),
    textColumn("Warnings", (row) => (row.warnings.length > 0 ? row.warnings.join("; ") : null), { width: 30 }),
  ];
  return table({ caption: "Capture files", columns, rows: report.captures });
}

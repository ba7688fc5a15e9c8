// The tables: commands, errors, and who and what took part.
import { splitBar } from "../charts/split";
import { counted, decimal, percent, span } from "../lib/format";
import {
  bytesColumn,
  type Column,
  countColumn,
  numberColumn,
  shareColumn,
  textColumn,
  timeColumn,
} from "../table/columns";
import { table } from "../table/table";
import type { Command, SmbscopeReportDocument, Subcommand, TimeSplit, UserEntity } from "../types/report";
import { commandName, type ErrorEntry, errorCount, errorEntries, waited } from "./figures";

type CommandRow = Command | Subcommand;

export function commandTable(report: SmbscopeReportDocument): HTMLElement {
  const isCommand = (row: CommandRow): row is Command => "command" in row;
  const name = (row: CommandRow) => (isCommand(row) ? commandName(row) : row.subcommand);
  const columns: Column<CommandRow>[] = [
    textColumn("Command", name),
    countColumn("Count", (row) => row.count),
    shareColumn("%", (row) => row.count, report.totals.commands, {
      help: "Share of all commands",
      exported: "Count again",
      private: true,
    }),
    countColumn("Errors", errorCount),
    numberColumn("Packets", (row) => row.average_packets, decimal, {
      help: "Packets of a command, both halves, on average",
    }),
    timeColumn("Fastest", (row) => row.response_time.min),
    timeColumn("p50", (row) => row.response_time.p50),
    timeColumn("Mean", (row) => row.response_time.mean),
    timeColumn("p95", (row) => row.response_time.p95),
    timeColumn("p99", (row) => row.response_time.p99),
    timeColumn("Slowest", (row) => row.response_time.max),
    timeColumn("Service", (row) => row.service_time.p50, {
      help: "Median from the last packet of the request to the first of the response",
      exported: "Service p50 (ns)",
    }),
    numberColumn("Waited", commandWaited, span, {
      exported: "Waited (ns)",
      help: "Sum of the response times; waits by design are none",
    }),
  ];
  return table<CommandRow>({
    caption: "Commands",
    columns,
    rows: report.commands,
    children: (row) => (isCommand(row) ? [...row.subcommands, ...row.apart] : []),
    sort: { title: "Waited", descending: true },
  });
}

/** Waits by design are nothing that anybody waits for. */
function commandWaited(row: CommandRow): number | null {
  return "groups" in row && row.groups.includes("Waiting") ? null : waited(row.response_time);
}

export function errorTable(report: SmbscopeReportDocument): HTMLElement | null {
  const rows = errorEntries(report.commands);
  if (rows.length === 0) return null;
  const columns: Column<ErrorEntry>[] = [
    textColumn("Status", (row) => row.status),
    textColumn("Command", (row) => row.command),
    countColumn("Count", (row) => row.count),
    numberColumn(
      "Of the command",
      (row) => row.count / row.of,
      (share) => percent(share, 1),
      {
        help: "Share of the commands of that name that failed so",
      },
    ),
  ];
  return table({ caption: "Errors by status", columns, rows, sort: { title: "Count", descending: true } });
}

type Named = Omit<UserEntity, "user"> & { time_split?: TimeSplit | null };

/** A table of shares, files, users, clients or servers. */
export function entityTable<Row extends Named>(
  caption: string,
  rows: readonly Row[],
  names: Column<NoInfer<Row>>[],
  omitted: number,
): HTMLElement {
  const withSplit = rows.some((row) => row.time_split);
  const columns: Column<Row>[] = [
    ...names,
    countColumn("Commands", (row) => row.count),
    countColumn("Errors", (row) => row.errors),
    bytesColumn("Read", (row) => row.bytes_read),
    bytesColumn("Written", (row) => row.bytes_written),
    timeColumn("p50", (row) => row.response_time.p50, {
      help: "Exact up to some hundred commands, within 1.6 % above",
    }),
    timeColumn("Mean", (row) => row.response_time.mean),
    timeColumn("p95", (row) => row.response_time.p95, {
      help: "Exact up to some hundred commands, within 1.6 % above",
    }),
    timeColumn("Slowest", (row) => row.response_time.max),
    numberColumn("Waited", (row) => waited(row.response_time), span, {
      exported: "Waited (ns)",
      help: "Sum of the response times",
    }),
  ];
  if (withSplit) columns.push(splitColumn((row) => row.time_split ?? null));
  return table({ caption, columns, rows, sort: { title: "Waited", descending: true }, note: omittedNote(omitted) });
}

/** The time split as a bar; sorts by the share of the server. */
export function splitColumn<Row>(split: (row: Row) => TimeSplit | null): Column<Row> {
  return {
    title: "Where the time went",
    exported: "Server share",
    help: "Sorts by the share of the server in the time that somebody waited",
    kind: "other",
    width: 19,
    value: (row) => {
      const found = split(row);
      return found && found.busy_ns > 0 ? Number((found.server_ns / found.busy_ns).toFixed(4)) : null;
    },
    text: () => "",
    cell: (row) => splitBar(split(row)),
  };
}

export function omittedNote(omitted: number): string | undefined {
  if (omitted === 0) return undefined;
  return `${counted(omitted, "entry", "entries")} with the least waiting ${omitted === 1 ? "is" : "are"} left out to keep this file small; the JSON report has all.`;
}

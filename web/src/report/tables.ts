// The tables: commands, errors, and who and what took part.
import { splitBar } from "../charts/split";
import { counted, decimal } from "../lib/format";
import { part } from "../lib/page";
import {
  bytesColumn,
  type Column,
  countColumn,
  numberColumn,
  serviceColumn,
  shareColumn,
  textColumn,
  timeColumn,
  timesColumns,
  waitedColumn,
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
    shareColumn("%", (row) => (report.totals.commands > 0 ? row.count / report.totals.commands : 0), {
      help: "Share of all commands",
      private: true,
    }),
    countColumn("Errors", errorCount),
    numberColumn("Packets", (row) => row.average_packets, decimal, {
      help: "Packets of a command, both halves, on average",
    }),
    timeColumn("Fastest", (row) => row.response_time.min),
    ...timesColumns<CommandRow>((row) => row.response_time),
    serviceColumn<CommandRow>(),
    waitedColumn(commandWaited, "Sum of the response times; without expected waits"),
  ];
  return table<CommandRow>({
    caption: "Commands",
    columns,
    rows: report.commands,
    children: (row) => (isCommand(row) ? [...row.subcommands, ...row.apart] : []),
    sort: { title: "Total wait", descending: true },
  });
}

/** Expected waits are nothing that anybody waits for. */
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
    shareColumn("Of the command", (row) => row.count / row.of, {
      help: "Share of the commands of that name that failed so",
    }),
  ];
  return table({ caption: "Errors by status", columns, rows, sort: { title: "Count", descending: true } });
}

type Named = Omit<UserEntity, "user"> & { time_split?: TimeSplit | null };

/** A table of shares, files, users, clients or servers. */
export function entities<Row extends Named>(
  caption: string,
  rows: readonly Row[],
  names: Column<NoInfer<Row>>[],
  omitted: number,
): HTMLElement {
  const approximate = { help: "Exact up to some hundred commands, within 1.6 % above" };
  const columns: Column<Row>[] = [
    ...names,
    countColumn("Commands", (row) => row.count),
    countColumn("Errors", (row) => row.errors),
    bytesColumn("Read", (row) => row.bytes_read),
    bytesColumn("Written", (row) => row.bytes_written),
    timeColumn("p50", (row) => row.response_time.p50, approximate),
    timeColumn("Mean", (row) => row.response_time.mean),
    timeColumn("p95", (row) => row.response_time.p95, approximate),
    timeColumn("Slowest", (row) => row.response_time.max),
    waitedColumn((row) => waited(row.response_time)),
  ];
  if (rows.some((row) => row.time_split)) columns.push(splitColumn((row) => row.time_split ?? null));
  const sort = { title: "Total wait", descending: true };
  return part(caption, table({ caption, columns, rows, sort, note: omittedNote(omitted) }));
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

// Tables of commands, errors, files, users, clients and servers.
import { splitBar, splitsLegend } from "../charts/split";
import { counted, decimal } from "../lib/format";
import { part } from "../lib/page";
import type { RowTests } from "../lib/selection";
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
  waitedShareColumn,
} from "../table/columns";
import { table } from "../table/table";
import type { CommandEntry, SubcommandEntry, TimeSplit, Times, UserEntity } from "../types/report";
import { commandName, type ErrorEntry, errorCount, waited } from "./figures";

/** Figures of a command, from a capture or a load point. */
export interface CommandFigures extends Pick<SubcommandEntry, "count" | "errors"> {
  name: string;
  /** True for expected waits, which are excluded from the total wait. */
  waiting: boolean;
  response_time: Times;
  average_packets?: number | null;
  service_time?: Times;
  children: readonly this[];
}

export function commandFigures(commands: readonly CommandEntry[]): CommandFigures[] {
  const figures = (row: CommandEntry | SubcommandEntry, name: string, waiting: boolean): CommandFigures => ({
    ...row,
    name,
    waiting,
    children: [],
  });
  return commands.map((command) => {
    const waiting = command.groups.includes("Waiting");
    const below = [...command.subcommands, ...command.apart];
    const children = below.map((row) => figures(row, row.subcommand, waiting));
    return { ...figures(command, commandName(command), waiting), children };
  });
}

export function commandTable<Row extends CommandFigures>(rows: readonly Row[], more: Column<Row>[] = []): HTMLElement {
  const wait = (row: CommandFigures) => (row.waiting ? null : waited(row.response_time));
  const total = rows.reduce((sum, row) => sum + (wait(row) ?? 0), 0);
  const share = (row: CommandFigures) => (row.waiting || total === 0 ? null : waited(row.response_time) / total);
  const columns: Column<Row>[] = [
    textColumn("Command", (row) => row.name, { width: 28 }),
    waitedColumn(wait, "Sum of response times, excluding expected waits"),
    waitedShareColumn(share),
    countColumn("Commands", (row) => row.count),
    countColumn("Errors", errorCount),
    ...timesColumns<Row>((row) => row.response_time),
    timeColumn("Fastest", (row) => row.response_time.min),
    serviceColumn<Row>(),
    numberColumn("Packets", (row) => row.average_packets ?? null, decimal, {
      help: "Mean packets per command, request and response",
    }),
    ...more,
  ];
  return table({
    caption: "Commands",
    columns,
    rows,
    children: (row) => row.children,
    sort: { title: "Total wait", descending: true },
  });
}

export function errorTable(rows: readonly ErrorEntry[]): HTMLElement | null {
  if (rows.length === 0) return null;
  const columns: Column<ErrorEntry>[] = [
    textColumn("Status", (row) => row.status),
    countColumn("Count", (row) => row.count),
    shareColumn("Share", (row) => (row.of ? row.count / row.of : null), {
      help: "Share of these commands that failed with this status",
    }),
    textColumn("Command", (row) => row.command),
  ];
  return table({ caption: "Errors by status", columns, rows, sort: { title: "Count", descending: true } });
}

type Named = Omit<UserEntity, "user"> & { time_split?: TimeSplit | null };

/** Creates a table of shares, files, users, clients or servers. */
export function entities<Row extends Named>(
  caption: string,
  rows: readonly Row[],
  [name, ...more]: [Column<NoInfer<Row>>, ...Column<NoInfer<Row>>[]],
  omitted: number,
  only?: RowTests<NoInfer<Row>>,
): HTMLElement {
  const approximate = { help: "Exact up to a few hundred commands, otherwise within 1.6%" };
  const columns: Column<Row>[] = [
    name,
    waitedColumn((row) => waited(row.response_time)),
    ...more,
    countColumn("Commands", (row) => row.count),
    countColumn("Errors", (row) => row.errors),
    bytesColumn("Read", (row) => row.bytes_read),
    bytesColumn("Written", (row) => row.bytes_written),
    timeColumn("p50", (row) => row.response_time.p50, approximate),
    timeColumn("Mean", (row) => row.response_time.mean),
    timeColumn("p95", (row) => row.response_time.p95, approximate),
    timeColumn("Slowest", (row) => row.response_time.max),
  ];
  if (rows.some((row) => row.time_split)) columns.push(splitColumn((row) => row.time_split ?? null));
  const sort = { title: "Total wait", descending: true };
  return part(
    caption,
    table({
      caption,
      columns,
      rows,
      sort,
      legend: splitsLegend(rows.map(({ time_split }) => time_split)),
      note: omittedNote(omitted),
      only,
    }),
  );
}

/** Shows the time split as a bar. Sorts by the server's share. */
export function splitColumn<Row>(split: (row: Row) => TimeSplit | null): Column<Row> {
  return {
    title: "Where the time went",
    exported: "Server share",
    help: "Sorts by the server's share of the total wait",
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
  return `${counted(omitted, "entry", "entries")} with the shortest total wait ${omitted === 1 ? "is" : "are"} omitted to keep this file small. The JSON report lists all of them.`;
}

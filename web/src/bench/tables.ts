// Tables of a ramp.
import { INSIDE_SAMBA } from "../charts/server";
import { h } from "../lib/dom";
import { ABSENT, bytes, duration, percent, rate, thousands } from "../lib/format";
import { part } from "../lib/page";
import { type ErrorEntry, errorCount, total, waited } from "../report/figures";
import { type CommandFigures, commandTable, errorTable } from "../report/tables";
import {
  type Column,
  countColumn,
  numberColumn,
  shareColumn,
  speedColumn,
  textColumn,
  timeColumn,
  timesColumns,
  waitedColumn,
} from "../table/columns";
import { table } from "../table/table";
import type { BenchRun, ClientWireTimes, MeasuredCommand, OperationEntry, SmbscopeBenchDocument } from "../types/bench";
import { added } from "./charts";
import { byRate, headline, load, loadText } from "./load";

export function runTable(bench: SmbscopeBenchDocument): HTMLElement {
  const perSecond = (value: (run: BenchRun) => number) => (run: BenchRun) =>
    run.duration_ns > 0 ? (value(run) * 1e9) / run.duration_ns : null;
  const columns: Column<BenchRun>[] = [
    countColumn("Users", (row) => row.users),
    ...(byRate(bench)
      ? [countColumn<BenchRun>("Rate", (row) => load(bench, row), { help: "Operations per second" })]
      : []),
    countColumn("Commands", (row) => row.operations),
    speedColumn((row) => row.operations_per_second),
    numberColumn(
      "Read",
      perSecond((run) => run.bytes_read),
      rate,
      { exported: "Read (bytes/s)" },
    ),
    numberColumn(
      "Written",
      perSecond((run) => run.bytes_written),
      rate,
      { exported: "Written (bytes/s)" },
    ),
    ...timesColumns<BenchRun>(headline),
    ...(bench.runs.some((run) => run.due !== null)
      ? [
          timeColumn<BenchRun>("Commands p50", (row) => row.total.client.p50, {
            help: "Per command. The preceding columns are per operation, from the due time",
          }),
          timeColumn<BenchRun>("Commands p95", (row) => row.total.client.p95),
        ]
      : []),
    ...(bench.runs.some((run) => run.stalls.length > 0)
      ? [
          timeColumn<BenchRun>("Stall", (row) => Math.max(0, ...row.stalls.map((stall) => stall.duration_ns)) || null, {
            help: "Longest period with outstanding commands and no response",
          }),
        ]
      : []),
    countColumn("Errors", errorCount),
    numberColumn(
      "Client CPU",
      (row) => row.client_cpu?.percent ?? null,
      (n) => percent(n, 100),
      {
        help: "Of one processor, on the load generator. If this was the limit, the figures say nothing about the server",
        exported: "Client CPU (%)",
        cell: ({ client_cpu: cpu }) => {
          const text = cpu && percent(cpu.percent, 100);
          return cpu?.limited ? h("span", { class: "flag" }, `limit: ${text}`) : (text ?? ABSENT);
        },
      },
    ),
    timeColumn("CPU per command", (row) => row.client_cpu?.per_operation_ns ?? null, {
      help: "Processor time of the client per command",
    }),
    ...(bench.runs.some((run) => run.pace.loop === "open")
      ? [
          shareColumn<BenchRun>(
            "Kept",
            (row) => (row.pace.loop === "open" ? row.pace.rate_kept / row.pace.rate : null),
            {
              help: "Share of due operations that were completed",
            },
          ),
        ]
      : []),
    ...(bench.runs.some((run) => run.overload != null)
      ? [
          shareColumn<BenchRun>("Overload", (row) => (row.overload ? row.overload.percent / 100 : null), {
            help: "Share of due scenarios that started late, exceeded their budget or did not start",
          }),
        ]
      : []),
    ...(bench.runs.some((run) => run.ended.how !== "done")
      ? [textColumn<BenchRun>("Ended", (row) => ("why" in row.ended ? row.ended.why : row.ended.how))]
      : []),
  ];
  return table({
    caption: "Load points",
    columns,
    rows: bench.runs,
    sort: { title: "Users", descending: false },
    filter: false,
  });
}

type JobRow = BenchRun & { jobs: NonNullable<BenchRun["jobs"]> };

/** Lists complete passes of the workload by load point. Returns null if no pass was completed. */
export function jobsTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.runs.filter((run): run is JobRow => (run.jobs?.elapsed.count ?? 0) > 0);
  if (rows.length === 0) return null;
  const perSecond = (value: (row: JobRow) => number) => (row: JobRow) =>
    row.jobs.elapsed_sum_ns > 0 ? (value(row) * 1e9) / row.jobs.elapsed_sum_ns : null;
  const columns: Column<JobRow>[] = [
    textColumn("Load", (row) => loadText(bench, load(bench, row))),
    countColumn("Jobs", (row) => row.jobs.elapsed.count, {
      help: "Started in the measured part and completed",
    }),
    countColumn("Unfinished", (row) => row.jobs.unfinished, {
      help: "Cut off by the end of the load point or the session; not counted",
    }),
    timeColumn("Mean", (row) => row.jobs.elapsed.mean, { help: "From the first request to the last response" }),
    timeColumn("Std. deviation", (row) => row.jobs.elapsed.stddev),
    timeColumn("Fastest", (row) => row.jobs.elapsed.min),
    timeColumn("Slowest", (row) => row.jobs.elapsed.max),
    numberColumn(
      "Files/s",
      perSecond(({ jobs }) => jobs.files),
      (n) => n.toFixed(1),
      { help: "Files opened per second of a job" },
    ),
    numberColumn(
      "Data",
      perSecond(({ jobs }) => jobs.bytes_read + jobs.bytes_written),
      rate,
      { help: "Read and written per second of a job", exported: "Data (bytes/s)" },
    ),
    shareColumn(
      "Wait share",
      ({ jobs }) =>
        jobs.elapsed_sum_ns > 0 && jobs.waited_sum_ns !== null ? jobs.waited_sum_ns / jobs.elapsed_sum_ns : null,
      {
        help: "Share of the time with a command outstanding",
      },
    ),
  ];
  return table({ caption: "Jobs", columns, rows, filter: false });
}

type LaunchRow = NonNullable<BenchRun["jobs"]>["list"][number] & { number: number };

/** Lists the launches of a program. Returns null for a load. */
export function launchTable({ launch, runs, target }: SmbscopeBenchDocument): HTMLElement | null {
  const list = (runs[0]?.jobs?.list ?? []).map((job, at): LaunchRow => ({ ...job, number: at + 1 }));
  if (!launch || list.length === 0) return null;
  const seen = target.dialect !== "local";
  const known = (value: (row: LaunchRow) => number | null) => (row: LaunchRow) => (seen ? value(row) : null);
  const columns: Column<LaunchRow>[] = [
    textColumn("Launch", (row) => String(row.number)),
    timeColumn("Took", (row) => row.elapsed_ns, { help: "From the start of the program until it was ready" }),
    timeColumn(
      "Wait",
      known((row) => row.waited_ns),
      { help: "Time with a command outstanding" },
    ),
    shareColumn(
      "Wait share",
      known((row) => (row.waited_ns === null || row.elapsed_ns <= 0 ? null : row.waited_ns / row.elapsed_ns)),
    ),
    numberColumn(
      "Opens",
      known((row) => row.files),
      thousands,
    ),
    numberColumn(
      "Read",
      known((row) => row.bytes_read),
      bytes,
      { exported: "Read (bytes)" },
    ),
    numberColumn(
      "Written",
      known((row) => row.bytes_written),
      bytes,
      { exported: "Written (bytes)" },
    ),
  ];
  return table({ caption: "Launches", columns, rows: list, filter: false });
}

type ServerRow = BenchRun & { server: NonNullable<BenchRun["server"]> };

/** Lists the server metrics of each load point. Returns null if no run has metrics. */
export function serverTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.runs.filter((run): run is ServerRow => run.server !== null && run.server !== undefined);
  const source = rows[0]?.server.source;
  if (source === undefined) return null;
  const columns: Column<ServerRow>[] = [
    textColumn("Load", (row) => loadText(bench, load(bench, row))),
    ...serverColumns<ServerRow>(
      (row, name, of) => row.server.metrics.find(({ metric }) => metric === name)?.[of] ?? null,
    ),
  ];
  return table({ caption: `Server (${source}; means of one sample per second)`, columns, rows, filter: false });
}

/** Creates the columns of server metrics. */
export function serverColumns<Row>(
  value: (row: Row, metric: string, of: "mean" | "max") => number | null,
): Column<Row>[] {
  const metric =
    (name: string, of: "mean" | "max" = "mean") =>
    (row: Row) =>
      value(row, name, of);
  const share =
    (name: string, of: "mean" | "max" = "mean") =>
    (row: Row) => {
      const found = value(row, name, of);
      return found === null ? null : found / 100;
    };
  const bytesPerSecond = (title: string, name: string) =>
    numberColumn(title, metric(name), rate, { exported: `${title} (bytes/s)` });
  return [
    shareColumn("Server CPU", share("cpu"), { help: "Across all processors" }),
    shareColumn("CPU, maximum", share("cpu", "max"), { help: "Busiest second" }),
    shareColumn("Busiest processor", share("cpu_busiest")),
    shareColumn("Samba", share("samba_cpu"), { help: "Of one processor" }),
    shareColumn("Scanner", share("scanner_cpu"), { help: "Of one processor" }),
    numberColumn("Memory", metric("memory"), bytes, { help: "In use", exported: "Memory (bytes)" }),
    bytesPerSecond("Disk read", "disk_read"),
    bytesPerSecond("Disk written", "disk_written"),
    numberColumn("IOPS", metric("disk_operations"), (n) => n.toFixed(0)),
    numberColumn("Disk queue", metric("disk_queue"), (n) => n.toFixed(1), {
      help: "Transfers waiting or in service",
    }),
    shareColumn("Disk busy", share("disk_busiest"), { help: "The busiest disk" }),
    bytesPerSecond("Received", "network_received"),
    bytesPerSecond("Sent", "network_sent"),
    numberColumn("Sessions", metric("samba_sessions"), (n) => n.toFixed(0), { help: "Of Samba" }),
    numberColumn("Open files", metric("samba_open_files"), (n) => n.toFixed(0), { help: "Of Samba" }),
    numberColumn("Locks", metric("samba_locks"), (n) => n.toFixed(0), { help: "Byte-range locks" }),
    ...INSIDE_SAMBA.map(({ name, metric: time }) =>
      numberColumn(name, metric(time), (n) => duration(Math.round(n)), {
        help: "Mean time from request to response inside smbd",
        exported: `${name} (ns)`,
      }),
    ),
  ];
}

interface SideRow extends ClientWireTimes {
  run: BenchRun;
  name: string;
  group: boolean;
}

/** Compares the client's and the wire's response times. Returns null if no run has both. */
export function sidesTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.runs
    .filter((run) => run.total.wire)
    .map((run): SideRow => ({ run, name: loadText(bench, load(bench, run)), group: false, ...run.total }));
  if (rows.length === 0) return null;
  const columns: Column<SideRow>[] = [
    textColumn("Load, group", (row) => row.name, { width: 16 }),
    countColumn("Commands", (row) => row.client.count, { help: "Commands counted by the client" }),
    countColumn("On the wire", (row) => row.wire?.count ?? null, { help: "Commands in the capture" }),
    timeColumn("Client p50", (row) => row.client.p50),
    timeColumn("Wire p50", (row) => row.wire?.p50 ?? null),
    timeColumn("Added p50", (row) => added(row, "p50"), { help: "Client less wire" }),
    timeColumn("Client p95", (row) => row.client.p95),
    timeColumn("Wire p95", (row) => row.wire?.p95 ?? null),
    timeColumn("Added p95", (row) => added(row, "p95"), { help: "Client less wire" }),
  ];
  const groups = (run: BenchRun) => run.groups.filter((group) => group.wire && !group.part_of);
  return table({
    caption: "Response times in the client and on the wire",
    columns,
    rows,
    children: (row) =>
      row.group ? [] : groups(row.run).map((found) => ({ run: row.run, name: found.group, ...found, group: true })),
    filter: false,
  });
}

/** Formats `IOCTL FSCTL_PIPE_TRANSCEIVE` and `READ`. */
function nameOf({ command, subcommand, group }: MeasuredCommand): string {
  const name = subcommand ? `${command} ${subcommand}` : command;
  return group === "Waiting" ? `${name} (expected wait)` : name;
}

export function runCommands({ commands }: BenchRun): HTMLElement {
  type Row = CommandFigures & ClientWireTimes;
  const rows = commands.map((command): Row => {
    const waiting = command.group === "Waiting";
    return { ...command, name: nameOf(command), waiting, response_time: command.client, children: [] };
  });
  return commandTable(rows, [
    timeColumn("Wire p50", (row) => row.wire?.p50 ?? null),
    timeColumn("Added p50", (row) => added(row, "p50"), { help: "Client less wire" }),
  ]);
}

/** Lists the operations of the workload. Returns null if it has none. */
export function operationTable({ workload_operations: rows }: BenchRun): HTMLElement | null {
  if (rows.length === 0) return null;
  const help = "From the due time: the wait of a user who keeps to the schedule";
  const dueColumn = (title: string, time: "p50" | "p95" | "p99" | "max") =>
    timeColumn<OperationEntry>(title, (row) => row.response_time?.[time] ?? null, { help });
  const columns: Column<OperationEntry>[] = [
    textColumn("Operation", (row) => row.operation),
    waitedColumn((row) => waited(row.service_time), "Sum of operation times"),
    countColumn("Count", (row) => row.service_time.count),
    countColumn("Unexpected", (row) => total(row.unexpected), {
      help: "Operations that ended differently than the workload expects",
    }),
    ...timesColumns<OperationEntry>((row) => row.service_time),
    // A closed loop has no values for these columns.
    dueColumn("Due p50", "p50"),
    dueColumn("Due p95", "p95"),
    dueColumn("Due p99", "p99"),
    dueColumn("Due slowest", "max"),
  ];
  const sort = { title: "Total wait", descending: true };
  return table({ caption: "Operations of the workload", columns, rows, sort });
}

/** Lists the loads at which the capacity criterion was checked. Returns null if no capacity was searched. */
export function capacityTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.capacity?.tried ?? [];
  if (rows.length === 0) return null;
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    countColumn("Users", (row) => row.users),
    textColumn("Measured", (row) => row.found),
    textColumn("Criterion", (row) => (row.holds ? "met" : "not met")),
  ];
  return table({ caption: "Loads tried to find the capacity", columns, rows, filter: false });
}

/** Lists error responses, operations with unexpected results, and failed sessions. */
export function errorsPart(run: BenchRun): HTMLElement | null {
  const rows = (counts: Record<string, number>, command: string, of: number | null): ErrorEntry[] =>
    Object.entries(counts).map(([status, count]) => ({ status, command, count, of }));
  const unexpected = run.workload_operations.flatMap(({ unexpected, operation, service_time }) =>
    rows(unexpected, `${operation} (unexpected)`, service_time.count),
  );
  const failed = rows(run.failures, "session", null);
  const errors = errorTable([
    ...run.commands.flatMap((command) => rows(command.errors, nameOf(command), command.count)),
    ...unexpected,
    ...failed,
  ]);
  const fine = unexpected.length + failed.length === 0 && run.workload_operations.length > 0;
  return errors && part(fine ? "Errors, all expected by the workload" : "Errors", errors);
}

// The tables of a ramp.
import { h } from "../lib/dom";
import { counted, percent, rate } from "../lib/format";
import { errorCount, total } from "../report/figures";
import {
  type Column,
  countColumn,
  numberColumn,
  shareColumn,
  speedColumn,
  textColumn,
  timeColumn,
  timesColumns,
} from "../table/columns";
import { table } from "../table/table";
import type { Command, Measured, Operation, Run, SmbscopeBenchDocument } from "../types/bench";
import { added } from "./charts";
import { byRate, headline, load } from "./load";

export function runTable(bench: SmbscopeBenchDocument): HTMLElement {
  const perSecond = (value: (run: Run) => number) => (run: Run) =>
    run.duration_ns > 0 ? (value(run) * 1e9) / run.duration_ns : null;
  const limited = bench.runs.some((run) => run.client_cpu?.limited);
  const columns: Column<Run>[] = [
    countColumn("Users", (row) => row.users),
    ...(byRate(bench) ? [countColumn<Run>("Rate", (row) => load(bench, row), { help: "Operations each second" })] : []),
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
    ...timesColumns<Run>(headline),
    ...(bench.runs.some((run) => run.due !== null)
      ? [
          timeColumn<Run>("Commands p50", (row) => row.total.client.p50, {
            help: "Of each command; the figures before it are of operations, from when they were due",
          }),
          timeColumn<Run>("Commands p95", (row) => row.total.client.p95),
        ]
      : []),
    ...(bench.runs.some((run) => run.stalls.length > 0)
      ? [
          timeColumn<Run>("Stall", (row) => Math.max(0, ...row.stalls.map((stall) => stall.duration_ns)) || null, {
            help: "The longest time in which the server answered nothing, though commands were outstanding",
          }),
        ]
      : []),
    countColumn("Errors", errorCount),
    numberColumn(
      "Client CPU",
      (row) => row.client_cpu?.percent ?? null,
      (n) => percent(n, 100),
      {
        help: "Of one processor, on the machine that made the load",
        exported: "Client CPU (%)",
      },
    ),
    timeColumn("Client CPU per command", (row) => row.client_cpu?.per_operation_ns ?? null, {
      help: "The client's processor time for each command",
    }),
    ...(bench.runs.some((run) => run.pace.loop === "open")
      ? [
          shareColumn<Run>("Kept", (row) => (row.pace.loop === "open" ? row.pace.rate_kept / row.pace.rate : null), {
            help: "Operations that were done, of those that were due",
          }),
        ]
      : []),
    ...(bench.runs.some((run) => run.ended.how !== "done")
      ? [textColumn<Run>("Ended", (row) => ("why" in row.ended ? row.ended.why : row.ended.how))]
      : []),
    ...(limited
      ? [
          textColumn<Run>("Limit", (row) => (row.client_cpu?.limited ? "client" : null), {
            help: "Where the client was the limit, the figures say nothing about the server",
            cell: (row) => (row.client_cpu?.limited ? h("span", { class: "flag" }, "client") : ""),
          }),
        ]
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

interface GroupRow extends Measured {
  run: Run;
  group: string;
  part_of: string | null;
  operations: number;
}

function groupRows(bench: SmbscopeBenchDocument): GroupRow[] {
  return bench.runs.flatMap((run) => run.groups.map((group) => ({ run, ...group })));
}

export function groupTable(bench: SmbscopeBenchDocument): HTMLElement {
  const columns: Column<GroupRow>[] = [
    textColumn("Group", (row) => (row.part_of ? `${row.part_of}: ${row.group}` : row.group)),
    countColumn("Users", (row) => row.run.users),
    countColumn("Commands", (row) => row.operations),
    ...timesColumns<GroupRow>((row) => row.client),
  ];
  return table({ caption: "Response times by group and load", columns, rows: groupRows(bench), filter: true });
}

/** The same commands as the client and as the wire saw them; nothing where no run has both. */
export function sidesTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows: GroupRow[] = bench.runs
    .filter((run) => run.total.wire)
    .map((run) => ({ run, group: "All", part_of: null, operations: run.total.client.count, ...run.total }));
  if (rows.length === 0) return null;
  const columns: Column<GroupRow>[] = [
    textColumn("Users, group", (row) => (row.group === "All" ? counted(row.run.users, "user") : row.group), {
      width: 16,
    }),
    countColumn("Counted", (row) => row.client.count, { help: "Commands that the client counted" }),
    countColumn("On the wire", (row) => row.wire?.count ?? null, { help: "Commands that the capture shows" }),
    timeColumn("Client p50", (row) => row.client.p50),
    timeColumn("Wire p50", (row) => row.wire?.p50 ?? null),
    timeColumn("Added p50", (row) => added(row, "p50"), { help: "Client less wire" }),
    timeColumn("Client p95", (row) => row.client.p95),
    timeColumn("Wire p95", (row) => row.wire?.p95 ?? null),
    timeColumn("Added p95", (row) => added(row, "p95"), { help: "Client less wire" }),
  ];
  const groups = groupRows(bench).filter((row) => row.wire && !row.part_of);
  return table({
    caption: "Response times in the client and on the wire",
    columns,
    rows,
    children: (row) => (row.group === "All" ? groups.filter((group) => group.run === row.run) : []),
    filter: false,
  });
}

interface CommandRow {
  run: Run;
  command: Command;
}

/** `FSCTL_PIPE_TRANSCEIVE` beneath IOCTL, and READ by itself. */
function nameOf({ command, subcommand, group }: Command): string {
  const name = subcommand ? `${command} ${subcommand}` : command;
  return group === "Waiting" ? `${name} (waiting)` : name;
}

export function commandTable(bench: SmbscopeBenchDocument): HTMLElement {
  const rows = bench.runs.flatMap((run) => run.commands.map((command): CommandRow => ({ run, command })));
  const columns: Column<CommandRow>[] = [
    textColumn("Command", (row) => nameOf(row.command)),
    textColumn("Group", (row) => row.command.group),
    countColumn("Users", (row) => row.run.users),
    countColumn("Count", (row) => row.command.count),
    countColumn("Errors", (row) => errorCount(row.command)),
    ...timesColumns<CommandRow>((row) => row.command.client),
    timeColumn("Wire p50", (row) => row.command.wire?.p50 ?? null),
    timeColumn("Added p50", (row) => added(row.command, "p50"), { help: "Client less wire" }),
  ];
  return table({ caption: "Response times by command and load", columns, rows, filter: true });
}

interface OperationRow {
  run: Run;
  operation: Operation;
}

/** Operations of the workload; nothing where it has none. */
export function operationTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.runs.flatMap((run) =>
    run.workload_operations.map((operation): OperationRow => ({ run, operation })),
  );
  if (rows.length === 0) return null;
  const open = rows.some((row) => row.operation.response_time);
  const help = "From when the operation was due: what a user waits who keeps to the schedule";
  const dueColumn = (title: string, time: "p50" | "p95" | "p99" | "max") =>
    timeColumn<OperationRow>(title, (row) => row.operation.response_time?.[time] ?? null, { help });
  const columns: Column<OperationRow>[] = [
    textColumn("Operation", (row) => row.operation.operation),
    countColumn("Users", (row) => row.run.users),
    countColumn("Count", (row) => row.operation.service_time.count),
    countColumn("Unexpected", (row) => total(row.operation.unexpected), {
      help: "Ended otherwise than the workload expects",
    }),
    ...timesColumns<OperationRow>((row) => row.operation.service_time),
    ...(open
      ? [
          dueColumn("Due p50", "p50"),
          dueColumn("Due p95", "p95"),
          dueColumn("Due p99", "p99"),
          dueColumn("Due slowest", "max"),
        ]
      : []),
  ];
  return table({ caption: "Operations of the workload by load", columns, rows, filter: true });
}

/** The loads at which the criterion of the capacity was looked at; nothing where there are none. */
export function capacityTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.capacity?.tried ?? [];
  if (rows.length === 0) return null;
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    countColumn("Users", (row) => row.users),
    textColumn("Found", (row) => row.found),
    textColumn("Criterion", (row) => (row.holds ? "holds" : "does not hold")),
  ];
  return table({ caption: "Loads tried for the capacity", columns, rows, filter: false });
}

/** Error responses, operations that ended otherwise than expected, and sessions that failed. */
export function errorTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.runs.flatMap((run) => {
    const rows = (counts: Record<string, number>, what: string, of: number | null) =>
      Object.entries(counts).map(([status, count]) => ({ run, status, what, count, of }));
    return [
      ...run.commands.flatMap((command) => rows(command.errors, nameOf(command), command.count)),
      ...run.workload_operations.flatMap(({ unexpected, operation, service_time }) =>
        rows(unexpected, `${operation} (unexpected)`, service_time.count),
      ),
      ...rows(run.failures, "session", null),
    ];
  });
  if (rows.length === 0) return null;
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    textColumn("Status", (row) => row.status),
    textColumn("Of", (row) => row.what),
    countColumn("Users", (row) => row.run.users),
    countColumn("Count", (row) => row.count),
    shareColumn("Share", (row) => (row.of ? row.count / row.of : null)),
  ];
  return table({ caption: "Errors by status and load", columns, rows, sort: { title: "Count", descending: true } });
}

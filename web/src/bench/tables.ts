// The tables of a ramp.
import { h } from "../lib/dom";
import { counted, percent, rate, thousands } from "../lib/format";
import { type Column, countColumn, numberColumn, textColumn, timeColumn } from "../table/columns";
import { table } from "../table/table";
import type { Run, SmbscopeBenchDocument, Times } from "../types/bench";

export function runTable(bench: SmbscopeBenchDocument): HTMLElement {
  const perSecond = (value: (run: Run) => number) => (run: Run) =>
    run.duration_ns > 0 ? (value(run) * 1e9) / run.duration_ns : null;
  const errors = (run: Run) => Object.values(run.errors).reduce((sum, count) => sum + count, 0);
  const limited = bench.runs.some((run) => run.client_limited);
  const columns: Column<Run>[] = [
    countColumn("Users", (row) => row.users),
    countColumn("Operations", (row) => row.operations),
    numberColumn(
      "A second",
      (row) => row.operations_per_second,
      (n) => thousands(Math.round(n)),
      { help: "Operations each second" },
    ),
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
    ...timesColumns<Run>((row) => row.total.client),
    countColumn("Errors", errors),
    numberColumn(
      "CPU",
      (row) => row.client_cpu_percent,
      (n) => percent(n, 100),
      {
        help: "Of one processor, on the machine that made the load",
        exported: "Client's CPU (%)",
      },
    ),
    ...(limited
      ? [
          textColumn<Run>("Limit", (row) => (row.client_limited ? "client" : null), {
            help: "Where the client was the limit, the figures say nothing about the server",
            cell: (row) => (row.client_limited ? h("span", { class: "flag" }, "client") : ""),
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

function timesColumns<Row>(times: (row: Row) => Times): Column<Row>[] {
  return [
    timeColumn("p50", (row) => times(row).p50),
    timeColumn("Mean", (row) => times(row).mean),
    timeColumn("p95", (row) => times(row).p95),
    timeColumn("p99", (row) => times(row).p99),
    timeColumn("Slowest", (row) => times(row).max),
  ];
}

interface GroupRow {
  run: Run;
  group: string;
  operations: number;
  client: Times;
  wire: Times | null;
}

function groupRows(bench: SmbscopeBenchDocument): GroupRow[] {
  return bench.runs.flatMap((run) => run.groups.map((group) => ({ run, ...group })));
}

export function groupTable(bench: SmbscopeBenchDocument): HTMLElement {
  const columns: Column<GroupRow>[] = [
    textColumn("Group", (row) => row.group),
    countColumn("Users", (row) => row.run.users),
    countColumn("Operations", (row) => row.operations),
    ...timesColumns<GroupRow>((row) => row.client),
  ];
  return table({ caption: "Response times by group and load", columns, rows: groupRows(bench), filter: true });
}

/** The same commands as the client and as the wire saw them; nothing where no run has both. */
export function sidesTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows: GroupRow[] = bench.runs
    .filter((run) => run.total.wire)
    .map((run) => ({ run, group: "All", operations: run.operations, ...run.total }));
  if (rows.length === 0) return null;
  const both = (time: keyof Times) => (row: GroupRow) => {
    const [client, wire] = [row.client[time], row.wire?.[time] ?? null];
    return client === null || wire === null ? null : client - wire;
  };
  const columns: Column<GroupRow>[] = [
    textColumn("Users, group", (row) => (row.group === "All" ? counted(row.run.users, "user") : row.group), {
      width: 16,
    }),
    timeColumn("Client p50", (row) => row.client.p50),
    timeColumn("Wire p50", (row) => row.wire?.p50 ?? null),
    timeColumn("Difference p50", both("p50"), { help: "Client less wire" }),
    timeColumn("Client mean", (row) => row.client.mean),
    timeColumn("Wire mean", (row) => row.wire?.mean ?? null),
    timeColumn("Difference mean", both("mean"), { help: "Client less wire" }),
    timeColumn("Client p95", (row) => row.client.p95),
    timeColumn("Wire p95", (row) => row.wire?.p95 ?? null),
    timeColumn("Difference p95", both("p95"), { help: "Client less wire" }),
  ];
  const groups = groupRows(bench).filter((row) => row.wire);
  return table({
    caption: "Response times in the client and on the wire",
    columns,
    rows,
    children: (row) => (row.group === "All" ? groups.filter((group) => group.run === row.run) : []),
    filter: false,
  });
}

export function errorTable(bench: SmbscopeBenchDocument): HTMLElement | null {
  const rows = bench.runs.flatMap((run) =>
    Object.entries(run.errors).map(([status, count]) => ({ run, status, count })),
  );
  if (rows.length === 0) return null;
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    textColumn("Status", (row) => row.status),
    countColumn("Users", (row) => row.run.users),
    countColumn("Count", (row) => row.count),
    numberColumn(
      "Of the operations",
      (row) => row.count / Math.max(1, row.run.operations),
      (share) => percent(share, 1),
    ),
  ];
  return table({ caption: "Errors by status and load", columns, rows, sort: { title: "Count", descending: true } });
}

// Synthetic comparison of simulated reports, computed as the schema defines it.
import type { ComparisonCell, Ratio, SmbscopeComparisonDocument } from "../../src/types/compare";
import type { SmbscopeReportDocument, StatisticsEntry } from "../../src/types/report";
import { simulate } from "./simulate";

type Column = SmbscopeComparisonDocument["columns"][number];

const uncounted = (column: Column): Column => ({ ...column, heatmap: null, slowest: [], files: [] });

export function comparison(
  names = ["without antivirus", "with antivirus", "with antivirus and signing"],
  reports = [
    simulate({ seed: 3, exchanges: 8_000 }),
    simulate({ seed: 4, exchanges: 9_000 }),
    simulate({ seed: 5, exchanges: 3_000 }),
  ],
): SmbscopeComparisonDocument {
  const [first, second, ...rest] = reports.map((report, i) =>
    column(report, names[i] ?? `capture ${i}`, reports[0] ?? report, i > 0),
  );
  if (!first || !second) throw new Error("a comparison has two columns");
  const groups = reports[0]?.groups.flatMap((group) => [group, ...group.parts]) ?? [];
  const all = (report: SmbscopeReportDocument) => report.groups.flatMap((group) => [group, ...group.parts]);
  return {
    schema: "smbscope.compare/1",
    generator: { name: "smbscope", version: "0.1.0" },
    title: null,
    answers: [first, second, ...rest].slice(1).map(({ name }, i) => ({
      column: i + 1,
      culprit: "capture",
      headline: `${name} is slower than ${first.name}: p95 1.02 times (3.72 ms → 3.79 ms).`,
      states_first_cause: false,
      evidence: ["Slower on average: WRITE 1.06 times (2.80 ms → 2.97 ms; 1,427 commands, 243 ms more)."],
      causes: [],
      notes: [],
      ruled_out: [],
      caveats: [],
      slow: "",
      next: [
        {
          label: "files",
          command: `smbscope analyze --filter 'command == WRITE' --by file captures/${name.replaceAll(" ", "-")}.pcapng`,
        },
      ],
    })),
    columns: [first, second, ...rest],
    headline: { cells: cells(reports.map((report) => report.totals.headline)) },
    groups: groups.map((group) => ({
      group: group.group,
      part_of: ["Attributes", "Directory", "Locking"].includes(group.group) ? "Other" : null,
      headline: true,
      cells: cells(reports.map((report) => all(report).find((found) => found.group === group.group))),
      cumulative: reports.map((report) => all(report).find((found) => found.group === group.group)?.cumulative ?? []),
    })),
    commands: (reports[0]?.commands ?? []).map((command) => ({
      protocol: command.protocol,
      members: null,
      command: command.command,
      waiting: false,
      cells: cells(reports.map((report) => report.commands.find((found) => found.command === command.command))),
    })),
    slices: slices(reports),
    ramps: null,
    notes: [
      {
        kind: "few",
        column: 2,
        text: "with antivirus and signing: Locking has too few timed commands (61) for a 99th percentile.",
      },
    ],
  };
}

/** The slices of the first report in all of them that have the same. */
function slices(reports: SmbscopeReportDocument[]): SmbscopeComparisonDocument["slices"] {
  const [first] = reports;
  if (!first?.slices) return null;
  const same = (a: object, b: object) => JSON.stringify(a) === JSON.stringify(b);
  const entries = first.slices.entries.map(({ key }) => {
    const found = reports.map((report) => report.slices?.entries.find((entry) => same(entry.key, key)));
    const row = first.totals.headline;
    const rows = found.map((slice) => slice && { ...row, ...slice, errors: { STATUS_ACCESS_DENIED: slice.errors } });
    return { key, cells: cells(rows) };
  });
  return { by: first.slices.by, entries, left_out: 0 };
}

function ratio(value: number | null, base: number | null, interval = false): Ratio | null {
  if (value === null || base === null || base === 0) return null;
  const found = value / base;
  if (!interval) return { value: found, interval: null, certainty: null };
  const [low, high] = [found * 0.94, found * 1.07];
  const shown = low > 1 || high < 1;
  const answer = !shown ? "undecided" : found > 1 ? "higher" : "lower";
  const certainty: Ratio["certainty"] = {
    answer,
    repetitions_needed: shown ? null : 12,
    range: null,
    detectable: 1.1,
    repetitions: 6,
    scope: "runs",
    p_value: shown ? 0.001 : 0.3,
    shown,
  };
  return { value: found, interval: { low, high, level: 0.95 }, certainty };
}

function cells(rows: (StatisticsEntry | undefined)[]): (ComparisonCell | null)[] {
  const base = rows[0] ? cell(rows[0]) : null;
  return rows.map((row, i) => {
    if (!row) return null;
    const found = cell(row);
    if (i === 0 || !base) return found;
    const of = (key: keyof ComparisonCell["response_time"]) =>
      ratio(found.response_time[key], base.response_time[key], key === "mean");
    return {
      ...found,
      ratios: {
        count: ratio(found.count, base.count),
        mean: of("mean"),
        p50: of("p50"),
        p95: of("p95"),
        p99: of("p99"),
        max: of("max"),
        sum: of("sum"),
      },
    };
  });
}

function cell(row: StatisticsEntry): ComparisonCell {
  const { mean, p50, p95, p99, max, count } = row.response_time;
  return {
    count: row.count,
    timed: row.timed,
    distribution: row.distribution,
    errors: Object.values(row.errors).reduce((a, b) => a + b, 0),
    response_time: { mean, p50, p95, p99, max, sum: mean === null ? null : mean * count },
    ratios: null,
  };
}

function column(report: SmbscopeReportDocument, name: string, base: SmbscopeReportDocument, compared: boolean): Column {
  const rates = (of: SmbscopeReportDocument) => {
    const seconds = (of.totals.elapsed_ns ?? 1e9) / 1e9;
    const { request_bytes, response_bytes, count } = of.totals.headline;
    const bytes = request_bytes + response_bytes;
    return { bytes: bytes / seconds, commands: count / seconds, perMegabyte: (count * 1e6) / bytes };
  };
  const own = rates(report);
  return {
    name,
    source: `captures/${name}.pcapng`,
    runs: 1,
    title: report.title,
    filter: null,
    version: "0.1.0",
    captures: report.captures,
    quality: report.quality.sentence,
    heatmap: report.heatmap,
    slowest: report.slowest.slice(0, 20),
    files: report.files.slice(0, 20),
    overview: {
      elapsed_ns: report.totals.elapsed_ns,
      commands: report.totals.commands,
      timed: report.totals.headline.timed,
      untimed: report.totals.untimed,
      errors: Object.values(report.totals.headline.errors).reduce((a, b) => a + b, 0),
      connections: report.connections.length,
      bytes_read: report.totals.headline.response_bytes,
      bytes_written: report.totals.headline.request_bytes,
      bytes_per_second: own.bytes,
      commands_per_second: own.commands,
      job_elapsed_ns: null,
      commands_per_megabyte: own.perMegabyte,
      round_trips_per_file: null,
      connections_per_client: report.connections.length / report.clients.length,
      dialects: [
        { dialect: "SMB 3.1.1", connections: 10 },
        { dialect: null, connections: 2 },
      ],
      ratios: compared
        ? {
            bytes_per_second: ratio(own.bytes, rates(base).bytes),
            commands_per_second: ratio(own.commands, rates(base).commands),
            job_elapsed: null,
            commands_per_megabyte: ratio(own.perMegabyte, rates(base).perMegabyte),
            round_trips_per_file: null,
            connections_per_client: null,
          }
        : null,
    },
  };
}

/** Comparison of ramps. The second has one load point less. */
export function comparedRamps(): SmbscopeComparisonDocument {
  const document = comparison(["before", "after"]);
  const point = (users: number, columns: number) => {
    const cells = (found: SmbscopeComparisonDocument["headline"]["cells"], share: number, bytes: boolean) =>
      found.slice(0, 2).map((cell, i) => {
        if (!cell || i >= columns) return null;
        const per_second = (1_000 * users * share) / (i + 1);
        const half = i === 0 ? null : { value: 0.5, interval: null, certainty: null };
        const around = (value: number | null): [number, number] | null =>
          value === null ? null : [Math.round(value * 0.9), Math.round(value * 1.2)];
        const { mean, p50, p95 } = cell.response_time;
        const spread = {
          per_second: around(per_second),
          bytes_per_second: around(per_second * 15_000),
          mean: around(mean),
          p50: around(p50),
          p95: around(p95),
        };
        return {
          per_second,
          per_second_ratio: half,
          bytes_per_second: bytes ? per_second * 15_000 : null,
          bytes_per_second_ratio: bytes ? half : null,
          // The first column is several runs.
          spread: i === 0 ? spread : null,
          ...cell,
          distribution: cell.distribution.map(() => 0) as Decades,
        };
      });
    const metric = (metric: string, unit: string, mean: number) => ({
      metric,
      unit,
      cells: [0, 1].map((i) => {
        if (i >= columns) return null;
        const mean_range: [number, number] | null = i === 0 ? [mean * 0.9, mean * 1.1] : null;
        return { mean, max: 1.3 * mean, mean_range, max_range: null };
      }),
    });
    return {
      users,
      total: cells(document.headline.cells, 1, true),
      groups: document.groups.map(({ group, part_of, cells: found }) => ({
        group,
        part_of,
        cells: cells(found, 0.2, group === "Read" || group === "Write"),
      })),
      server: [metric("cpu", "percent", 2 * users), metric("disk_busiest", "percent", users)],
    };
  };
  const ramp = { workload: "office", schedule: "closed loop", overall_response_time_ns: 2_340_000, capacity: 12 };
  return {
    ...document,
    // As of an older version, which did not count so.
    columns: document.columns.map((column, i) => ({
      ...uncounted(column),
      runs: i === 0 ? 3 : 1,
    })) as SmbscopeComparisonDocument["columns"],
    headline: {
      cells: document.headline.cells.map(
        (cell) => cell && { ...cell, distribution: cell.distribution.map(() => 0) as Decades },
      ),
    },
    ramps: {
      columns: [
        { users: 8, ...ramp },
        { users: 8, ...ramp, capacity: null },
      ],
      points: [point(1, 2), point(8, 2), point(32, 1)],
    },
  };
}

type Decades = NonNullable<SmbscopeComparisonDocument["headline"]["cells"][number]>["distribution"];

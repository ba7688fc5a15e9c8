// Ramps side by side: throughput and response time of each against users, and a table of every load point and group.
import { lines, type Series } from "../charts/lines";
import { seriesStroke } from "../charts/palette";
import type { Child } from "../lib/dom";
import { counted, duration, ratio, short, thousands, tickDuration } from "../lib/format";
import { facts, lead, part } from "../lib/page";
import { type Column, countColumn, numberColumn, textColumn, timeColumn } from "../table/columns";
import { table } from "../table/table";
import type { PointCell, Ramps, SmbscopeComparisonDocument } from "../types/compare";

/** Nothing where no column is a ramp. */
export function rampsContent({ ramps, columns }: SmbscopeComparisonDocument): Child[] | null {
  if (!ramps) return null;
  const names = columns.map((column) => column.name);
  const known = ramps.columns.flatMap((ramp, i): [string, Child][] => {
    if (!ramp) return [];
    const overall = ramp.overall_response_time_ns;
    const text = [
      `${ramp.workload}, ${ramp.schedule}`,
      overall === null ? null : `overall response time ${duration(overall)}`,
      ramp.capacity === null ? null : `capacity ${counted(ramp.capacity, "user")}`,
    ];
    return [[names[i] ?? "", text.filter((found) => found !== null).join("; ")]];
  });
  const shown = ramps.columns.flatMap((ramp, i) => (ramp ? [`${names[i]} at ${counted(ramp.users, "user")}`] : []));
  return [
    facts(known),
    ramps.points.length > 1 ? chart(ramps, names) : null,
    part("Load points", pointTable(ramps, names)),
    lead(`Everything else on this page is about one load point of each ramp: ${shown.join(", ")}.`),
  ];
}

function chart(ramps: Ramps, names: readonly string[]): HTMLElement {
  const series = (value: (cell: PointCell) => number | null): Series[] =>
    names.flatMap((name, i) => {
      if (!ramps.columns[i]) return [];
      const points = ramps.points.flatMap((point) => {
        const cell = point.total[i];
        const found = cell ? value(cell) : null;
        return found === null ? [] : [[point.users, found] as [number, number]];
      });
      return [{ name, stroke: seriesStroke(i), points, dots: true }];
    });
  const perSecond = (cell: PointCell) => cell.per_second;
  const p50 = (cell: PointCell) => cell.response_time.p50;
  const p95 = (cell: PointCell) => cell.response_time.p95;
  const time = { text: duration, tickText: tickDuration };
  const rateText = (value: number) => `${thousands(Math.round(value))}/s`;
  return lines({
    label: "Throughput and response time of the ramps against the number of users",
    at: "At",
    x: {
      title: "Users",
      text: (n) => counted(n, "user"),
      tickText: (n) => (Number.isInteger(n) ? thousands(n) : ""),
      logarithmic: false,
    },
    panels: [
      {
        title: "Commands each second",
        height: 170,
        text: rateText,
        tickText: (value) => `${short(value)}/s`,
        series: series(perSecond),
      },
      { title: "Median response time", height: 150, ...time, series: series(p50) },
      { title: "95 % within", height: 150, ...time, series: series(p95) },
    ],
    interpolate: true,
    numbers: () => ({
      headings: ["Users", ...names.flatMap((name) => [`${name}: commands/s`, "Median", "95 %"])],
      rows: ramps.points.map((point) => [
        thousands(point.users),
        ...names.flatMap((_, i) => {
          const cell = point.total[i];
          const rate = cell?.per_second ?? null;
          return [rate === null ? "–" : rateText(rate), duration(cell && p50(cell)), duration(cell && p95(cell))];
        }),
      ]),
    }),
  });
}

interface Row {
  users: number;
  group: string;
  name: string;
  cell: PointCell;
}

function pointTable(ramps: Ramps, names: readonly string[]): HTMLElement {
  const rows = ramps.points.flatMap(({ users, total, groups }) => {
    const all = [{ group: "All", part_of: null, cells: total }, ...groups];
    return all.flatMap(({ group, part_of, cells }) =>
      cells.flatMap((cell, i): Row[] =>
        cell ? [{ users, group: part_of ? `${part_of}: ${group}` : group, name: names[i] ?? "", cell }] : [],
      ),
    );
  });
  const of = (value: (row: Row) => { value: number } | null | undefined) => (row: Row) => value(row)?.value ?? null;
  const columns: Column<Row>[] = [
    countColumn("Users", (row) => row.users),
    textColumn("Group", (row) => row.group),
    textColumn("Ramp", (row) => row.name),
    numberColumn(
      "A second",
      (row) => row.cell.per_second,
      (n) => thousands(Math.round(n)),
      { help: "Commands each second" },
    ),
    numberColumn(
      "×",
      of((row) => row.cell.per_second_ratio),
      ratio,
      { exported: "Commands/s: ratio" },
    ),
    timeColumn("p50", (row) => row.cell.response_time.p50),
    numberColumn(
      "×",
      of((row) => row.cell.ratios?.p50),
      ratio,
      { exported: "p50: ratio" },
    ),
    timeColumn("p95", (row) => row.cell.response_time.p95),
    numberColumn(
      "×",
      of((row) => row.cell.ratios?.p95),
      ratio,
      { exported: "p95: ratio" },
    ),
    timeColumn("Mean", (row) => row.cell.response_time.mean),
    countColumn("Errors", (row) => row.cell.errors),
  ];
  return table({ caption: "Load points of the ramps", columns, rows, filter: true });
}

// Ramps side by side: throughput and response time of each against users, and a table of every load point and group.
import { curve, lines, ratePanel, type Series, timePanel } from "../charts/lines";
import type { Child } from "../lib/dom";
import { counted, duration, ratio, thousands } from "../lib/format";
import { Choice, facts, lead, part } from "../lib/page";
import { type Column, countColumn, numberColumn, speedColumn, textColumn, timeColumn } from "../table/columns";
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
    ramps.points.length > 1 ? chosenGroup(ramps).place((group) => [chart(ramps, names, group)]) : null,
    part("Load points", pointTable(ramps, names)),
    lead(`Everything else on this page is about one load point of each ramp: ${shown.join(", ")}.`),
  ];
}

/** All groups together, or one of those that any load point has. */
function chosenGroup(ramps: Ramps): Choice<string | null> {
  const groups = new Set(ramps.points.flatMap((point) => point.groups.map(({ group }) => group)));
  const options = [...groups].map((group) => ({ name: group, value: group }));
  return new Choice("Group", [{ name: "Total", value: null }, ...options], 0);
}

function chart(ramps: Ramps, names: readonly string[], group: string | null): HTMLElement {
  const cells = (point: Ramps["points"][number]) =>
    group === null ? point.total : (point.groups.find((found) => found.group === group)?.cells ?? []);
  const series = (value: (cell: PointCell) => number | null): Series[] =>
    names.flatMap((name, i) => {
      const of = (point: Ramps["points"][number]) => {
        const cell = cells(point)[i];
        return cell ? value(cell) : null;
      };
      return ramps.columns[i] ? [curve(name, i, ramps.points, (point) => point.users, of)] : [];
    });
  const mean = (cell: PointCell) => cell.response_time.mean;
  const speed = (cell: PointCell) => cell.per_second;
  const p50 = (cell: PointCell) => cell.response_time.p50;
  const p95 = (cell: PointCell) => cell.response_time.p95;
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
      ratePanel(170, series(speed)),
      timePanel("Mean response time", 150, series(mean)),
      timePanel("Median", 150, series(p50)),
      timePanel("p95", 150, series(p95)),
    ],
    interpolate: true,
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
    const all = [{ group: "Total", part_of: null, cells: total }, ...groups];
    return all.flatMap(({ group, part_of, cells }) =>
      cells.flatMap((cell, i): Row[] =>
        cell ? [{ users, group: part_of ? `${part_of}: ${group}` : group, name: names[i] ?? "", cell }] : [],
      ),
    );
  });
  const times = (of: string, value: (row: Row) => { value: number } | null | undefined) =>
    numberColumn<Row>("×", (row) => value(row)?.value ?? null, ratio, { exported: `${of}: ratio` });
  const columns: Column<Row>[] = [
    countColumn("Users", (row) => row.users),
    textColumn("Group", (row) => row.group),
    textColumn("Ramp", (row) => row.name),
    speedColumn((row) => row.cell.per_second),
    times("Commands/s", (row) => row.cell.per_second_ratio),
    timeColumn("p50", (row) => row.cell.response_time.p50),
    times("p50", (row) => row.cell.ratios?.p50),
    timeColumn("p95", (row) => row.cell.response_time.p95),
    times("p95", (row) => row.cell.ratios?.p95),
    timeColumn("Mean", (row) => row.cell.response_time.mean),
    countColumn("Errors", (row) => row.cell.errors),
  ];
  return table({ caption: "Load points of the ramps", columns, rows, filter: true });
}

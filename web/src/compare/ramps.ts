// Compared ramps: throughput and response time against users, and a table of load points and groups.
import { spaced } from "../bench/charts";
import { serverColumns } from "../bench/tables";
import { type FactorPanel, factors } from "../charts/factors";
import { bandOf, bytesPanel, curve, lines, ratePanel, type Series, timePanel } from "../charts/lines";
import { serversPanels } from "../charts/server";
import type { Child } from "../lib/dom";
import { counted, duration, rate, ratio, thousands } from "../lib/format";
import { Choice, facts, lead, part } from "../lib/page";
import { type Column, countColumn, numberColumn, speedColumn, textColumn, timeColumn } from "../table/columns";
import { table } from "../table/table";
import type { PointCell, Ramps, Ratio, SmbscopeComparisonDocument } from "../types/compare";
import { factorOf } from "./factor";

/** Creates the content. Returns null if no column is a ramp. */
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
  const several = ramps.points.length > 1;
  const repeated = columns.some((column) => column.runs > 1);
  const compared = ramps.points
    .filter((point) => point.total.filter((cell) => cell !== null).length > 1)
    .map((point) => ({ name: counted(point.users, "user"), value: point }));
  return [
    facts(known),
    several && repeated && lead("Bands show the range across the runs of a column."),
    several && chosenGroup(ramps).place((group) => [chart(ramps, names, group)]),
    compared.length > 0 &&
      part(
        "Factors against the baseline",
        new Choice("Load", compared, compared.length - 1).place((point) => [pointFactors(point, names)]),
      ),
    part("Load points", pointTable(ramps, names)),
    ramps.points.some(({ server }) => server.length > 0) && part("Server load", serverTable(ramps, names)),
    lead(`The rest of this page is about one load point of each ramp: ${shown.join(", ")}.`),
  ];
}

/** Creates the selection of a group, or of all groups. */
function chosenGroup(ramps: Ramps): Choice<string | null> {
  const groups = new Set(ramps.points.flatMap((point) => point.groups.map(({ group }) => group)));
  const options = [...groups].map((group) => ({ name: group, value: group }));
  return new Choice("Group", [{ name: "Total", value: null }, ...options], 0);
}

/** Figures of a load point that have a curve. */
type Figure = "per_second" | "bytes_per_second" | "mean" | "p50" | "p95";

function figureOf(cell: PointCell, figure: Figure): number | null {
  return figure === "per_second" || figure === "bytes_per_second" ? cell[figure] : cell.response_time[figure];
}

function chart(ramps: Ramps, names: readonly string[], group: string | null): HTMLElement {
  type Point = Ramps["points"][number];
  const cells = (point: Point) =>
    group === null ? point.total : (point.groups.find((found) => found.group === group)?.cells ?? []);
  const users = (point: Point) => point.users;
  const sides = names.flatMap((name, side) => (ramps.columns[side] ? [{ name, side }] : []));
  const series = (figure: Figure): Series[] =>
    sides.map(({ name, side }) => {
      const of = (point: Point) => {
        const cell = cells(point)[side];
        return cell ? figureOf(cell, figure) : null;
      };
      const band = bandOf(ramps.points, users, (point) => cells(point)[side]?.spread?.[figure]);
      return curve(name, side, ramps.points, users, of, { dots: true, ...band });
    });
  const server = serversPanels(({ metric, of }) =>
    sides.map(({ name, side }) => {
      const found = (point: Point) => point.server.find((row) => row.metric === metric)?.cells[side];
      const band = bandOf(ramps.points, users, (point) => found(point)?.[`${of}_range`]);
      return curve(name, side, ramps.points, users, (point) => found(point)?.[of], { dots: true, ...band });
    }),
  );
  const bytes = series("bytes_per_second");
  return lines({
    label: "Throughput and response time of the ramps against the number of users",
    at: "At",
    x: {
      title: "Users",
      text: (n) => counted(n, "user"),
      tickText: thousands,
      logarithmic: false,
      ticks: spaced(ramps.points.map(users)),
    },
    panels: [
      ratePanel(170, series("per_second")),
      ...(bytes.some(({ points }) => points.length > 0) ? [bytesPanel("Bytes per second", 150, bytes)] : []),
      timePanel("Mean response time", 150, series("mean")),
      timePanel("Median", 150, series("p50")),
      timePanel("p95", 150, series("p95")),
      ...server,
    ],
    interpolate: true,
  });
}

/** Draws the factors of a load point, one panel per figure and side. */
function pointFactors(point: Ramps["points"][number], names: readonly string[]): HTMLElement | null {
  const rows = [{ group: "Total", part_of: null, cells: point.total }, ...point.groups];
  const figures: [string, (cell: PointCell) => Ratio | null, boolean][] = [
    ["commands per second", (cell) => cell.per_second_ratio, true],
    ["bytes per second", (cell) => cell.bytes_per_second_ratio, true],
    ["mean response time", (cell) => cell.ratios?.mean ?? null, false],
    ["p95", (cell) => cell.ratios?.p95 ?? null, false],
  ];
  const panels = names.flatMap((name, side) =>
    figures.map(([figure, ratio, moreIsBetter]): FactorPanel => {
      const found = rows.flatMap(({ group, part_of, cells }) => {
        const cell = side > 0 ? cells[side] : null;
        const factor = cell ? factorOf(ratio(cell), moreIsBetter ? "throughput" : "time") : null;
        return factor ? [{ name: group, part: part_of !== null, factor }] : [];
      });
      return { title: `${name}: ${figure}`, rows: found };
    }),
  );
  const shown = panels.filter(({ rows }) => rows.length > 0);
  const label = `Factors of groups against ${names[0]} at ${counted(point.users, "user")}`;
  return shown.length > 0 ? factors({ label, panels: shown }) : null;
}

function serverTable(ramps: Ramps, names: readonly string[]): HTMLElement {
  type Row = { point: Ramps["points"][number]; side: number };
  const rows = ramps.points.flatMap((point) =>
    names.flatMap((_, side): Row[] => (point.server.some(({ cells }) => cells[side]) ? [{ point, side }] : [])),
  );
  const columns: Column<Row>[] = [
    countColumn("Users", ({ point }) => point.users),
    textColumn("Ramp", ({ side }) => names[side] ?? null),
    ...serverColumns<Row>(
      ({ point, side }, metric, of) => point.server.find((row) => row.metric === metric)?.cells[side]?.[of] ?? null,
    ),
  ];
  return table({ caption: "Server load", columns, rows, filter: false });
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
    numberColumn("Data", (row) => row.cell.bytes_per_second, rate, {
      exported: "Data (bytes/s)",
      help: "Read and written per second",
    }),
    times("Data", (row) => row.cell.bytes_per_second_ratio),
    timeColumn("p50", (row) => row.cell.response_time.p50),
    times("p50", (row) => row.cell.ratios?.p50),
    timeColumn("p95", (row) => row.cell.response_time.p95),
    times("p95", (row) => row.cell.ratios?.p95),
    timeColumn("Mean", (row) => row.cell.response_time.mean),
    countColumn("Errors", (row) => row.cell.errors),
  ];
  return table({ caption: "Load points of the ramps", columns, rows, filter: true });
}

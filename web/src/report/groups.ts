// Response times by command group: table, cumulative distributions and load curve.
import { bytesPanel, curve, lines, ratePanel, type Series, timePanel } from "../charts/lines";
import { FIGURES, groupStroke, type Stroke } from "../charts/palette";
import { duration, percent, short, tickDuration } from "../lib/format";
import { type Column, countColumn, textColumn, timesColumns, waitedColumn, waitedShareColumn } from "../table/columns";
import { table } from "../table/table";
import type { Concurrency, GroupEntry } from "../types/report";
import { errorCount, waited } from "./figures";

/** Figures of a group, from a capture or a load point. */
export type GroupFigures = Pick<GroupEntry, "group" | "headline" | "count" | "errors" | "response_time"> & {
  parts: readonly GroupFigures[];
};

export function groupTable(
  groups: readonly GroupFigures[],
  headline: Pick<GroupFigures, "count" | "errors" | "response_time">,
): HTMLElement {
  const total = waited(headline.response_time);
  const all: GroupFigures = { ...headline, group: "Total" as GroupEntry["group"], headline: true, parts: [] };
  const shown = groups.filter((group) => group.count > 0);
  const rows = [...shown.filter((group) => group.headline), all, ...shown.filter((group) => !group.headline)];
  const share = (row: GroupFigures) => (row.headline && total > 0 ? waited(row.response_time) / total : null);
  const columns: Column<GroupFigures>[] = [
    textColumn("Group", (row) => row.group, { width: 14 }),
    waitedColumn((row) => waited(row.response_time)),
    waitedShareColumn(share),
    countColumn("Commands", (row) => row.count),
    countColumn("Errors", errorCount),
    ...timesColumns<GroupFigures>((row) => row.response_time),
  ];
  return table({
    caption: "Response times by group",
    columns,
    rows,
    children: (row) => row.parts.filter((part) => part.count > 0),
    filter: false,
  });
}

type Points = GroupEntry["cumulative"];

/** Draws the cumulative distributions of all groups. */
export function cumulative(groups: readonly GroupEntry[]): HTMLElement | null {
  const known = groups.filter((group) => group.cumulative.length > 1);
  if (known.length === 0) return null;
  const series = known.map((group) => ({
    ...distribution(group.group, groupStroke(group.group), group.cumulative),
    // Expected waits would stretch the axis.
    hidden: !group.headline && known.some((other) => other.headline),
  }));
  return distributionChart(known.map((group) => group.group).join(", "), series);
}

/** Upper end of the axis. Higher shares are drawn there. */
const HIGHEST = 0.9995;

/** Maps a share to an axis on which each step divides the remaining share by ten, so that the tail has room. */
const nines = (share: number) => -Math.log10(1 - Math.min(share, HIGHEST));

export function distribution(name: string, stroke: Stroke, points: Points): Series {
  return { name, stroke, points: points.map(([time, share]) => [Math.max(1, time), nines(share)]) };
}

/** Draws several cumulative distributions in one chart. */
export function distributionChart(of: string, series: Series[], height = 300): HTMLElement {
  const marks = [0, 0.5, 0.9, 0.99, 0.999];
  const text = (value: number) => `${Number((100 * (1 - 10 ** -value)).toFixed(2))}%`;
  return lines({
    label: `Cumulative distribution of response times of ${of}`,
    at: "Within",
    x: { title: "Response time", text: duration, tickText: tickDuration, logarithmic: true },
    panels: [
      {
        title: "Cumulative share",
        height,
        series,
        from: 0,
        to: nines(1),
        ticks: marks.map(nines),
        text,
        tickText: text,
      },
    ],
    interpolate: false,
    numbers: () => ({
      headings: ["Cumulative share", ...series.map(({ name }) => name)],
      rows: [0.5, 0.9, 0.95, 0.99, 0.999].map((mark) => [
        percent(mark, 1),
        ...series.map(({ points }) => duration(points.find((point) => point[1] >= nines(mark) - 1e-9)?.[0])),
      ]),
    }),
  });
}

/** Returns the geometric mean of a load level's bounds. */
export function levelOf(entry: Pick<Concurrency, "outstanding_from" | "outstanding_to">): number {
  const { outstanding_from: from, outstanding_to: to } = entry;
  return from > 0 ? Math.sqrt(from * to) : to / 2;
}

/** Minimum number of commands of a load level, as for a p95. */
const LEVEL_COMMANDS = 20;

/**
 * Returns the levels to draw. Returns none if the load hardly varies, or if commands never overlap: then the number
 * outstanding follows from the response time, not the other way round.
 */
export function loadLevels(concurrency: readonly Concurrency[]): Concurrency[] {
  const levels = concurrency.filter((entry) => entry.commands >= LEVEL_COMMANDS);
  return levels.length >= 3 && levels.some((entry) => entry.outstanding_from > 1) ? levels : [];
}

/** Draws response time and throughput against load. */
export function loadCurve(concurrency: readonly Concurrency[]): HTMLElement | null {
  const levels = loadLevels(concurrency);
  if (levels.length === 0) return null;
  const line = (name: string, index: number, value: (entry: Concurrency) => number | null) =>
    curve(name, index, levels, levelOf, value);
  const seconds = (entry: Concurrency) => entry.time_ns / 1e9;
  const perSecond = (entry: Concurrency) => (seconds(entry) > 0 ? entry.commands / seconds(entry) : null);
  const throughput = (entry: Concurrency) =>
    seconds(entry) > 0 ? (entry.request_bytes + entry.response_bytes) / seconds(entry) : null;
  return lines({
    label: "Response time and throughput against the mean number of outstanding commands",
    at: "Outstanding",
    x: {
      title: "Outstanding commands (mean)",
      text: (n) => String(Number(n.toPrecision(2))),
      tickText: short,
      logarithmic: true,
    },
    panels: [
      timePanel(
        "Response time",
        200,
        [
          line("Mean", FIGURES.mean, (entry) => entry.response_time.mean),
          line("p95", FIGURES.p95, (entry) => entry.response_time.p95),
        ],
        true,
      ),
      ratePanel(110, [line("Commands", FIGURES.commands, perSecond)], (value) => `${short(value)}/s`),
      bytesPanel("Bytes each second, both ways", 110, [line("Bytes", FIGURES.bytes, throughput)]),
    ],
    interpolate: true,
  });
}

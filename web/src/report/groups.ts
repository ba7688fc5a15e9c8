// Response times by group of commands: the table, the cumulative distributions, and the load curve.
import { bytesPanel, curve, lines, ratePanel, type Series, timePanel } from "../charts/lines";
import { groupStroke } from "../charts/palette";
import { h, muted } from "../lib/dom";
import { bytes, duration, percent, short, span, thousands, tickDuration } from "../lib/format";
import { type Column, countColumn, shareColumn, textColumn, timeColumn, waitedColumn } from "../table/columns";
import { table } from "../table/table";
import type { Concurrency, Group, SmbscopeReportDocument } from "../types/report";
import { errorCount, waited } from "./figures";

export function groupTable(report: SmbscopeReportDocument): HTMLElement {
  const total = waited(report.totals.headline.response_time);
  const all: Group = {
    ...report.totals.headline,
    group: "Total" as Group["group"],
    headline: true,
    parts: [],
    cumulative: [],
  };
  const shown = report.groups.filter((group) => group.count > 0);
  const rows = [...shown.filter((group) => group.headline), all, ...shown.filter((group) => !group.headline)];
  const columns: Column<Group>[] = [
    textColumn("Group", (row) => row.group, { width: 14 }),
    countColumn("Count", (row) => row.count),
    timeColumn("p50", (row) => row.response_time.p50, { help: "Half of the commands were answered within this time" }),
    timeColumn("p95", (row) => row.response_time.p95, { help: "95 % were answered within this time" }),
    timeColumn("p99", (row) => row.response_time.p99, { help: "99 % were answered within this time" }),
    timeColumn("Slowest", (row) => row.response_time.max),
    countColumn("Errors", errorCount),
    waitedColumn((row) => waited(row.response_time)),
    waitedShare(total),
  ];
  return table({
    caption: "Response times by group",
    columns,
    rows,
    children: (row) => row.parts.filter((part) => part.count > 0),
    filter: false,
  });
}

/** The share of all seconds waited, as a number with a bar. Expected waits are none of them. */
function waitedShare(total: number): Column<Group> {
  const value = (row: Group) => (row.headline && total > 0 ? waited(row.response_time) / total : null);
  return shareColumn("Share of the waiting", value, {
    help: "Share of the seconds that all commands of the headline groups were waited for",
    width: 20,
    cell: (row) => {
      const share = value(row);
      if (share === null) return muted();
      return h(
        "span",
        { class: "share" },
        h(
          "span",
          { class: "share-bar", "aria-hidden": "true" },
          h("span", { style: `width: ${(100 * share).toFixed(2)}%` }),
        ),
        h("span", { class: "share-text" }, percent(share, 1)),
      );
    },
  });
}

export function cumulative(report: Pick<SmbscopeReportDocument, "groups">): HTMLElement | null {
  const groups = report.groups.filter((group) => group.cumulative.length > 1);
  if (groups.length === 0) return null;
  const series: Series[] = groups.map((group) => ({
    name: group.group,
    stroke: groupStroke(group.group),
    // Expected waits would stretch the axis.
    hidden: !group.headline && groups.some((other) => other.headline),
    points: group.cumulative.map(([time, share]) => [Math.max(1, time), share]),
  }));
  const marks = [0.5, 0.9, 0.95, 0.99, 1];
  return lines({
    label: `Cumulative distribution of response times of ${groups.map((group) => group.group).join(", ")}`,
    at: "Within",
    x: { title: "Response time", text: duration, tickText: tickDuration, logarithmic: true },
    panels: [
      {
        title: "Cumulative share",
        height: 300,
        series,
        from: 0,
        to: 1,
        ticks: [0, 0.25, 0.5, 0.75, 0.95, 1],
        text: (value) => percent(value, 1),
        tickText: (value) => `${Math.round(value * 100)}\u00a0%`,
      },
    ],
    interpolate: false,
    numbers: () => ({
      headings: ["Answered", ...groups.map((group) => group.group)],
      rows: marks.map((mark) => [
        percent(mark, 1),
        ...series.map((one) => duration(one.points.find((point) => point[1] >= mark - 1e-9)?.[0])),
      ]),
    }),
  });
}

/** A level of load in the middle of its bounds, on a scale by factors. */
export function levelOf(entry: Pick<Concurrency, "outstanding_from" | "outstanding_to">): number {
  const { outstanding_from: from, outstanding_to: to } = entry;
  return from > 0 ? Math.sqrt(from * to) : to / 2;
}

export function loadCurve(report: Pick<SmbscopeReportDocument, "concurrency">): HTMLElement | null {
  const levels = report.concurrency.filter((entry) => entry.commands > 0);
  if (levels.length < 2) return null;
  const line = (name: string, index: number, value: (entry: Concurrency) => number | null) =>
    curve(name, index, levels, levelOf, value);
  const seconds = (entry: Concurrency) => entry.time_ns / 1e9;
  const perSecond = (entry: Concurrency) => (seconds(entry) > 0 ? entry.commands / seconds(entry) : null);
  const throughput = (entry: Concurrency) =>
    seconds(entry) > 0 ? (entry.request_bytes + entry.response_bytes) / seconds(entry) : null;
  const range = (entry: Concurrency) => `${entry.outstanding_from} to ${entry.outstanding_to}`;
  return lines({
    label: "Response time and throughput against the mean number of outstanding commands",
    at: "Outstanding",
    x: {
      title: "Outstanding commands (mean of an interval)",
      text: (n) => String(Number(n.toPrecision(2))),
      tickText: short,
      logarithmic: true,
    },
    panels: [
      timePanel(
        "Response time",
        200,
        [line("Mean", 0, (entry) => entry.response_time.mean), line("95 %", 1, (entry) => entry.response_time.p95)],
        true,
      ),
      ratePanel(110, [line("Commands", 2, perSecond)], (value) => `${short(value)}/s`),
      bytesPanel("Bytes each second, both ways", 110, [line("Bytes", 3, throughput)]),
    ],
    interpolate: true,
    numbers: () => ({
      headings: ["Outstanding", "For", "Commands", "Mean", "Median", "95 %", "Commands/s", "Bytes/s"],
      rows: levels.map((entry) => [
        range(entry),
        span(entry.time_ns),
        thousands(entry.commands),
        duration(entry.response_time.mean),
        duration(entry.response_time.p50),
        duration(entry.response_time.p95),
        thousands(Math.round(perSecond(entry) ?? 0)),
        bytes(throughput(entry) ?? 0),
      ]),
    }),
  });
}

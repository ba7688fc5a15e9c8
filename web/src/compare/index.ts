// The page of a comparison, `smbscope.compare/1`: captures or reports side by side, each against the first.
import { type DotRow, dots } from "../charts/dots";
import { numbersTable } from "../charts/figure";
import { type Child, h, muted } from "../lib/dom";
import { ABSENT, bytes, counted, date, duration, percent, rate, ratio, span, thousands } from "../lib/format";
import { answer, choice, facts, list, meanings, type Page, part, section } from "../lib/page";
import { commandName } from "../report/figures";
import { type Column, countColumn, numberColumn, textColumn } from "../table/columns";
import { scrollingGrid } from "../table/grid";
import { table } from "../table/table";
import type { Cell, SmbscopeComparisonDocument } from "../types/compare";
import { rampsContent } from "./ramps";

type Metric = keyof Cell["response_time"];

const METRICS: [Metric, string][] = [
  ["mean", "Mean"],
  ["p50", "Median"],
  ["p95", "95 % within"],
  ["p99", "99 % within"],
  ["max", "Slowest"],
  ["sum", "Total wait"],
];

export function comparePage(document: SmbscopeComparisonDocument): Page {
  const { columns, notes, generator } = document;
  const ramps = rampsContent(document);
  // A ramp keeps percentiles, and not how values spread.
  const spreads = document.headline.cells.some((cell) => cell?.distribution.some((count) => count > 0));
  return {
    title: document.title ? `SMB response times compared: ${document.title}` : "SMB response times compared",
    facts: [
      facts(
        columns.map((column, i): [string, Child] => [
          i === 0 ? "Base" : `Compared ${i}`,
          `${column.name}${column.source === column.name ? "" : ` (${column.source})`}`,
        ]),
      ),
      notes.length > 0 ? noteList(document) : null,
    ],
    version: generator.version,
    sections: [
      ramps && section("ramps", "Load point by load point", ramps, "Ramps"),
      section("response-times", "Response times", [chosen(document)]),
      section("distribution", "Latency distribution", [spreads && decades(document)], "Distribution"),
      section(
        "overview",
        "What was compared",
        [
          overview(document),
          part("Quality of the captures", facts(columns.map((column) => [column.name, column.quality]))),
        ],
        "Overview",
      ),
      section("method", "How it was computed", [h("div", { class: "prose" }, meanings(METHOD))], "Method"),
    ],
  };
}

const KINDS: Record<SmbscopeComparisonDocument["notes"][number]["kind"], string> = {
  few: "Few commands",
  mix: "Different work",
  place: "Measured elsewhere",
  damage: "Damaged capture",
  encrypted: "Encrypted",
  filter: "Chosen otherwise",
  warning: "Warning",
};

/** Caveats come before the figures. */
function noteList({ notes, columns }: SmbscopeComparisonDocument): HTMLElement {
  const texts = notes.map((note) => {
    const about = columns[note.column]?.name ?? "";
    const where = note.text.includes(about) ? ". " : ` in ${about}. `;
    return h("span", {}, h("strong", {}, KINDS[note.kind]), where, note.text);
  });
  return answer("unknown", ["Caveats"], null, list(texts));
}

/** The chart and the tables of one statistic, which can be chosen. */
function chosen(document: SmbscopeComparisonDocument): HTMLElement {
  const options = METRICS.map(([value, name]) => ({ name, value }));
  const p95 = METRICS.findIndex(([metric]) => metric === "p95");
  return choice("Statistic", options, p95, (metric) => metricView(document, metric));
}

interface Entry {
  name: string;
  part: boolean;
  cells: (Cell | null)[];
}

/** The commands of SMB1 that do what a command of SMB2 does, where they stand in one row. */
function paired(command: SmbscopeComparisonDocument["commands"][number]): string {
  const others = new Set(command.members?.flat().filter((name) => name !== command.command));
  const names = [...others].map((name) => name.replace(/^SMB_COM_/, ""));
  return names.length > 0 ? ` = ${names.join(", ")}` : "";
}

function metricView(document: SmbscopeComparisonDocument, metric: Metric): HTMLElement[] {
  const title = METRICS.find(([key]) => key === metric)?.[1] ?? "";
  const groups: Entry[] = [
    { name: "All", part: false, cells: document.headline.cells },
    ...document.groups.map((group) => ({ name: group.group, part: group.part_of !== null, cells: group.cells })),
  ];
  const commands: Entry[] = document.commands.map((command) => ({
    name: `${commandName(command)}${paired(command)}${command.waiting ? " (waits)" : ""}`,
    part: false,
    cells: command.cells,
  }));
  const names = document.columns.map((column) => column.name);
  const chart = dots({
    label: `${title} of the response times by group, and the ratio to ${names[0] ?? "the base"}`,
    title,
    columns: names,
    rows: groups
      .filter((group) => group.cells.some((cell) => cell?.response_time[metric]))
      .map((group) => dotRow(group, metric, names)),
    numbers: () => ({
      headings: ["Group", ...names.flatMap((name, i) => (i === 0 ? [name] : [name, "Ratio"]))],
      rows: groups.map((group) => [
        group.name,
        ...group.cells.flatMap((cell, i) => {
          const value = duration(cell?.response_time[metric]);
          return i === 0 ? [value] : [value, ratio(cell?.ratios?.[metric]?.value)];
        }),
      ]),
    }),
  });
  return [
    chart,
    part("By group", entryTable("Groups", "Group", groups, metric, names)),
    part("By command", entryTable("Commands", "Command", commands, metric, names)),
  ];
}

function dotRow(entry: Entry, metric: Metric, names: string[]): DotRow {
  return {
    name: entry.name,
    part: entry.part,
    dots: entry.cells.map((cell, i) => {
      if (!cell) return null;
      const value = cell.response_time[metric];
      const found = cell.ratios?.[metric] ?? null;
      return {
        value,
        ratio: found?.value ?? null,
        interval: found?.interval ?? null,
        text: `${names[i]}: ${duration(value)}`,
      };
    }),
  };
}

function entryTable(caption: string, title: string, rows: Entry[], metric: Metric, names: string[]): HTMLElement {
  const columns: Column<Entry>[] = [textColumn(title, (row) => (row.part ? `— ${row.name}` : row.name))];
  for (const [i, name] of names.entries()) {
    columns.push(
      countColumn(i === 0 ? "Count" : `Count ${i + 1}`, (row) => row.cells[i]?.count ?? null, {
        help: `Commands of ${name}`,
      }),
      numberColumn(
        shortened(name),
        (row) => row.cells[i]?.response_time[metric] ?? null,
        metric === "sum" ? span : duration,
        { exported: `${name} (ns)`, help: name },
      ),
    );
    if (i > 0) {
      columns.push(
        numberColumn(
          names.length > 2 ? `Ratio ${i + 1}` : "Ratio",
          (row) => row.cells[i]?.ratios?.[metric]?.value ?? null,
          ratio,
          {
            help: `${name} divided by ${names[0]}`,
            exported: `Ratio of ${name}`,
            cell: (row) => ratioCell(row.cells[i] ?? null, metric),
          },
        ),
      );
    }
  }
  return table({ caption, columns, rows, filter: rows.length > 12 });
}

const DECADES = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"];

/** All commands by decade of their response time, without decades that no column has. */
function decades(document: SmbscopeComparisonDocument): HTMLElement {
  const { cells } = document.headline;
  const used = Array.from({ length: DECADES.length + 1 }, (_, i) => i).filter((i) =>
    cells.some((cell) => cell?.distribution[i]),
  );
  const name = (i: number) => {
    const [from, to] = [DECADES[i - 1], DECADES[i]];
    if (!from) return `< ${to}`;
    if (!to) return `≥ ${from}`;
    const [number, unit] = from.split(" ");
    return to.endsWith(` ${unit}`) ? `${number} – ${to}` : `${from} – ${to}`;
  };
  const share = (cell: Cell | null, i: number) => {
    const whole = cell?.distribution.reduce((sum, count) => sum + count, 0) ?? 0;
    return cell && whole > 0 ? percent(cell.distribution[i] ?? 0, whole) : ABSENT;
  };
  return numbersTable("Latency distribution by band", {
    headings: ["Band", ...document.columns.map((column) => column.name)],
    rows: used.map((i) => [name(i), ...cells.map((cell) => share(cell, i))]),
  });
}

/** A ratio that is clearly one or the other says so by its weight, and in words when pointed at. */
function ratioCell(cell: Cell | null, metric: Metric): Child {
  const found = cell?.ratios?.[metric];
  if (!found) return muted();
  const { value, interval } = found;
  const sure = interval ? interval.low > 1 || interval.high < 1 : Math.abs(Math.log(value)) > Math.log(1.1);
  const text = interval
    ? `${ratio(interval.low)} to ${ratio(interval.high)} with ${interval.level * 100} % confidence`
    : "";
  return h("span", { class: sure ? (value > 1 ? "worse" : "better") : "", title: text || undefined }, ratio(value));
}

function shortened(name: string): string {
  return name.length > 22 ? `${name.slice(0, 21)}…` : name;
}

function overview({ columns }: SmbscopeComparisonDocument): HTMLElement {
  type Overview = (typeof columns)[number]["overview"];
  const withRatio = (text: string, value: number | undefined) =>
    value === undefined ? text : `${text} (${ratio(value)})`;
  const rows: [string, (overview: Overview, column: (typeof columns)[number]) => string][] = [
    ["Captures", (_, column) => column.captures.map((capture) => capture.name).join(", ")],
    ...(columns.some((column) => column.filter !== null)
      ? ([["Only", (_, column) => column.filter ?? "all of it"]] as typeof rows)
      : []),
    ["From (UTC)", (_, column) => date(column.captures[0]?.first_ns)],
    ["Length", (of) => span(of.elapsed_ns)],
    ["Commands", (of) => thousands(of.commands)],
    ["Timed", (of) => thousands(of.timed)],
    ["Not timed", (of) => thousands(of.untimed)],
    ["Errors", (of) => thousands(of.errors)],
    ["Connections", (of) => thousands(of.connections)],
    [
      "Dialects",
      (of) => of.dialects.map((entry) => `${entry.dialect ?? "not captured"} (${entry.connections})`).join(", "),
    ],
    ["Read", (of) => bytes(of.bytes_read)],
    ["Written", (of) => bytes(of.bytes_written)],
    [
      "Throughput",
      (of) =>
        of.bytes_per_second === null
          ? ABSENT
          : withRatio(rate(of.bytes_per_second), of.ratios?.bytes_per_second?.value),
    ],
    [
      "Commands each second",
      (of) =>
        of.commands_per_second === null
          ? ABSENT
          : withRatio(thousands(Math.round(of.commands_per_second)), of.ratios?.commands_per_second?.value),
    ],
    ["Made by", (_, column) => `smbscope ${column.version}`],
  ];
  return scrollingGrid(
    {
      // As a landmark it needs another name than its section.
      caption: `What was compared: ${counted(columns.length, "column")}`,
      columns: [[""], ...columns.map((column) => [column.name] as const)],
      rows: rows.map(([name, text]) => [name, ...columns.map((column) => text(column.overview, column))]),
    },
    true,
  );
}

const METHOD: [string, string][] = [
  [
    "Response time",
    "From the first packet of the request to the last of the final response, as in every report of smbscope.",
  ],
  [
    "Ratio",
    "A column divided by the base, which is the first column: above one is slower, or more. Where it has a confidence interval, the interval is drawn, and only a ratio whose interval does not hold one stands out; without one, only a ratio of more than 1.1 either way does.",
  ],
  ["All", "The groups without expected waits and encrypted frames."],
  ["A dash", "The value is not known: too few commands, or none."],
];

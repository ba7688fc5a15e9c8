// Page of a comparison, `smbscope.compare/1`: captures or reports against the first one.
import { type DotRow, dots } from "../charts/dots";
import { type FactorPanel, factors } from "../charts/factors";
import { overTime } from "../charts/overtime";
import { seriesStroke } from "../charts/palette";
import { type Child, h, muted } from "../lib/dom";
import { ABSENT, bytes, counted, date, duration, rate, ratio, span, thousands, unbroken } from "../lib/format";
import {
  Choice,
  facts,
  lead,
  list,
  meanings,
  type Page,
  part,
  resultBox,
  type Section,
  section,
  whatNext,
} from "../lib/page";
import { whatToDo } from "../report/answer";
import { commandName } from "../report/figures";
import { distribution, distributionChart } from "../report/groups";
import { sliceName } from "../report/slices";
import { slowestTable } from "../report/slowest";
import { entities } from "../report/tables";
import { type Column, countColumn, numberColumn, pathColumn, textColumn } from "../table/columns";
import { scrollingGrid } from "../table/grid";
import { table } from "../table/table";
import type { ComparisonCell, ComparedSlices as Slices, SmbscopeComparisonDocument } from "../types/compare";
import { factorOf } from "./factor";
import { rampsContent } from "./ramps";

type Metric = keyof ComparisonCell["response_time"];

const METRICS: [Metric, string][] = [
  ["mean", "Mean"],
  ["p50", "Median"],
  ["p95", "p95"],
  ["p99", "p99"],
  ["max", "Slowest"],
  ["sum", "Total wait"],
];

export function comparePage(document: SmbscopeComparisonDocument): Page {
  const { columns, generator } = document;
  const ramps = rampsContent(document);
  const metric = metricChoice("p95");
  const names = columns.map((column) => column.name);
  const groups = groupEntries(document);
  return {
    title: document.title ? `SMB response times compared: ${document.title}` : "SMB response times compared",
    facts: [
      facts(
        columns.map((column, i): [string, Child] => [
          i === 0 ? "Baseline" : columns.length > 2 ? `Compared ${i}` : "Compared",
          `${column.name}${column.source === column.name ? "" : ` (${column.source})`}`,
        ]),
      ),
      ...document.answers.map(({ column, culprit, headline, evidence, caveats, next, ...answer }) =>
        resultBox(
          culprit,
          names[column] ?? "",
          unbroken(headline),
          // Without a culprit, the column is not slower.
          culprit === "nothing" ? null : whatToDo(answer),
          list([...evidence, ...caveats].map(unbroken)),
          whatNext(next),
        ),
      ),
    ],
    version: generator.version,
    sections: [
      ramps && section("ramps", "Ramps by load point", ramps, "Ramps"),
      overTimeSection(document),
      section("slices", "Breakdown", [document.slices && slicesPart(document.slices, names)]),
      section(
        "groups",
        "Command groups",
        [
          metric.place((of) => [
            groupDots(groups, of, names),
            groupFactors(groups, of, names),
            part("Response times by group", entryTable("Groups", "Group", groups, of, names)),
          ]),
          distributions(document),
        ],
        "Groups",
      ),
      section("commands", "Commands", [
        metric.place((of) => [entryTable("Commands", "Command", commandEntries(document), of, names)]),
      ]),
      slowestSection(document),
      filesSection(document),
      section("overview", "Inputs", [
        overview(document),
        part("Capture quality", facts(columns.map((column) => [column.name, column.quality]))),
      ]),
      section("caveats", "Caveats", [document.notes.length > 0 && noteList(document)]),
      section("method", "How the figures are computed", [h("div", { class: "prose" }, meanings(METHOD))], "Method"),
    ],
  };
}

type InputColumn = SmbscopeComparisonDocument["columns"][number];

/** Shows one column at a time, selectable among those that have a value. */
function ofOneColumn<Value>(
  columns: readonly InputColumn[],
  value: (column: InputColumn) => Value | null,
  begin: "first" | "last",
  show: (value: Value) => Child[],
): HTMLElement | null {
  const options = columns.flatMap((column) => {
    const found = value(column);
    return found === null ? [] : [{ name: column.name, value: found }];
  });
  if (options.length === 0) return null;
  return new Choice("Capture", options, begin === "first" ? 0 : options.length - 1).place(show);
}

/** Creates the heat map of the selected column. The columns were measured at different times. */
function overTimeSection({ columns }: SmbscopeComparisonDocument): Section | null {
  const content = ofOneColumn(
    columns,
    ({ captures, heatmap, slowest }) => heatmap && { captures, heatmap, slowest },
    "first",
    ({ captures, heatmap, slowest }) => {
      const ends = captures.flatMap(({ first_ns, last_ns }) => [first_ns, last_ns].filter((at) => at !== null));
      const first = heatmap.bins[0]?.start_ns ?? 0;
      return [overTime(heatmap, Math.min(first, ...ends), Math.max(first, ...ends), slowest)];
    },
  );
  return section("time", "Over time", [content]);
}

/** Creates the slowest commands of the selected column. */
function slowestSection({ columns }: SmbscopeComparisonDocument): Section | null {
  const content = ofOneColumn(
    columns,
    (column) => (column.slowest.length > 0 ? column : null),
    "last",
    ({ slowest, captures }) => [slowestTable(slowest, captures.length > 0)],
  );
  return section("slowest", "Slowest commands", [content], "Slowest");
}

/** Creates the files of the selected column. */
function filesSection({ columns }: SmbscopeComparisonDocument): Section | null {
  const named = ({ files }: InputColumn) => files.filter((file) => !file.is_other);
  const content = ofOneColumn(
    columns,
    (column) => (named(column).length > 0 ? named(column) : null),
    "last",
    (files) => [entities("Files", files, [pathColumn((row) => row.path)], 0)],
  );
  return section("files", "Files", [content]);
}

const KINDS: Record<SmbscopeComparisonDocument["notes"][number]["kind"], string> = {
  setup: "Different setup",
  few: "Few commands",
  mix: "Different work",
  place: "Different capture point",
  damage: "Damaged capture",
  encrypted: "Encrypted",
  filter: "Different filter",
  warning: "Warning",
};

function noteList({ notes, columns }: SmbscopeComparisonDocument): HTMLElement {
  const texts = notes.map((note) => {
    const about = columns[note.column]?.name ?? "";
    const where = note.text.includes(about) ? ". " : ` in ${about}. `;
    return h("span", {}, h("strong", {}, KINDS[note.kind]), where, note.text);
  });
  return list(texts, "warnings");
}

interface Entry {
  name: string;
  part: boolean;
  cells: (ComparisonCell | null)[];
}

/** Creates the selection of the statistic. */
function metricChoice(first: Metric): Choice<Metric> {
  const options = METRICS.map(([value, name]) => ({ name, value }));
  return new Choice(
    "Statistic",
    options,
    options.findIndex(({ value }) => value === first),
  );
}

/** Creates the breakdown. It starts with the total wait, as many slices have too few commands for percentiles. */
function slicesPart({ by, entries, left_out }: Slices, names: string[]): HTMLElement {
  const metric = metricChoice("sum");
  const rows = entries.map(({ key, cells }): Entry => ({ name: sliceName(key), part: false, cells }));
  const more = left_out > 0 ? ` of ${thousands(entries.length + left_out)}` : "";
  const sorted = "sorted by the longest total wait in any column";
  return h(
    "div",
    {},
    lead(`By ${by.join(", ")}: ${counted(entries.length, "combination")}${more}, ${sorted}.`),
    metric.place((of) => [entryTable(`Breakdown by ${by.join(", ")}`, `By ${by.join(", ")}`, rows, of, names, true)]),
  );
}

/** Names the SMB1 commands that share a row with an SMB2 command. */
function paired(command: SmbscopeComparisonDocument["commands"][number]): string {
  const others = new Set(command.members?.flat().filter((name) => name !== command.command));
  const names = [...others].map((name) => name.replace(/^SMB_COM_/, ""));
  return names.length > 0 ? ` = ${names.join(", ")}` : "";
}

function groupEntries({ headline, groups }: SmbscopeComparisonDocument): Entry[] {
  const parts = groups.map(({ group, part_of, cells }) => ({ name: group, part: part_of !== null, cells }));
  return [{ name: "Total", part: false, cells: headline.cells }, ...parts];
}

function commandEntries({ commands }: SmbscopeComparisonDocument): Entry[] {
  return commands.map((command) => ({
    name: `${commandName(command)}${paired(command)}${command.waiting ? " (expected wait)" : ""}`,
    part: false,
    cells: command.cells,
  }));
}

function groupDots(groups: Entry[], metric: Metric, names: string[]): HTMLElement {
  const title = METRICS.find(([key]) => key === metric)?.[1] ?? "";
  return dots({
    label: `${title} of response times by group`,
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
}

/** Draws the distributions of all columns, one chart per group. */
function distributions({ groups, columns }: SmbscopeComparisonDocument): HTMLElement | null {
  const charts = groups.flatMap(({ group, part_of, headline, cumulative }) => {
    const series = (cumulative ?? []).flatMap((points, i) =>
      points.length > 1 ? [distribution(columns[i]?.name ?? "", seriesStroke(i), points)] : [],
    );
    if (!headline || part_of !== null || series.length === 0) return [];
    return [part(group, distributionChart(group, series, 200))];
  });
  return charts.length > 0 ? part("Latency distribution", h("div", { class: "multiples" }, ...charts)) : null;
}

/** Draws the factors of the groups, one panel per column except the baseline. */
function groupFactors(groups: Entry[], metric: Metric, names: string[]): HTMLElement | null {
  const panels = names.slice(1).map((name, i): FactorPanel => {
    const rows = groups.flatMap(({ name, part, cells }) => {
      const factor = factorOf(cells[i + 1]?.ratios?.[metric] ?? null, metric === "sum" ? "amount" : "time");
      return factor ? [{ name, part, factor }] : [];
    });
    return { title: `${name} against ${names[0]}`, rows };
  });
  const shown = panels.filter(({ rows }) => rows.length > 0);
  if (shown.length === 0) return null;
  const title = METRICS.find(([key]) => key === metric)?.[1] ?? "";
  return factors({ label: `${title} of response times by group: factors against ${names[0]}`, panels: shown });
}

function dotRow(entry: Entry, metric: Metric, names: string[]): DotRow {
  return {
    name: entry.name,
    part: entry.part,
    dots: entry.cells.map((cell, i) => {
      if (!cell) return null;
      const value = cell.response_time[metric];
      return { value, text: `${names[i]}: ${duration(value)}` };
    }),
  };
}

function entryTable(
  caption: string,
  title: string,
  rows: Entry[],
  metric: Metric,
  names: string[],
  cutStart = false,
): HTMLElement {
  const columns: Column<Entry>[] = [textColumn(title, (row) => (row.part ? `— ${row.name}` : row.name), { cutStart })];
  for (const [i, name] of names.entries()) {
    columns.push(
      numberColumn(
        shortened(name),
        (row) => row.cells[i]?.response_time[metric] ?? null,
        metric === "sum" ? span : duration,
        { exported: `${name} (ns)`, help: name },
      ),
    );
    if (i === 0) continue;
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
  for (const [i, name] of names.entries()) {
    const title = i === 0 ? "Commands" : `Commands ${i + 1}`;
    columns.push(countColumn(title, (row) => row.cells[i]?.count ?? null, { help: `Commands of ${name}` }));
  }
  return table({ caption, columns, rows, filter: rows.length > 12 });
}

/** Creates the cell of a ratio. A significant difference is highlighted; the tooltip has the interval. */
function ratioCell(cell: ComparisonCell | null, metric: Metric): Child {
  const found = cell?.ratios?.[metric];
  if (!found) return muted();
  const { value, interval, certainty } = found;
  const sure = certainty?.shown ?? false;
  const within = certainty?.scope === "within_run" ? ", within these runs only" : "";
  const text = interval
    ? `${ratio(interval.low)} to ${ratio(interval.high)} with ${interval.level * 100}% confidence${within}`
    : "";
  return h("span", { class: sure ? (value > 1 ? "worse" : "better") : "", title: text || undefined }, ratio(value));
}

function shortened(name: string): string {
  return name.length > 22 ? `${name.slice(0, 21)}…` : name;
}

/** Figures that don't depend on the length of the captures. */
const perUnit = [
  ["Commands per MB", "commands_per_megabyte"],
  ["Round trips per file", "round_trips_per_file"],
  ["Connections per client", "connections_per_client"],
] as const;

function overview({ columns }: SmbscopeComparisonDocument): HTMLElement {
  type Overview = (typeof columns)[number]["overview"];
  const withRatio = (text: string, value: number | undefined) =>
    value === undefined ? text : `${text} (${ratio(value)})`;
  const rows: [string, (overview: Overview, column: (typeof columns)[number]) => string][] = [
    ["Captures", (_, column) => column.captures.map((capture) => capture.name).join(", ")],
    ...(columns.some((column) => column.filter !== null)
      ? ([["Filter", (_, column) => column.filter ?? "none"]] as typeof rows)
      : []),
    ["Start (UTC)", (_, column) => date(column.captures[0]?.first_ns)],
    ...(columns.some((column) => column.runs > 1)
      ? ([["Runs", (_, column) => thousands(column.runs)]] as typeof rows)
      : []),
    ["Duration", (of) => span(of.elapsed_ns)],
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
      "Commands per second",
      (of) =>
        of.commands_per_second === null
          ? ABSENT
          : withRatio(thousands(Math.round(of.commands_per_second)), of.ratios?.commands_per_second?.value),
    ],
    ...perUnit
      .filter(([, figure]) => columns.some(({ overview }) => overview[figure] !== null))
      .map(([name, figure]): (typeof rows)[number] => [
        name,
        (of) => {
          const value = of[figure];
          return value === null
            ? ABSENT
            : withRatio(value < 99.95 ? value.toFixed(1) : thousands(Math.round(value)), of.ratios?.[figure]?.value);
        },
      ]),
    ...(columns.some((column) => column.overview.job_elapsed_ns !== null)
      ? ([["Job", (of) => withRatio(duration(of.job_elapsed_ns), of.ratios?.job_elapsed?.value)]] as typeof rows)
      : []),
    ["Created by", (_, column) => `smbscope ${column.version}`],
  ];
  return scrollingGrid(
    {
      // Landmarks need distinct names, and the section is one, too.
      caption: `Inputs: ${counted(columns.length, "column")}`,
      columns: [[""], ...columns.map((column) => [column.name] as const)],
      rows: rows.map(([name, text]) => [name, ...columns.map((column) => text(column.overview, column))]),
    },
    true,
  );
}

const METHOD: [string, string][] = [
  [
    "Response time",
    "From the first packet of the request to the last packet of the final response, as in all smbscope reports.",
  ],
  [
    "Ratio",
    "A column divided by the baseline, which is the first column. Above 1 is slower, or more. Known confidence intervals are drawn. A difference is highlighted only if it is significant after correction for the number of rows; single runs have no such differences.",
  ],
  ["Total", "All groups except expected waits and encrypted frames."],
  ["A dash", "The value is unknown: too few commands, or none."],
];

// Factors against the baseline on a logarithmic axis, with interval and verdict.
import { scaleLog } from "d3-scale";
import { h, s } from "../lib/dom";
import { counted, ratio as ratioText } from "../lib/format";
import { type Box, logTicks, type Scale, xAxis } from "./axes";
import { figure, type Numbers, PAPER_HEIGHT } from "./figure";

/** Text and CSS class of each verdict. */
const VERDICTS = {
  slower: ["slower", "worse"],
  faster: ["faster", "better"],
  // Neither is better, as with processor time.
  more: ["more", "amount"],
  less: ["less", "amount"],
  equal: ["equal within 5%", "equal"],
  undecided: ["undecided", "open"],
  too_few: ["too few repetitions", "open"],
} as const;

export type Verdict = keyof typeof VERDICTS;

export interface Factor {
  ratio: number;
  /** 95% confidence interval. */
  interval: readonly [number, number] | null;
  /** Minimum and maximum, if there are too few repetitions for an interval. */
  range: readonly [number, number] | null;
  /** Null if significance was not tested. */
  verdict: Verdict | null;
  /** Estimated number of repetitions needed for a verdict. */
  needed: number | null;
}

export interface FactorRow {
  name: string;
  /** True for a part of the row above. */
  part?: boolean;
  /** Null for the baseline itself. */
  factor: Factor | null;
}

export interface FactorPanel {
  title: string;
  rows: readonly FactorRow[];
}

/** Formats a verdict: `slower`, `undecided, 12 repetitions`. */
export function verdictText({ verdict, needed }: Pick<Factor, "verdict" | "needed">): string {
  if (verdict === null) return "";
  const [word] = VERDICTS[verdict];
  return verdict === "undecided" && needed !== null ? `${word}, ${counted(needed, "repetition")}` : word;
}

/** Formats `1.40× (1.31× to 1.50×)`; a range is in square brackets. */
export function factorText({ ratio, interval, range }: Pick<Factor, "ratio" | "interval" | "range">): string {
  const ends = (of: readonly [number, number]) => `${ratioText(of[0])} to ${ratioText(of[1])}`;
  return `${ratioText(ratio)}${interval ? ` (${ends(interval)})` : range ? ` [${ends(range)}]` : ""}`;
}

const TOP = 10;
const AXIS = 40;
/** Approximate width of a character in pixels. */
const CHARACTER = 6.7;
const LINE = 16;
/** Intervals are drawn at most this factor beyond the smallest and largest ratio. */
const BEYOND = 5;

/** Positions of the parts of a row. */
interface Layout {
  /** True if names are above their marks rather than to the left. */
  stacked: boolean;
  names: number;
  axis: [number, number];
  /** Characters in a line of a name. */
  characters: number;
}

/** Stacks panels that share one axis. */
export function factors(options: {
  label: string;
  panels: readonly FactorPanel[];
  /** Rows of the data table. Defaults to each row with its factor. */
  numbers?(): Numbers;
}): HTMLElement {
  const { label, panels } = options;
  const all = panels.flatMap(({ rows }) => rows.flatMap(({ factor }) => factor ?? []));
  const domain = factorDomain(all);
  const rowHeight = (row: FactorRow, layout: Layout) =>
    layout.stacked ? LINE * wrapped(row.name, layout.characters).length + 40 : 28;
  const panelHeight = (panel: FactorPanel, layout: Layout) =>
    panel.rows.reduce((sum, row) => sum + rowHeight(row, layout), TOP + titleOf(panel, layout).length * LINE + AXIS);
  const layoutOf = (width: number) => layout(panels, width);
  const { element } = figure({
    label,
    height: (width) => panels.reduce((sum, panel) => sum + panelHeight(panel, layoutOf(width)), 0),
    draw: (svg, width) => {
      const found = layoutOf(width);
      let top = 0;
      for (const panel of panels) {
        const heights = panel.rows.map((row) => rowHeight(row, found));
        drawPanel(svg, panel, heights, found, domain, top, width);
        top += panelHeight(panel, found);
      }
    },
    numbers: options.numbers ?? (() => numbers(panels)),
    cuts: (width) => cuts(panels, layoutOf(width), rowHeight),
    above: [legend(all)],
  });
  return element;
}

/** Returns the top of each panel; if one is higher than a page, of each row, too. */
function cuts(
  panels: readonly FactorPanel[],
  layout: Layout,
  rowHeight: (row: FactorRow, layout: Layout) => number,
): number[] {
  let at = 0;
  const all = panels.map((panel) => {
    const tops = [at];
    at += TOP + titleOf(panel, layout).length * LINE;
    for (const [i, row] of panel.rows.entries()) {
      if (i > 0) tops.push(at);
      at += rowHeight(row, layout);
    }
    at += AXIS;
    return tops;
  });
  const isTall = all.some(([top = 0], i) => (all[i + 1]?.[0] ?? at) - top > PAPER_HEIGHT);
  return isTall ? all.flat() : all.flatMap(([top = 0]) => top);
}

function layout(panels: readonly FactorPanel[], width: number): Layout {
  const rows = panels.flatMap(({ rows }) => rows);
  const longest = (texts: string[]) => Math.max(0, ...texts.map((text) => text.length)) * CHARACTER;
  const names = longest(rows.map((row) => row.name)) + 24;
  const texts = longest(rows.map(({ factor }) => (factor ? `${factorText(factor)}  ${verdictText(factor)}` : "")));
  const stacked = width - names - texts < 280;
  const axis: [number, number] = stacked ? [14, width - 14] : [names, width - texts - 24];
  return { stacked, names, axis, characters: Math.max(16, Math.floor(width / CHARACTER)) };
}

/** Wraps a title. Bold text is wider. */
function titleOf({ title }: FactorPanel, { characters }: Layout): string[] {
  return wrapped(title, Math.floor(0.85 * characters));
}

function drawPanel(
  svg: Element,
  panel: FactorPanel,
  heights: readonly number[],
  layout: Layout,
  domain: [number, number],
  from: number,
  width: number,
): void {
  const { rows } = panel;
  const { stacked, axis, characters } = layout;
  const title = titleOf(panel, layout);
  const top = from + TOP + title.length * LINE;
  const box: Box = { left: axis[0], right: axis[1], top, bottom: top + heights.reduce((a, b) => a + b, 0) };
  const x: Scale = scaleLog(domain, axis);
  const ticks = ratioTicks(...domain, Math.max(3, Math.floor((box.right - box.left) / 58)));
  svg.append(
    xAxis(box, x, { ticks, text: (n) => `${Number(n.toPrecision(n < 1 ? 2 : 3))}×` }),
    ...title.map((text, i) => s("text", { class: "title", x: 0, y: from + (i + 1) * LINE }, text)),
    s("line", { class: "one", x1: x(1), x2: x(1), y1: box.top, y2: box.bottom }),
  );
  let y = top;
  for (const [i, row] of rows.entries()) {
    const height = heights[i] ?? 0;
    if (i > 0) svg.append(s("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }));
    const { factor } = row;
    const lines = stacked ? wrapped(row.name, characters) : [row.name];
    const middle = stacked ? y + height - 11 : y + height / 2;
    const nameAt = stacked ? y + 14 : middle + 4;
    const group = s("g", { class: `factor ${kindOf(factor)}`, "data-name": row.name });
    // Covers grid lines under the text.
    if (stacked) group.append(s("rect", { class: "ground", x: 0, y: y + 1, width, height: height - 23 }));
    for (const [j, text] of lines.entries()) {
      const kind = row.part ? "name part-of" : "name";
      group.append(s("text", { class: kind, x: row.part ? 12 : 0, y: nameAt + j * LINE }, text));
    }
    const textAt = stacked ? 0 : box.right + 24;
    const textY = stacked ? nameAt + lines.length * LINE : middle + 4;
    group.append(
      s(
        "text",
        { x: textAt, y: textY },
        factor ? `${factorText(factor)}  ` : "baseline",
        factor && s("tspan", { class: "word" }, verdictText(factor)),
      ),
    );
    if (factor) mark(group, factor, x, middle);
    else group.append(s("path", { class: "dot", d: DIAMOND, transform: `translate(${x(1)} ${middle})` }));
    svg.append(group);
    y += height;
  }
}

/** Draws the line from the baseline, the whisker and the dot. */
function mark(group: Element, factor: Factor, x: Scale, y: number): void {
  const { ratio, interval, range } = factor;
  group.append(s("line", { class: "spread", x1: x(1), x2: x(ratio), y1: y, y2: y }));
  const ends = interval ?? range;
  if (ends) {
    const [first, last] = x.domain() as [number, number];
    const [low, high] = [Math.max(ends[0], first), Math.min(ends[1], last)];
    // A whisker that extends beyond the axis has no cap.
    const cap = (end: number, shown: number) => (end === shown ? `M${x(shown)} ${y - 5}v10` : "");
    const d = `${cap(ends[0], low)}${cap(ends[1], high)}M${x(low)} ${y}H${x(high)}`;
    group.append(s("path", { class: interval ? "interval" : "interval range", d }));
  }
  const d = shapeOf(factor.verdict);
  const text = `${factorText(factor)} ${verdictText(factor)}`.trim();
  group.append(s("path", { class: "dot", d, transform: `translate(${x(ratio)} ${y})` }, s("title", {}, text)));
}

const CIRCLE = "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z";
const SQUARE = "M-4 -4h8v8h-8z";
const DIAMOND = "M0 -5.5L5.5 0L0 5.5L-5.5 0z";
const UP = "M0 -5.5L5.5 4h-11z";
const DOWN = "M0 5.5L5.5 -4h-11z";

/** Returns the shape of a verdict, so that no meaning depends on colour alone: better points up, worse down. */
function shapeOf(verdict: Verdict | null): string {
  const kind = verdict && VERDICTS[verdict][1];
  return kind === "worse" ? DOWN : kind === "better" ? UP : kind === "equal" ? SQUARE : CIRCLE;
}

function kindOf(factor: Factor | null): string {
  return factor === null ? "baseline" : factor.verdict === null ? "unasked" : VERDICTS[factor.verdict][1];
}

function legend(all: readonly Factor[]): HTMLElement {
  const kinds = new Map<string, { verdict: Verdict | null; words: Set<string> }>();
  for (const { verdict } of all) {
    const kind = verdict === null ? "unasked" : VERDICTS[verdict][1];
    const found = kinds.get(kind) ?? { verdict, words: new Set() };
    found.words.add(verdict === null ? "factor" : VERDICTS[verdict][0]);
    kinds.set(kind, found);
  }
  const items = [...kinds].map(([kind, { verdict, words }]) =>
    h("span", { class: "item" }, sample(kind, shapeOf(verdict)), [...words].join(", ")),
  );
  const whisker = (d: string, text: string, kind: string) =>
    h("span", { class: "item" }, sample(kind, d, "interval"), text);
  const across = "M-6 0h12M-6 -4v8M6 -4v8";
  if (all.some(({ interval }) => interval)) items.push(whisker(across, "95% interval", ""));
  if (all.some(({ interval, range }) => range && !interval)) {
    items.push(whisker(across, "range (too few repetitions for an interval)", "range"));
  }
  return h("div", { class: "legend" }, ...items);
}

function sample(kind: string, d: string, of = "dot"): SVGElement {
  const box = { class: "sample chart-sample", width: 16, height: 14, viewBox: "-8 -7 16 14", "aria-hidden": "true" };
  return s("svg", box, s("g", { class: `factor ${kind}` }, s("path", { class: `${of} ${kind}`.trim(), d })));
}

function numbers(panels: readonly FactorPanel[]): Numbers {
  const rows = panels.flatMap(({ title, rows }) =>
    rows.map(({ name, factor }) => [
      title,
      name,
      factor ? factorText(factor) : "baseline",
      factor ? verdictText(factor) : "",
    ]),
  );
  return { headings: ["Figure", "Name", "Factor", "Verdict"], rows };
}

/** Returns a range that includes all factors and 1. */
export function factorDomain(all: readonly Factor[]): [number, number] {
  const ratios = [1, ...all.map(({ ratio }) => ratio)];
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  const ends = all.flatMap(({ interval, range }) => {
    const found = interval ?? range;
    return found ? [Math.max(found[0], least / BEYOND), Math.min(found[1], most * BEYOND)] : [];
  });
  const [low, high] = [Math.min(1 / 1.1, least, ...ends), Math.max(1.1, most, ...ends)];
  const air = (high / low) ** 0.03;
  return [low / air, high * air];
}

/** Returns at most `most` ticks of a ratio axis, including 1. On both sides of it, ticks are each other's inverses. */
export function ratioTicks(low: number, high: number, most: number): number[] {
  const sets = [
    [1.02, 1.04, 1.06, 1.08, 1.1],
    [1.1, 1.2, 1.3, 1.4, 1.5],
    [1.25, 1.5, 2],
    [1.5, 2, 3],
    [2, 4, 8],
    [2, 5, 10, 20, 50, 100, 200, 500],
    [10, 100, 1_000, 10_000],
  ];
  const widest = Math.max(high, 1 / low);
  const within = (set: number[]) =>
    [...set.map((n) => 1 / n).reverse(), 1, ...set].filter((n) => n >= low && n <= high);
  const fitting = sets
    .map((set) => ({ marks: within(set), last: Math.max(...set.filter((n) => n <= widest), 1) }))
    .filter(({ marks }) => marks.length > 1 && marks.length <= most);
  const best = fitting.find(({ last }) => last ** 1.7 >= widest) ?? fitting.at(-1);
  return best?.marks ?? logTicks(low, high, most);
}

/** Wraps a text at blanks into lines of at most `characters`. Splits longer words. */
export function wrapped(text: string, characters: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap((word) => pieces(word, characters))) {
    if (line !== "" && line.length + 1 + word.length > characters) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

function pieces(word: string, characters: number): string[] {
  const count = Math.max(1, Math.ceil(word.length / characters));
  return Array.from({ length: count }, (_, i) => word.slice(i * characters, (i + 1) * characters));
}

// Dots on a common axis, a row each: values side by side, and how many times as much they are.
import { scaleLog } from "d3-scale";
import { h, s } from "../lib/dom";
import { ratio as ratioText, tickDuration } from "../lib/format";
import { type Box, logTicks, type Scale, xAxis } from "./axes";
import { figure, type Numbers } from "./figure";
import { seriesStroke } from "./palette";

/** One column's dot in a row. */
export interface Dot {
  value: number | null;
  /** To the base; absent in the base itself. */
  ratio: number | null;
  interval: { low: number; high: number } | null;
  /** Said of the dot when it is pointed at. */
  text: string;
}

export interface DotRow {
  name: string;
  /** A part of the row above. */
  part: boolean;
  dots: (Dot | null)[];
}

export interface DotsOptions {
  label: string;
  /** What the values are. */
  title: string;
  columns: string[];
  rows: DotRow[];
  numbers(): Numbers;
}

const TOP = 30;
const NAME = 104;

export function dots(options: DotsOptions): HTMLElement {
  const { rows, columns } = options;
  const rowHeight = Math.max(30, 12 + 11 * columns.length);
  const height = TOP + rows.length * rowHeight;
  // In a narrow window the second panel is beneath the first.
  const both = (width: number) => width >= 760;
  const drawAll = (svg: SVGSVGElement, width: number) => {
    const middle = Math.round(NAME + (width - NAME) * 0.52);
    const panel = (left: number, right: number, top: number): Box => ({
      left,
      right,
      top: top + TOP,
      bottom: top + height,
    });
    const [first, second] = both(width)
      ? [panel(NAME, middle - 24, 0), panel(middle + 24, width - 14, 0)]
      : [panel(NAME, width - 14, 0), panel(NAME, width - 14, height + 52)];
    values(svg, options, first, rowHeight);
    ratios(svg, options, second, rowHeight);
    names(svg, options, first, rowHeight);
    if (!both(width)) names(svg, options, second, rowHeight);
  };
  const legend = h(
    "div",
    { class: "legend" },
    ...columns.map((name, i) => h("span", { class: "item" }, sample(i), i === 0 ? `${name} (baseline)` : name)),
  );
  const { element } = figure({
    label: options.label,
    height: (width) => (both(width) ? height + 34 : 2 * height + 86),
    draw: drawAll,
    numbers: options.numbers,
    above: [legend],
  });
  return element;
}

function values(svg: Element, { rows, title }: DotsOptions, box: Box, rowHeight: number): void {
  const known = rows.flatMap((row) => row.dots.flatMap((dot) => (dot?.value ? [dot.value] : [])));
  const low = Math.min(...known, 1e9) / 1.25;
  const high = Math.max(...known, 1e3) * 1.25;
  const x: Scale = scaleLog([low, Math.max(high, low * 4)], [box.left, box.right]);
  const ticks = logTicks(low, high, Math.floor((box.right - box.left) / 70));
  svg.append(xAxis(box, x, { ticks, text: tickDuration }));
  svg.append(s("text", { class: "title", x: titleAt(box), y: box.top - 12 }, title));
  for (const [i, row] of rows.entries()) {
    const ends = row.dots.flatMap((dot) => (dot?.value ? [x(dot.value)] : []));
    const y = box.top + (i + 0.5) * rowHeight;
    if (ends.length > 1)
      svg.append(s("line", { class: "spread", x1: Math.min(...ends), x2: Math.max(...ends), y1: y, y2: y }));
    for (const [column, dot] of row.dots.entries()) {
      if (dot?.value) svg.append(marker(column, x(dot.value), y, dot.text));
    }
  }
}

/** Above the names too where the panel has them, so that there is room in a narrow window. */
function titleAt(box: Box): number {
  return box.left > NAME ? box.left : 0;
}

function ratios(svg: Element, { rows, columns }: DotsOptions, box: Box, rowHeight: number): void {
  const known = rows.flatMap((row) =>
    row.dots.flatMap((dot) =>
      [dot?.ratio, dot?.interval?.low, dot?.interval?.high].filter((n): n is number => typeof n === "number" && n > 0),
    ),
  );
  // The same factor on both sides, so that twice and half are as far from one.
  const widest = Math.max(1.25, ...known.map((n) => Math.max(n, 1 / n))) * 1.08;
  const x: Scale = scaleLog([1 / widest, widest], [box.left, box.right]);
  const ticks = ratioTicks(widest, Math.floor((box.right - box.left) / 60));
  svg.append(xAxis(box, x, { ticks, text: (n) => `${Number(n.toPrecision(2))}×` }));
  const title = "Ratio to the baseline: faster ← → slower";
  svg.append(s("text", { class: "title", x: titleAt(box), y: box.top - 12 }, title));
  svg.append(s("line", { class: "one", x1: x(1), x2: x(1), y1: box.top, y2: box.bottom }));
  const compared = columns.length - 1;
  for (const [i, row] of rows.entries()) {
    for (const [column, dot] of row.dots.entries()) {
      if (column === 0 || !dot?.ratio) continue;
      const y = box.top + (i + (column - 0.5) / compared) * rowHeight * 0.8 + rowHeight * 0.1 + i * rowHeight * 0.2;
      svg.append(s("line", { class: "spread", x1: x(1), x2: x(dot.ratio), y1: y, y2: y }));
      if (dot.interval) {
        const { low, high } = dot.interval;
        svg.append(
          s("path", { class: "interval", d: `M${x(low)} ${y - 4}v8M${x(high)} ${y - 4}v8M${x(low)} ${y}H${x(high)}` }),
        );
      }
      svg.append(marker(column, x(dot.ratio), y, `${dot.text}, ${ratioText(dot.ratio)}`));
    }
  }
}

/** Marks of the same factor up and down, as many as there is room for. */
export function ratioTicks(widest: number, most: number): number[] {
  const sets = [
    [1.1, 1.2, 1.3, 1.4, 1.5],
    [1.25, 1.5, 2],
    [1.5, 2, 3],
    [2, 4, 8],
    [2, 5, 10, 20, 50],
    [10, 100, 1_000, 10_000],
  ];
  const fitting = sets
    .map((set) => set.filter((n) => n <= widest))
    .filter((set) => set.length > 0 && 2 * set.length + 1 <= most);
  const best = fitting.find((set) => (set.at(-1) ?? 1) ** 1.7 >= widest) ?? fitting.at(-1) ?? [];
  return [...best.map((n) => 1 / n).reverse(), 1, ...best];
}

function names(svg: Element, { rows }: DotsOptions, box: Box, rowHeight: number): void {
  for (const [i, row] of rows.entries()) {
    const y = box.top + (i + 0.5) * rowHeight;
    if (i > 0)
      svg.append(
        s("line", { class: "grid", x1: 0, x2: box.right, y1: box.top + i * rowHeight, y2: box.top + i * rowHeight }),
      );
    svg.append(s("text", { class: row.part ? "name part-of" : "name", x: row.part ? 12 : 0, y: y + 4 }, row.name));
  }
}

/** A shape of its own for each column, so that no meaning rests on the colour. */
function shape(column: number): string {
  const shapes = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "M-4 -4h8v8h-8z",
    "M0 -5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 -5L5 4H-5z",
    "M0 5L5 -4H-5z",
  ];
  return shapes[column % shapes.length] ?? "";
}

function marker(column: number, x: number, y: number, text: string): SVGElement {
  return s(
    "path",
    {
      class: "dot",
      d: shape(column),
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
      style: `fill: ${seriesStroke(column).colour}`,
      "data-column": column,
    },
    s("title", {}, text),
  );
}

function sample(column: number): SVGElement {
  return s(
    "svg",
    { class: "sample", width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    s("path", { d: shape(column), style: `fill: ${seriesStroke(column).colour}` }),
  );
}

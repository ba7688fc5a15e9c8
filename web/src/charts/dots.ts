// Dot plot: one row per group, one dot per column.
import { scaleLog } from "d3-scale";
import { h, s } from "../lib/dom";
import { tickDuration } from "../lib/format";
import { type Box, logTicks, type Scale, xAxis } from "./axes";
import { figure, type Numbers } from "./figure";
import { seriesStroke } from "./palette";

export interface Dot {
  value: number | null;
  /** Tooltip. */
  text: string;
}

export interface DotRow {
  name: string;
  /** True for a part of the row above. */
  part: boolean;
  dots: (Dot | null)[];
}

export interface DotsOptions {
  label: string;
  /** Name of the statistic. */
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
  const drawAll = (svg: SVGSVGElement, width: number) => {
    const box: Box = { left: NAME, right: width - 14, top: TOP, bottom: height };
    values(svg, options, box, rowHeight);
    names(svg, options, box, rowHeight);
  };
  const legend = h(
    "div",
    { class: "legend" },
    ...columns.map((name, i) => h("span", { class: "item" }, sample(i), i === 0 ? `${name} (baseline)` : name)),
  );
  const { element } = figure({
    label: options.label,
    height: height + 34,
    draw: drawAll,
    numbers: options.numbers,
    cuts: () => rows.map((_, i) => TOP + i * rowHeight).slice(1),
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
  svg.append(s("text", { class: "title", x: 0, y: box.top - 12 }, title));
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

/** Returns a distinct shape per column, so that no meaning depends on colour alone. */
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

// What every chart has: a drawing that fits its place, a description, and its numbers as a table.
import { append, type Child, h, s } from "../lib/dom";
import { scrollingGrid } from "../table/grid";

/** The numbers behind a chart. */
export interface Numbers {
  headings: string[];
  rows: string[][];
}

export interface FigureOptions {
  /** What the chart shows, for those who do not see it. */
  label: string;
  /** In pixels; may depend on the width. */
  height: number | ((width: number) => number);
  /** Draws into the empty drawing; called again when the width changes. */
  draw(svg: SVGSVGElement, width: number): void;
  numbers(): Numbers;
  /** Above the drawing: legend, readout, buttons. */
  above?: Child[];
  /** Keys that the chart understands. */
  key?(event: KeyboardEvent): boolean;
}

export interface Figure {
  element: HTMLElement;
  /** Draws anew. */
  redraw(): void;
}

export function figure(options: FigureOptions): Figure {
  const svg = s("svg", { role: "img", "aria-label": options.label, class: "chart" });
  if (options.key) {
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      if (options.key?.(event)) event.preventDefault();
    });
  }
  const place = h("div", { class: "chart-place" }, svg);
  const element = h("figure", {}, ...(options.above ?? []), place, numbersElement(options));
  let width = 0;
  const draw = () => {
    const height = typeof options.height === "number" ? options.height : options.height(width);
    // Drawn for this width; on paper the whole is scaled.
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", String(height));
    svg.replaceChildren();
    options.draw(svg, width);
  };
  const fit = () => {
    const found = Math.round(place.clientWidth);
    if (found < 1 || found === width) return;
    width = found;
    draw();
  };
  new ResizeObserver(fit).observe(place);
  // At once where it is in the page already, so that nothing moves later.
  queueMicrotask(fit);
  return { element, redraw: () => width > 0 && draw() };
}

/** The table is made when it is first asked for. */
function numbersElement(options: FigureOptions): HTMLElement {
  const details = h("details", { class: "numbers no-print" }, h("summary", {}, "The numbers"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    append(details, numbersTable(options.label, options.numbers()));
  });
  return details;
}

/** A plain table of numbers. */
export function numbersTable(caption: string, { headings, rows }: Numbers): HTMLElement {
  return scrollingGrid({ caption, columns: headings.map((title) => [title, "number"] as const), rows });
}

/** Where a pointer is in the drawing: on a scaled one a pixel of the screen is not a unit of it. */
export function pointedAt(svg: SVGSVGElement, event: PointerEvent): number {
  const place = svg.getBoundingClientRect();
  return ((event.clientX - place.left) * svg.viewBox.baseVal.width) / Math.max(1, place.width);
}

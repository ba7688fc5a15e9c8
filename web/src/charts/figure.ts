// Base of every chart: a drawing that fits its width, a description, and its data as a table.
import { append, type Child, h, s } from "../lib/dom";
import { scrollingGrid } from "../table/grid";

/** Data of a chart. */
export interface Numbers {
  headings: string[];
  rows: string[][];
}

export interface FigureOptions {
  /** Description for screen readers. */
  label: string;
  /** Height in pixels, may depend on the width. */
  height: number | ((width: number) => number);
  /** Draws into the empty element. Called again when the width changes. */
  draw(svg: SVGSVGElement, width: number): void;
  numbers(): Numbers;
  /** Legend, readout and buttons above the drawing. */
  above?: Child[];
  /** Handles a key. Returns false if the key has no meaning. */
  key?(event: KeyboardEvent): boolean;
}

export interface Figure {
  element: HTMLElement;
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
    // Drawn for this width; in print the drawing is scaled.
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
  // Draws before the first paint, so that nothing moves later.
  queueMicrotask(fit);
  return { element, redraw: () => width > 0 && draw() };
}

/** Creates the collapsed data table, which is filled when it is first opened. */
function numbersElement(options: FigureOptions): HTMLElement {
  const details = h("details", { class: "numbers no-print" }, h("summary", {}, "Data table"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    append(details, numbersTable(options.label, options.numbers()));
  });
  return details;
}

export function numbersTable(caption: string, { headings, rows }: Numbers): HTMLElement {
  return scrollingGrid({ caption, columns: headings.map((title) => [title, "number"] as const), rows });
}

/** Converts a pointer position to units of the drawing, which may be scaled. */
export function pointedAt(svg: SVGSVGElement, event: PointerEvent): number {
  const place = svg.getBoundingClientRect();
  return ((event.clientX - place.left) * svg.viewBox.baseVal.width) / Math.max(1, place.width);
}

// Base of every chart: a drawing that fits its width, a description, and its data as a table.
import { append, type Child, h, s } from "../lib/dom";
import { onPrint } from "../lib/print";
import { scrollingGrid } from "../table/grid";

/** Width of a printed drawing in pixels: A4 without margins. On other paper, it is scaled. */
const PAPER_WIDTH = 700;

/** Maximum height of a printed piece, which leaves room for heading and legend on a page. */
export const PAPER_HEIGHT = 840;

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
  /** Draws into the empty element. Called again when the width changes. `divided` is true if it will be cut for print. */
  draw(svg: SVGSVGElement, width: number, divided: boolean): void;
  numbers(): Numbers;
  /** Positions at which a tall drawing may be divided between printed pages, ascending. */
  cuts?(width: number): number[];
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
  let printing = false;
  const draw = () => {
    const height = typeof options.height === "number" ? options.height : options.height(width);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", String(height));
    svg.replaceChildren();
    const ends = pageEnds(height, printing ? (options.cuts?.(width) ?? []) : []);
    options.draw(svg, width, ends.length > 1);
    // A drawing that is in place stays, so that it keeps the focus.
    if (ends.length > 1 || svg.parentElement !== place) place.replaceChildren(...pieces(svg, width, ends));
  };
  const resize = () => {
    const found = printing ? PAPER_WIDTH : Math.round(place.clientWidth);
    if (found < 1 || found === width) return;
    width = found;
    draw();
  };
  new ResizeObserver(resize).observe(place);
  // Draws before the first paint, so that nothing moves later.
  queueMicrotask(resize);
  onPrint((now) => {
    if (now === printing) return;
    printing = now;
    width = 0;
    if (place.isConnected) resize();
  });
  return { element, redraw: () => width > 0 && draw() };
}

/** Divides a drawing into copies that show a part each, down to its end. */
function pieces(svg: SVGSVGElement, width: number, ends: readonly number[]): SVGSVGElement[] {
  if (ends.length === 1) return [svg];
  return ends.map((end, i) => {
    const from = ends[i - 1] ?? 0;
    const piece = svg.cloneNode(true) as SVGSVGElement;
    piece.setAttribute("viewBox", `0 ${from} ${width} ${end - from}`);
    piece.setAttribute("height", String(end - from));
    piece.classList.add("piece");
    return piece;
  });
}

/** Returns the lower ends of the pieces of a drawing, each as high as the cuts and a page allow. */
export function pageEnds(height: number, cuts: readonly number[]): number[] {
  const ends: number[] = [];
  let from = 0;
  for (const [i, cut] of cuts.entries()) {
    const next = cuts[i + 1] ?? height;
    if (next - from > PAPER_HEIGHT && cut > from) {
      ends.push(cut);
      from = cut;
    }
  }
  return [...ends, height];
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

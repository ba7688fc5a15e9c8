// Axes, grids and the marks on them.
import type { ScaleContinuousNumeric } from "d3-scale";
import { s } from "../lib/dom";
import { clock } from "../lib/format";

export type Scale = ScaleContinuousNumeric<number, number>;

/** A rectangle to draw in. */
export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface AxisOptions {
  ticks: number[];
  text(value: number): string;
  title?: string;
}

/** About how wide a character of a label is, and how far a label may reach out to the right, in pixels. */
const CHARACTER = 7;
const EDGE = 12;

/** The lower axis. */
export function xAxis(box: Box, scale: Scale, options: AxisOptions): SVGElement {
  const axis = s("g", { class: "axis x", "aria-hidden": "true" });
  axis.append(s("line", { class: "base", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  let free = Number.NEGATIVE_INFINITY;
  for (const tick of options.ticks) {
    const x = crisp(scale(tick));
    axis.append(s("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    axis.append(s("line", { class: "base", x1: x, x2: x, y1: box.bottom, y2: box.bottom + 4 }));
    const text = options.text(tick);
    const half = (text.length * CHARACTER) / 2;
    // Within the drawing, and never into the label before.
    const middle = Math.min(x, box.right + EDGE - half);
    if (text === "" || middle - half < free) continue;
    free = middle + half + CHARACTER;
    axis.append(s("text", { x: middle, y: box.bottom + 18, "text-anchor": "middle" }, text));
  }
  if (options.title) {
    axis.append(s("text", { class: "title", x: box.right, y: box.bottom + 36, "text-anchor": "end" }, options.title));
  }
  return axis;
}

/** The left axis, with its title above it. */
export function yAxis(box: Box, scale: Scale, options: AxisOptions): SVGElement {
  const axis = s("g", { class: "axis y", "aria-hidden": "true" });
  for (const tick of options.ticks) {
    const y = crisp(scale(tick));
    axis.append(s("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    axis.append(s("text", { x: box.left - 8, y: y + 4, "text-anchor": "end" }, options.text(tick)));
  }
  if (options.title) {
    axis.append(
      s(
        "text",
        { class: "title", x: box.left - 8, y: box.top - 10, "text-anchor": "start", dx: -(box.left - 10) },
        options.title,
      ),
    );
  }
  return axis;
}

/** Where a line of one pixel is sharp. */
function crisp(position: number): number {
  return Math.round(position) + 0.5;
}

/** Marks on a logarithmic axis: decades, and parts of them where there is room. */
export function logTicks(from: number, to: number, most: number): number[] {
  const first = Math.floor(Math.log10(from));
  const last = Math.ceil(Math.log10(to));
  const within = (values: number[]) => values.filter((value) => value >= from * 0.999_999 && value <= to * 1.000_001);
  const decades = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  for (const parts of [
    [1, 2, 5],
    [1, 3],
  ]) {
    const fine = within(decades.flatMap((decade) => parts.map((part) => part * decade)));
    if (fine.length <= most) return fine;
  }
  const coarse = within(decades);
  const step = Math.ceil(coarse.length / Math.max(1, most));
  return coarse.filter((_, i) => i % step === 0);
}

/** Steps that read well on an axis of time, in nanoseconds. */
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000,
  2_592_000_000, 31_536_000_000,
].map((milliseconds) => milliseconds * 1e6);

/** Marks on an axis of points in time. They are counted from `origin`, so that doubles stay exact. */
export function timeTicks(from: number, to: number, origin: number, most: number): number[] {
  const step = STEPS.find((step) => (to - from) / step <= most) ?? (to - from) / most;
  // Round in UTC and not from the beginning of the capture.
  const offset = origin % step;
  const ticks: number[] = [];
  for (let tick = Math.ceil((from + offset) / step) * step - offset; tick <= to; tick += step) ticks.push(tick);
  return ticks;
}

/** The text of such a mark: no finer than the step needs, and never the same for two of them. */
export function timeText(at: number, origin: number, ticks: number[]): string {
  const step = (ticks[1] ?? at + 1e9) - (ticks[0] ?? at);
  const day = new Date((origin + at) / 1e6).toISOString().slice(0, 10);
  if (step >= 86_400e9) return day;
  // Minutes and seconds without hours would look like hours and minutes.
  const time = clock(origin + at + 5e5).slice(0, step >= 1e9 ? 8 : step >= 1e8 ? 10 : 12);
  return (ticks.at(-1) ?? at) - (ticks[0] ?? at) >= 86_400e9 ? `${day.slice(5)} ${time.slice(0, 5)}` : time;
}

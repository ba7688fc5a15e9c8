// Axes, grids and the marks on them.
import type { ScaleContinuousNumeric } from "d3-scale";
import { s } from "../lib/dom";
import { clock } from "../lib/format";

export type Scale = ScaleContinuousNumeric<number, number>;

/** Plot area in pixels. */
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

/** Approximate width of a character, and how far a label may extend past the right edge, in pixels. */
const CHARACTER = 7;
const EDGE = 12;

/** Draws the horizontal axis. */
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
    // Keeps the label inside the drawing and clear of the previous one.
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

/** Draws the vertical axis, with its title above it. */
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

/** Rounds to the centre of a pixel, so that a line of one pixel is sharp. */
function crisp(position: number): number {
  return Math.round(position) + 0.5;
}

/** Returns ticks of a logarithmic axis: decades, and steps within them if there is room. */
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

/** Tick intervals of a time axis, in nanoseconds. */
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000,
  2_592_000_000, 31_536_000_000,
].map((milliseconds) => milliseconds * 1e6);

/** Returns ticks of a time axis as offsets from `origin`, which doubles hold exactly. */
export function timeTicks(from: number, to: number, origin: number, most: number): number[] {
  const step = STEPS.find((step) => (to - from) / step <= most) ?? (to - from) / most;
  // Ticks are round times of day in UTC, not offsets from the start of the capture.
  const offset = origin % step;
  const ticks: number[] = [];
  for (let tick = Math.ceil((from + offset) / step) * step - offset; tick <= to; tick += step) ticks.push(tick);
  return ticks;
}

/** Formats a tick of a time axis, no finer than its step. No two ticks have the same text. */
export function timeText(at: number, origin: number, ticks: number[]): string {
  const step = (ticks[1] ?? at + 1e9) - (ticks[0] ?? at);
  const day = new Date((origin + at) / 1e6).toISOString().slice(0, 10);
  if (step >= 86_400e9) return day;
  // Minutes and seconds without hours would look like hours and minutes.
  const time = clock(origin + at + 5e5).slice(0, step >= 1e9 ? 8 : step >= 1e8 ? 10 : 12);
  return (ticks.at(-1) ?? at) - (ticks[0] ?? at) >= 86_400e9 ? `${day.slice(5)} ${time.slice(0, 5)}` : time;
}

// Waterfall chart: commands as bars on a time axis, coloured by group. Overlapping commands are in separate lanes. Zooms
// by wheel, by dragging and by keys.
import { scaleLinear } from "d3-scale";
import { h, s } from "../lib/dom";
import { counted, duration, thousands } from "../lib/format";
import type { SlowExchange } from "../types/report";
import { type Box, xAxis } from "./axes";
import { figure, pointedAt } from "./figure";
import { groupStroke } from "./palette";

/** Height of a lane, and margins above and below the lanes, in pixels. */
const LANE = 14;
const TOP = 8;
const BOTTOM = 44;

/** Maximum number of lanes. Further commands share the last one. */
const LANES_MAX = 32;

/** Shortest visible period in nanoseconds. */
const NARROWEST = 1000;

interface Bar {
  from: number;
  to: number;
  lane: number;
  exchange: SlowExchange;
}

/** Assigns each command to the first free lane. */
export function lanes(exchanges: readonly SlowExchange[]): Bar[] {
  const sorted = [...exchanges].sort((a, b) => a.request_first_ns - b.request_first_ns);
  const first = sorted[0]?.request_first_ns ?? 0;
  const free: number[] = [];
  return sorted.map((exchange) => {
    const from = exchange.request_first_ns - first;
    const to = from + exchange.response_time_ns;
    const found = free.findIndex((until) => until <= from);
    const lane = Math.min(found < 0 ? free.length : found, LANES_MAX - 1);
    free[lane] = Math.max(to, free[lane] ?? 0);
    return { from, to, lane, exchange };
  });
}

export function waterfall(exchanges: readonly SlowExchange[]): HTMLElement {
  const bars = lanes(exchanges);
  const end = Math.max(1, ...bars.map((bar) => bar.to));
  const used = 1 + Math.max(0, ...bars.map((bar) => bar.lane));
  const groups = [...new Set(bars.map((bar) => bar.exchange.group))];
  const readout = h("p", { class: "readout", "aria-live": "off" }, "Hover over a bar to see its command");
  const whole = h("button", { type: "button", hidden: true, click: () => look(0, end) }, "Show all");
  let [from, to] = [0, end];

  const look = (start: number, until: number) => {
    const width = Math.min(end, Math.max(NARROWEST, until - start));
    from = Math.max(0, Math.min(start, end - width));
    to = from + width;
    whole.hidden = width >= end;
    chart.redraw();
  };
  const zoom = (factor: number, around: number) =>
    look(around - (around - from) * factor, around + (to - around) * factor);

  const chart = figure({
    label: `${counted(bars.length, "command")} on a time axis, by group`,
    height: TOP + used * LANE + BOTTOM,
    above: [h("div", { class: "waterfall-head no-print" }, legend(groups), whole), readout],
    draw(svg, width) {
      const box: Box = { left: 8, right: width - 16, top: TOP, bottom: TOP + used * LANE };
      const x = scaleLinear([from, to], [box.left, box.right]);
      const text = (value: number) => duration(value);
      const ticks = x.ticks(Math.max(2, Math.floor(width / 120)));
      svg.append(xAxis(box, x, { ticks, text, title: "after the first command" }));
      for (const bar of bars) {
        if (bar.to < from || bar.from > to) continue;
        const [left, right] = [Math.max(box.left, x(bar.from)), Math.min(box.right, x(bar.to))];
        const rect = s("rect", {
          x: left,
          y: TOP + bar.lane * LANE + 1,
          width: Math.max(1, right - left),
          height: LANE - 2,
          pointerenter: () => {
            readout.textContent = describe(bar);
          },
        });
        rect.style.fill = groupStroke(bar.exchange.group).colour;
        svg.append(rect);
      }
      follow(svg, x.invert.bind(x), { zoom, look });
    },
    key(event) {
      const width = to - from;
      const moves: Record<string, () => void> = {
        "+": () => zoom(0.5, from + width / 2),
        "-": () => zoom(2, from + width / 2),
        ArrowLeft: () => look(from - width / 4, to - width / 4),
        ArrowRight: () => look(from + width / 4, to + width / 4),
        Escape: () => look(0, end),
      };
      const move = moves[event.key];
      move?.();
      return move !== undefined;
    },
    numbers: () => ({
      headings: ["Offset (ns)", "Response time (ns)", "Command", "Path"],
      rows: bars.map(({ from, exchange }) => [
        thousands(from),
        thousands(exchange.response_time_ns),
        exchange.command,
        exchange.path ?? "",
      ]),
    }),
  });
  return chart.element;
}

/** Zooms by wheel and by dragging. A double click shows everything. */
function follow(
  svg: SVGSVGElement,
  time: (x: number) => number,
  { zoom, look }: { zoom(factor: number, around: number): void; look(from: number, to: number): void },
): void {
  let begun: number | null = null;
  svg.onwheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const place = svg.getBoundingClientRect();
    const at = ((event.clientX - place.left) * svg.viewBox.baseVal.width) / Math.max(1, place.width);
    zoom(event.deltaY < 0 ? 0.7 : 1.4, time(at));
  };
  svg.onpointerdown = (event) => {
    begun = pointedAt(svg, event);
  };
  svg.onpointerup = (event) => {
    const ended = pointedAt(svg, event);
    if (begun !== null && Math.abs(ended - begun) > 4) look(time(Math.min(begun, ended)), time(Math.max(begun, ended)));
    begun = null;
  };
  svg.ondblclick = () => look(0, Number.MAX_SAFE_INTEGER);
}

function describe({ from, exchange }: Bar): string {
  const path = exchange.path ? ` of ${exchange.path}` : "";
  const packets = `packets ${exchange.request_first_packet} → ${exchange.response_last_packet}`;
  return `${exchange.command}${path}: ${duration(exchange.response_time_ns)}, ${duration(from)} after the first command, ${packets}`;
}

function legend(groups: readonly string[]): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    ...groups.map((group) => {
      const mark = h("span", { class: "mark", "aria-hidden": true });
      mark.style.background = groupStroke(group).colour;
      return h("li", {}, mark, group);
    }),
  );
}

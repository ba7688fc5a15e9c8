// Waterfall chart: commands as bars on a time axis, coloured by group. Few commands have a named row each; of more, those
// that overlap are in separate lanes. Zooms by wheel, by dragging and by keys.
import { scaleLinear } from "d3-scale";
import { h, s } from "../lib/dom";
import { counted, duration, thousands, tickDuration } from "../lib/format";
import type { SlowExchange } from "../types/report";
import { type Box, xAxis } from "./axes";
import { figure, pointedAt } from "./figure";
import { groupStroke } from "./palette";

/** Height of a lane, and margins above and below the lanes, in pixels. */
const LANE = 14;
const TOP = 8;
const BOTTOM = 44;

/** Maximum number of commands with a row each, and the width of their names in pixels. */
const ROWS_MAX = 100;
const NAMES = 250;

/** Approximate width of a character in pixels. */
const CHARACTER = 6.6;

/** Maximum number of lanes. Further commands share the last one. */
const LANES_MAX = 32;

const ZOOM_HINT = "Drag to zoom; arrow keys move, + and − zoom";

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

/** Assigns each command a row of its own. */
export function rows(exchanges: readonly SlowExchange[]): Bar[] {
  return lanes(exchanges).map((bar, lane) => ({ ...bar, lane }));
}

/** Creates the chart, up to this time if it is later than the last command. A click on a bar opens its command. */
export function waterfall(
  exchanges: readonly SlowExchange[],
  open: ((exchange: SlowExchange) => void) | null,
  until = 1,
): HTMLElement {
  const named = exchanges.length <= ROWS_MAX;
  const bars = named ? rows(exchanges) : lanes(exchanges);
  const end = Math.max(until, ...bars.map((bar) => bar.to));
  const used = 1 + Math.max(0, ...bars.map((bar) => bar.lane));
  const groups = [...new Set(bars.map((bar) => bar.exchange.group))];
  const hint = `Hover over a bar to see its command${open ? ", click it for details" : ""}. ${ZOOM_HINT}`;
  const readout = h("p", { class: "readout", "aria-live": "off" }, hint);
  const whole = h(
    "button",
    { type: "button", class: "quiet no-print", hidden: true, click: () => look(0, end) },
    "Show all",
  );
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
    above: [h("div", { class: "waterfall-head" }, legend(groups, bars.some(serverPart)), whole), readout],
    cuts: () => Array.from({ length: used - 1 }, (_, i) => TOP + (i + 1) * LANE),
    draw(svg, width) {
      const names = named ? Math.min(NAMES, 0.4 * width) : 8;
      const box: Box = { left: names, right: width - 16, top: TOP, bottom: TOP + used * LANE };
      const x = scaleLinear([from, to], [box.left, box.right]);
      const ticks = x.ticks(Math.max(2, Math.floor((box.right - box.left) / 120)));
      svg.append(xAxis(box, x, { ticks, text: tickDuration, title: "after the first command" }));
      if (named) svg.append(...bars.map((bar) => nameOf(bar, names)));
      for (const bar of bars) {
        if (bar.to < from || bar.from > to) continue;
        const part = (start: number, until: number, on: Record<string, unknown>) => {
          const [left, right] = [Math.max(box.left, x(start)), Math.min(box.right, x(until))];
          if (right < left) return;
          const width = Math.max(1, right - left);
          const rect = s("rect", { x: left, y: TOP + bar.lane * LANE + 1, width, height: LANE - 2, ...on });
          rect.style.fill = groupStroke(bar.exchange.group).colour;
          svg.append(rect);
        };
        const server = serverPart(bar);
        part(bar.from, bar.to, {
          class: server === null ? "command-bar" : "command-bar on-the-way",
          pointerenter: () => {
            readout.textContent = describe(bar);
          },
          click: () => open?.(bar.exchange),
        });
        if (server !== null) part(...server, { class: "server-part" });
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
        // Without a zoom, Escape closes the dialog around the chart.
        ...(width < end && { Escape: () => look(0, end) }),
      };
      const move = moves[event.key];
      move?.();
      return move !== undefined;
    },
    numbers: () => ({
      headings: ["Offset (ns)", "Response time (ns)", "Server time (ns)", "Command", "Path"],
      rows: bars.map(({ from, exchange }) => [
        thousands(from),
        thousands(exchange.response_time_ns),
        exchange.server_time_ns === null ? "" : thousands(exchange.server_time_ns),
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

/**
 * Returns when the server worked on a command: in the middle of the time between request and response, as the round
 * trip divides in an unknown way. Null if the round trip is unknown.
 */
function serverPart({ from, exchange }: Bar): [number, number] | null {
  const { request_transfer_ns: request, service_time_ns: service, server_time_ns: server } = exchange;
  if (service === null || server === null) return null;
  const start = from + (request ?? 0) + (service - server) / 2;
  return [start, start + server];
}

/** Creates the name of a row: the command and the end of its path. */
function nameOf({ lane, exchange }: Bar, width: number): SVGElement {
  const { command, path } = exchange;
  const [most, name] = [Math.floor(width / CHARACTER), command.replace(/^SMB_COM_/, "")];
  const room = most - name.length - 1;
  const end = path !== null && path.length > room ? `…${path.slice(1 - room)}` : (path ?? "");
  const text = room > 4 ? `${name} ${end}` : name.slice(0, most);
  return s("text", { class: "row-name", x: 0, y: TOP + (lane + 1) * LANE - 3 }, text);
}

function describe({ from, exchange }: Bar): string {
  const path = exchange.path ? ` of ${exchange.path}` : "";
  // The captures of replays are not kept.
  const packets = exchange.capture
    ? `, packets ${exchange.request_first_packet} → ${exchange.response_last_packet}`
    : "";
  const server = exchange.server_time_ns === null ? "" : ` (server ${duration(exchange.server_time_ns)})`;
  return `${exchange.command}${path}: ${duration(exchange.response_time_ns)}${server}, ${duration(from)} after the first command${packets}`;
}

/** Lists the groups, groups of one colour as one entry, and the shade of the time on the way. */
function legend(groups: readonly string[], shaded: boolean): HTMLElement {
  const byColour = new Map<string, string[]>();
  for (const group of groups) {
    const { colour } = groupStroke(group);
    byColour.set(colour, [...(byColour.get(colour) ?? []), group]);
  }
  const items = [...byColour].map(([colour, names]) => {
    const mark = h("span", { class: "mark", "aria-hidden": true });
    mark.style.background = colour;
    return h("li", {}, mark, names.join(", "));
  });
  const shade = shaded && h("li", {}, "full colour: server; light: transfer and round trip");
  return h("ul", { class: "legend" }, ...items, shade);
}

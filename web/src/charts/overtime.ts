// Heat map of response times, with throughput and concurrency below on the same time axis.
import { scaleLinear, scaleLog } from "d3-scale";
import { announce } from "../lib/clipboard";
import { h, s } from "../lib/dom";
import { clock, counted, decimal, duration, elapsed, rate, thousands, tickDuration, tickRate } from "../lib/format";
import { onPeriod, type Period, setPeriod } from "../lib/period";
import { namesTests, onSelection, SELECTION_KINDS, type Selection, selectionText } from "../lib/selection";
import type { HeatMap, SlowExchange } from "../types/report";
import { type Box, logTicks, type Scale, timeText, timeTicks, xAxis, yAxis } from "./axes";
import { bucketHigh, cells, classes, classOf, latencyRange, outliers, quantile } from "./bins";
import { figure, type Numbers, pointedAt } from "./figure";
import { lineSample } from "./split";

const TESTS = namesTests<SlowExchange>();

const CLASSES = 7;
const HEIGHT = 520;
const PANELS = { heat: [26, 286], throughput: [330, 400], concurrency: [444, 490] } as const;

type Bin = HeatMap["bins"][number];

/** Highlighted period with its tooltip. */
export interface Band {
  start_ns: number;
  duration_ns: number;
  text: string;
}

interface Marks {
  bands?: readonly Band[];
  /** Opens the command of a point. */
  open?(exchange: SlowExchange): void;
}

/** Creates the chart. `first` and `last` are the ends of the capture in nanoseconds; outliers of `slowest` become points. */
export function overTime(
  map: HeatMap,
  first: number,
  last: number,
  slowest: readonly SlowExchange[],
  marks: Marks = {},
): HTMLElement {
  return new OverTime(map, first, last, outliers(map, slowest), marks).element;
}

class OverTime {
  readonly element: HTMLElement;
  private readonly map: HeatMap;
  /** Reference of all times in the chart, so that doubles hold them exactly. */
  private readonly origin: number;
  private readonly first: number;
  private readonly whole: [number, number];
  private range: [number, number];
  private readonly readout = h("p", { class: "readout" });
  private readonly legend = h("div", { class: "legend heat-legend" });
  private readonly all = h(
    "button",
    { type: "button", class: "quiet", disabled: true, click: () => setPeriod(null) },
    "Show all",
  );
  private readonly redraw: () => void;
  private x: Scale = scaleLinear();
  private cursor: SVGElement = s("g");
  private at = -1;
  private selected: Selection | null = null;
  private dragged: number | null = null;
  private selection: SVGElement = s("rect");

  constructor(
    map: HeatMap,
    first: number,
    last: number,
    private readonly outliers: readonly SlowExchange[],
    private readonly marks: Marks,
  ) {
    this.map = map;
    this.first = first;
    this.origin = map.bins[0]?.start_ns ?? first;
    const ends = map.bins.map((bin) => bin.start_ns - this.origin + map.width_ns);
    this.whole = [Math.min(0, first - this.origin), Math.max(last - this.origin, ends.at(-1) ?? 0, map.width_ns)];
    this.range = this.whole;
    const tools = h("div", { class: "chart-tools no-print" }, this.all);
    const { element, redraw } = figure({
      label: `Response times over time: commands started per ${tickDuration(map.width_ns)} by response time, the slowest as points, with throughput and outstanding commands`,
      height: HEIGHT,
      draw: (svg, width) => this.draw(svg, width),
      numbers: () => this.numbers(),
      key: (event) => this.key(event),
      above: [this.legend, tools, this.readout],
    });
    this.element = element;
    this.element.classList.add("timed");
    this.redraw = redraw;
    this.say();
    onPeriod(this.element, (period) => this.follow(period));
    onSelection(this.element, SELECTION_KINDS, (selection) => {
      this.selected = selection;
      this.redraw();
    });
  }

  private draw(svg: SVGSVGElement, width: number): void {
    const left = 76;
    const right = width - 12;
    const box = ([top, bottom]: readonly [number, number]): Box => ({ left, right, top, bottom });
    this.x = scaleLinear(this.range, [left, right]);
    const clip = `clip-${this.map.width_ns}`;
    svg.append(
      s("clipPath", { id: clip }, s("rect", { x: left, y: 0, width: Math.max(0, right - left), height: HEIGHT })),
    );
    const ticks = timeTicks(...this.range, this.origin, Math.max(2, Math.floor((right - left) / 75)));
    const text = (at: number) => timeText(at, this.origin, ticks);
    const drawn = s("g", { "clip-path": `url(#${clip})` });

    const heat = box(PANELS.heat);
    const [low, high] = latencyRange(this.map);
    const y = scaleLog([low, high], [heat.bottom, heat.top]);
    svg.append(xAxis(heat, this.x, { ticks, text: () => "" }));
    svg.append(yAxis(heat, y, { ticks: logTicks(low, high, 7), text: tickDuration, title: "Response time" }));
    drawn.append(this.heat(y, heat));

    const seconds = this.map.width_ns / 1e9;
    const throughput = box(PANELS.throughput);
    const peak = Math.max(1, ...this.map.bins.map((bin) => Math.max(bin.request_bytes, bin.response_bytes))) / seconds;
    this.panel(svg, throughput, ticks, () => "", peak, tickRate, "Bytes of SMB");
    const toClient = linear(peak, throughput);
    drawn.append(this.steps("to-client", (bin) => bin.response_bytes / seconds, toClient));
    drawn.append(this.steps("to-server", (bin) => bin.request_bytes / seconds, toClient));

    const concurrency = box(PANELS.concurrency);
    const deepest = Math.max(0.01, ...this.map.bins.map((bin) => bin.outstanding_ns / this.map.width_ns));
    this.panel(
      svg,
      concurrency,
      ticks,
      text,
      deepest,
      (value) => String(Number(value.toPrecision(3))),
      "Outstanding commands (mean)",
    );
    drawn.append(
      this.steps("outstanding", (bin) => bin.outstanding_ns / this.map.width_ns, linear(deepest, concurrency), true),
    );

    for (const { start_ns, duration_ns, text } of this.marks.bands ?? []) {
      const from = this.x(start_ns - this.origin);
      const to = this.x(start_ns - this.origin + duration_ns);
      const place = { x: from, y: heat.top, width: Math.max(2, to - from), height: concurrency.bottom - heat.top };
      drawn.append(s("g", { class: "band" }, s("rect", place), s("title", {}, text)));
    }
    svg.append(drawn);
    this.selection = s("rect", { class: "selection", y: heat.top, height: concurrency.bottom - heat.top, width: 0 });
    this.cursor = s("g", { class: "cursor" });
    const surface = s("rect", {
      class: "surface",
      x: left,
      y: heat.top,
      width: Math.max(0, right - left),
      height: concurrency.bottom - heat.top,
    });
    svg.append(this.selection, this.cursor, surface, this.slow(y, `url(#${clip})`));
    this.listen(surface, svg);
    this.mark();
  }

  private panel(
    svg: Element,
    box: Box,
    ticks: number[],
    text: (at: number) => string,
    most: number,
    show: (value: number) => string,
    title: string,
  ): void {
    svg.append(xAxis(box, this.x, { ticks, text }));
    svg.append(yAxis(box, linear(most, box), { ticks: linear(most, box).ticks(2), text: show, title }));
  }

  /** Draws one path per colour class. */
  private heat(y: Scale, box: Box): SVGElement {
    const visible = (this.range[1] - this.range[0]) / this.map.width_ns;
    const buckets = Math.log(y.domain()[1] as number) - Math.log(y.domain()[0] as number);
    const perBucket = Math.log(bucketHigh(this.map, 2) / bucketHigh(this.map, 1)) || 1;
    const across = merged((box.right - box.left) / visible, 1.5);
    const up = merged(((box.bottom - box.top) * perBucket) / buckets, 2.5);
    const found = cells(this.map, this.origin, across, up).filter(
      (cell) => cell.to > this.range[0] && cell.from < this.range[1],
    );
    const bounds = classes(Math.max(1, ...found.map((cell) => cell.count)), CLASSES);
    const paths = bounds.map(() => "");
    const round = (value: number) => Math.round(value * 10) / 10;
    for (const cell of found) {
      const left = round(this.x(cell.from));
      const width = Math.max(1, round(this.x(cell.to) - left));
      const top = round(y(cell.high));
      paths[classOf(bounds, cell.count)] +=
        `M${left} ${top}h${width}V${round(Math.min(y(cell.low), box.bottom))}h${-width}z`;
    }
    this.explain(bounds);
    return s("g", { class: "heat" }, ...paths.map((d, i) => s("path", { d, style: shade(i, bounds.length) })));
  }

  /** Returns the outliers of the selection. */
  private points(): readonly SlowExchange[] {
    const { selected } = this;
    const test = selected && TESTS[selected.kind];
    return selected && test ? this.outliers.filter((point) => test(point, selected)) : this.outliers;
  }

  /** Draws a point per outlier, with its command as tooltip. */
  private slow(y: Scale, clip: string): SVGElement {
    const [low, high] = y.domain() as [number, number];
    const { open } = this.marks;
    const points = this.points().map((exchange) => {
      const { request_first_ns: start, response_time_ns: time, command, path } = exchange;
      const at = { cx: this.x(start - this.origin), cy: y(Math.min(high, Math.max(low, time))), r: 3.5 };
      const name = [command.replace(/^SMB_COM_/, ""), path].filter(Boolean).join(" ");
      const title = s("title", {}, `${name}: ${duration(time)} at ${clock(start)}`);
      return s("circle", { ...at, click: open && (() => open(exchange)) }, title);
    });
    return s("g", { class: open ? "slow opens" : "slow", "clip-path": clip }, ...points);
  }

  private explain(bounds: number[]): void {
    const items = bounds.map((bound, i) => {
      const next = bounds[i + 1];
      const text =
        next === undefined
          ? i === 0
            ? "1"
            : `${thousands(bound)}+`
          : next - bound > 1
            ? `${thousands(bound)}–${thousands(next - 1)}`
            : thousands(bound);
      return h(
        "span",
        { class: "item" },
        h("span", { class: "swatch", style: shade(i, bounds.length), "aria-hidden": "true" }),
        text,
      );
    });
    const count = this.points().length;
    const [all, of] = this.selected ? [" (everything)", ` of ${selectionText(this.selected)}`] : ["", ""];
    this.legend.replaceChildren(
      h("span", { class: "item muted" }, `Commands per cell${all}`),
      ...items,
      this.outliers.length > 0
        ? h("span", { class: "item apart" }, pointSample(), `${counted(count, "slowest command")}${of}`)
        : "",
      h("span", { class: "item apart" }, lineSample("var(--sky)", ""), "to clients"),
      h("span", { class: "item" }, lineSample("var(--amber)", "5 2"), "to servers"),
    );
  }

  /** Draws a step line, zero between bins. */
  private steps(name: string, value: (bin: Bin) => number, y: Scale, filled = false): SVGElement {
    const width = this.map.width_ns;
    const base = y(0);
    let path = `M${this.x(this.whole[0])} ${base}`;
    let end = this.whole[0];
    for (const bin of this.map.bins) {
      const from = bin.start_ns - this.origin;
      // Timestamps are rounded to doubles; adjacent bins must still touch.
      if (from - end > width / 2) path += `V${base}H${this.x(from).toFixed(1)}`;
      path += `V${y(value(bin)).toFixed(1)}H${this.x(from + width).toFixed(1)}`;
      end = from + width;
    }
    path += `V${base}H${this.x(this.whole[1]).toFixed(1)}`;
    return s("path", { class: `series ${name}${filled ? " filled" : ""}`, d: path });
  }

  private listen(surface: SVGElement, svg: SVGSVGElement): void {
    const position = (event: PointerEvent) => this.x.invert(pointedAt(svg, event));
    surface.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") return;
      surface.setPointerCapture(event.pointerId);
      this.dragged = position(event);
    });
    surface.addEventListener("pointermove", (event) => {
      const at = position(event);
      this.point(Math.floor(at / this.map.width_ns));
      if (this.dragged === null) return;
      const [from, to] = [Math.min(at, this.dragged), Math.max(at, this.dragged)];
      this.selection.setAttribute("x", String(this.x(from)));
      this.selection.setAttribute("width", String(this.x(to) - this.x(from)));
    });
    surface.addEventListener("pointerup", (event) => {
      if (this.dragged === null) return;
      const [from, to] = [Math.min(position(event), this.dragged), Math.max(position(event), this.dragged)];
      this.dragged = null;
      this.selection.setAttribute("width", "0");
      if (this.x(to) - this.x(from) > 6) this.show([from, to]);
    });
    surface.addEventListener("dblclick", () => setPeriod(null));
  }

  private key(event: KeyboardEvent): boolean {
    const bins = [this.range[0], this.range[1]].map((end) => Math.floor(end / this.map.width_ns)) as [number, number];
    const move = (step: number) => {
      const from = this.at < bins[0] || this.at > bins[1] ? Math.round((bins[0] + bins[1]) / 2) : this.at + step;
      this.point(Math.min(bins[1], Math.max(bins[0], from)));
      announce(this.readout.textContent ?? "");
    };
    const zoom = (factor: number) => {
      const middle =
        this.at < bins[0] || this.at > bins[1]
          ? (this.range[0] + this.range[1]) / 2
          : (this.at + 0.5) * this.map.width_ns;
      const half = ((this.range[1] - this.range[0]) * factor) / 2;
      this.show([middle - half, middle + half]);
    };
    if (event.key === "ArrowRight") move(event.shiftKey ? 10 : 1);
    else if (event.key === "ArrowLeft") move(event.shiftKey ? -10 : -1);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "Escape" || event.key === "0") setPeriod(null);
    else return false;
    return true;
  }

  /** Zooms the whole page to a period of whole intervals, at least four. */
  private show([from, to]: [number, number]): void {
    const width = this.map.width_ns;
    const middle = (from + to) / 2;
    const half = Math.max(to - from, 4 * width) / 2;
    const start = Math.max(this.whole[0], Math.floor((middle - half) / width) * width);
    const end = Math.min(this.whole[1], Math.ceil((middle + half) / width) * width);
    const all = start <= this.whole[0] && end >= this.whole[1];
    const digits = end - start < 1e9 ? 3 : end - start < 600e9 ? 1 : 0;
    const text = [start, end].map((at) => elapsed(this.origin + at - this.first, digits)).join(" – ");
    setPeriod(all ? null : { from: this.origin + start, to: this.origin + end, text });
  }

  private follow(period: Period | null): void {
    this.range = period ? [period.from - this.origin, period.to - this.origin] : this.whole;
    this.all.disabled = period === null;
    this.redraw();
    this.say();
  }

  private point(bin: number): void {
    this.at = bin;
    this.mark();
    this.say();
  }

  private mark(): void {
    const from = this.at * this.map.width_ns;
    const within = from + this.map.width_ns > this.range[0] && from < this.range[1] && this.at >= 0;
    const x = this.x(from + this.map.width_ns / 2);
    const line = s("line", { x1: x, x2: x, y1: PANELS.heat[0], y2: PANELS.concurrency[1] });
    this.cursor.replaceChildren(...(within ? [line] : []));
  }

  private say(): void {
    const width = this.map.width_ns;
    if (this.at < 0) {
      const shown = `${clock(this.origin + this.range[0])} to ${clock(this.origin + this.range[1])} UTC`;
      // The page shows exact figures for the whole capture.
      const what = this.all.disabled ? "" : `: ${times(this.map, this.shown())}`;
      const hint = h("span", { class: "hint" }, "  ·  Drag to zoom; arrow keys move, + and − zoom");
      this.readout.replaceChildren(`${shown} in intervals of ${tickDuration(width)}${what}`, hint);
      return;
    }
    const from = this.at * width;
    const bin = this.map.bins.find((bin) => Math.abs(bin.start_ns - this.origin - from) < width / 2);
    this.readout.textContent = `${clock(this.origin + from)}  ${describe(this.map, bin)}`;
  }

  /** Returns the visible intervals. Compares midpoints, as their ends are rounded. */
  private shown(): Bin[] {
    const half = this.map.width_ns / 2;
    return this.map.bins.filter((bin) => {
      const middle = bin.start_ns - this.origin + half;
      return middle > this.range[0] && middle < this.range[1];
    });
  }

  private numbers(): Numbers {
    const seconds = this.map.width_ns / 1e9;
    return {
      headings: [
        "From (UTC)",
        "Commands",
        "Median (approx.)",
        "Slowest (approx.)",
        "To clients",
        "To servers",
        "Outstanding",
      ],
      rows: this.shown().map((bin) => [
        clock(bin.start_ns),
        thousands(began(bin)),
        duration(quantile(this.map, bin.counts, 0.5)),
        duration(quantile(this.map, bin.counts, 1)),
        rate(bin.response_bytes / seconds),
        rate(bin.request_bytes / seconds),
        decimal(bin.outstanding_ns / this.map.width_ns),
      ]),
    };
  }
}

function pointSample(): SVGElement {
  const box = { class: "sample slow", width: 10, height: 10, viewBox: "-5 -5 10 10", "aria-hidden": "true" };
  return s("svg", box, s("circle", { r: 3.5 }));
}

function began(bin: Bin): number {
  return bin.counts.reduce((sum, [, count]) => sum + count, 0);
}

/** Describes the commands that started in intervals, as exactly as the buckets allow. */
function times(map: HeatMap, bins: readonly Bin[]): string {
  const counts = new Map<number, number>();
  for (const [bucket, count] of bins.flatMap((bin) => bin.counts))
    counts.set(bucket, (counts.get(bucket) ?? 0) + count);
  const sums = [...counts].sort(([a], [b]) => a - b);
  const commands = sums.reduce((sum, [, count]) => sum + count, 0);
  const at = (share: number) => duration(quantile(map, sums, share));
  const most = duration(bucketHigh(map, sums.at(-1)?.[0] ?? 0));
  const figures = commands > 0 ? `, median about ${at(0.5)}, p95 about ${at(0.95)}, none above ${most}` : "";
  return `${counted(commands, "command")} started${figures}`;
}

function describe(map: HeatMap, bin: Bin | undefined): string {
  if (!bin) return "nothing outstanding";
  const seconds = map.width_ns / 1e9;
  return `${times(map, [bin])}; ${rate(bin.response_bytes / seconds)} to clients, ${rate(bin.request_bytes / seconds)} to servers, ${(bin.outstanding_ns / map.width_ns).toPrecision(2)} outstanding`;
}

function linear(most: number, box: Box): Scale {
  return scaleLinear([0, most], [box.bottom, box.top]).nice(3);
}

/** Returns the smallest power of two that makes cells at least as wide as wanted. */
function merged(size: number, wanted: number): number {
  let factor = 1;
  while (size * factor < wanted) factor *= 2;
  return factor;
}

/** Returns the colour of a class. Skips the palest shades if there are few classes. */
function shade(index: number, count: number): string {
  const palest = Math.floor((CLASSES - count) / 2);
  const at = count === 1 ? palest + 1 : Math.round(palest + (index * (CLASSES - 1 - palest)) / (count - 1));
  return `--colour: var(--heat-${at})`;
}

// Line charts: cumulative distributions, and response time and throughput against load.
import { scaleLinear, scaleLog } from "d3-scale";
import { area, line } from "d3-shape";
import { announce } from "../lib/clipboard";
import { h, s } from "../lib/dom";
import { ABSENT, duration, perSecond, rate, short, tickDuration, tickRate } from "../lib/format";
import { type Box, logTicks, type Scale, xAxis, yAxis } from "./axes";
import { type FigureOptions, figure, type Numbers, pointedAt } from "./figure";
import { type Stroke, seriesStroke } from "./palette";
import { lineSample } from "./split";

export interface Series {
  name: string;
  stroke: Stroke;
  points: [number, number][];
  /** Range of values at a position. */
  band?: readonly (readonly [x: number, low: number, high: number])[];
  /** Draws a dot at each point. */
  dots?: boolean;
  /** Label of a point, drawn if there is room. */
  label?(x: number): string;
  /** Hidden until selected in the legend. */
  hidden?: boolean;
}

export interface Panel {
  title: string;
  height: number;
  series: Series[];
  /** Formats a value for the readout, and for the axis without `tickText`. */
  text(value: number): string;
  tickText?(value: number): string;
  logarithmic?: boolean;
  /** Ends of the axis. Default to the range of the values. */
  from?: number;
  to?: number;
  ticks?: number[];
}

/** Creates a line through the known values of items. A number as stroke is the index of the series. */
export function curve<Item>(
  name: string,
  stroke: Stroke | number,
  items: readonly Item[],
  x: (item: Item) => number,
  y: (item: Item) => number | null | undefined,
  more: Partial<Series> = { dots: true },
): Series {
  const points = items.flatMap((item): [number, number][] => {
    const found = y(item);
    return found === null || found === undefined ? [] : [[x(item), found]];
  });
  return { name, stroke: typeof stroke === "number" ? seriesStroke(stroke) : stroke, points, ...more };
}

/** Creates the band between minimum and maximum of each item. Returns no band if no item has both. */
export function bandOf<Item>(
  items: readonly Item[],
  x: (item: Item) => number,
  ends: (item: Item) => readonly [low: number, high: number] | null | undefined,
): Pick<Series, "band"> {
  const band = items.flatMap((item): [number, number, number][] => {
    const found = ends(item);
    return found ? [[x(item), ...found]] : [];
  });
  return band.length > 0 ? { band } : {};
}

export function timePanel(title: string, height: number, series: Series[], logarithmic = false): Panel {
  return { title, height, text: duration, tickText: tickDuration, series, logarithmic };
}

export function percentPanel(title: string, height: number, series: Series[]): Panel {
  const text = (value: number) => `${Number(value.toFixed(value < 9.95 ? 1 : 0))}%`;
  return { title, height, text, series };
}

export function ratePanel(height: number, series: Series[], text: (value: number) => string = perSecond): Panel {
  return { title: "Commands per second", height, text, tickText: (value) => `${short(value)}/s`, series };
}

export function bytesPanel(title: string, height: number, series: Series[]): Panel {
  return { title, height, text: rate, tickText: tickRate, series };
}

export interface LinesOptions {
  label: string;
  x: {
    title: string;
    text(value: number): string;
    tickText?(value: number): string;
    logarithmic: boolean;
    ticks?: number[];
  };
  panels: Panel[];
  /** Labelled vertical line across all panels. */
  mark?: { x: number; text: string } | undefined;
  /** First word of the readout. */
  at: string;
  /** True to interpolate between points, false to keep the last value. */
  interpolate: boolean;
  /** Data table. Defaults to one row per position with the value of each line. */
  numbers?(): Numbers;
}

const LEFT = 76;

/** Creates a chart of one or several stacked panels. */
export function lines(options: LinesOptions): HTMLElement {
  return new Lines(options).element;
}

class Lines {
  readonly element: HTMLElement;
  private readonly options: LinesOptions;
  private readonly hidden = new Set<string>();
  private readonly readout = h("p", { class: "readout" });
  private positions: number[] = [];
  private x: Scale = scaleLinear();
  private cursor: SVGElement = s("g");
  private at = -1;

  constructor(options: LinesOptions) {
    this.options = options;
    for (const panel of options.panels) {
      for (const series of panel.series) if (series.hidden) this.hidden.add(series.name);
    }
    const height = options.panels.reduce((sum, panel) => sum + panel.height + 44, 0) + 26;
    const setup: FigureOptions = {
      label: options.label,
      height,
      draw: (svg, width, divided) => this.draw(svg, width, divided),
      numbers: options.numbers ?? (() => this.numbers()),
      cuts: () => panelCuts(options.panels),
      key: (event) => this.key(event),
      above: [this.legend(), this.readout],
    };
    const { element, redraw } = figure(setup);
    this.element = element;
    this.redraw = redraw;
    this.say();
  }

  private readonly redraw: () => void;

  /** Creates the legend. Each button shows or hides the lines of a name. */
  private legend(): HTMLElement {
    const named = new Map<string, Series>();
    for (const panel of this.options.panels) for (const series of panel.series) named.set(series.name, series);
    const items = [...named.values()].map(({ name, stroke }) => {
      const button = h(
        "button",
        {
          type: "button",
          class: "item",
          "aria-pressed": String(!this.hidden.has(name)),
          click: () => {
            if (!this.hidden.delete(name)) this.hidden.add(name);
            button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
            this.at = -1;
            this.redraw();
            this.say();
          },
        },
        lineSample(stroke.colour, stroke.dashes),
        name,
      );
      return button;
    });
    return h("div", { class: "legend", role: "group", "aria-label": "Lines shown" }, ...items);
  }

  private draw(svg: SVGSVGElement, width: number, divided: boolean): void {
    const { options } = this;
    const { x: axis, panels } = options;
    const shown = panels.flatMap((panel) => panel.series.filter((series) => !this.hidden.has(series.name)));
    this.positions = [...new Set(shown.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
    const [first, last] = ends(this.positions, axis.logarithmic);
    this.x = (axis.logarithmic ? scaleLog : scaleLinear)([first, last], [LEFT, width - 14]);
    const room = Math.max(2, Math.floor((width - LEFT) / 76));
    const ticks = axis.ticks ?? (axis.logarithmic ? logTicks(first, last, room) : this.x.ticks(Math.min(room, 10)));
    const tickText = axis.tickText ?? axis.text;
    let top = 26;
    for (const [i, panel] of panels.entries()) {
      const box: Box = { left: LEFT, right: width - 14, top, bottom: top + panel.height };
      const title = i === panels.length - 1 ? { title: axis.title } : {};
      const text = divided || i === panels.length - 1 ? tickText : () => "";
      svg.append(xAxis(box, this.x, { ticks, text, ...title }));
      const y = scaleOf(panel, box);
      const [low, high] = y.domain() as [number, number];
      const marks =
        panel.ticks ??
        (panel.logarithmic ? logTicks(low, high, 7) : y.ticks(Math.max(3, Math.round(panel.height / 48))));
      svg.append(yAxis(box, y, { ticks: marks, text: panel.tickText ?? panel.text, title: panel.title }));
      for (const series of panel.series) {
        if (!this.hidden.has(series.name)) svg.append(this.drawn(series, y));
      }
      top = box.bottom + 44;
    }
    this.cursor = s("g", { class: "cursor" });
    const bottom = top - 44;
    if (options.mark) svg.append(marked(this.x(options.mark.x), options.mark.text, bottom, width));
    const surface = s("rect", {
      class: "surface",
      x: LEFT,
      y: 26,
      width: Math.max(0, width - 14 - LEFT),
      height: bottom - 26,
    });
    svg.append(this.cursor, surface);
    surface.addEventListener("pointermove", (event) => {
      this.point(this.nearest(pointedAt(svg, event)), bottom);
    });
    surface.addEventListener("pointerleave", () => this.point(-1, bottom));
    this.mark(bottom);
  }

  private drawn(series: Series, y: Scale): SVGElement {
    const { colour, dashes } = series.stroke;
    const path = line<[number, number]>(
      ([x]) => this.x(x),
      ([, value]) => y(value),
    );
    const group = s("g", { class: "line", "data-series": series.name, style: `--colour: ${colour}` });
    if (series.band) group.append(...this.bandOf(series.band, y));
    group.append(s("path", { d: path(series.points) ?? "", "stroke-dasharray": dashes }));
    if (series.dots) {
      for (const [x, value] of series.points) group.append(s("circle", { cx: this.x(x), cy: y(value), r: 3 }));
    }
    group.append(...this.labels(series, y));
    return group;
  }

  /** Draws a band, or a whisker if there is only one position. */
  private bandOf(band: NonNullable<Series["band"]>, y: Scale): SVGElement[] {
    const [only] = band;
    if (band.length === 1 && only) {
      const x = this.x(only[0]);
      return [s("path", { class: "whisker", d: `M${x} ${y(only[1])}V${y(only[2])}` })];
    }
    const within = area<NonNullable<Series["band"]>[number]>(
      ([x]) => this.x(x),
      ([, low]) => y(low),
      ([, , high]) => y(high),
    );
    return [s("path", { class: "spread-band", d: within(band) ?? "" })];
  }

  /** Draws labels to the upper left of their points, away from a rising line, and skips those that would overlap. */
  private labels({ points, label }: Series, y: Scale): SVGElement[] {
    const taken: { left: number; top: number; wide: number }[] = [];
    return points.flatMap(([position, value]) => {
      const text = label?.(position) ?? "";
      const wide = 7 * text.length;
      const [left, top] = [Math.max(LEFT, this.x(position) - wide), y(value) - 8];
      const over = (other: (typeof taken)[number]) =>
        left < other.left + other.wide && other.left < left + wide && Math.abs(top - other.top) < 14;
      if (text === "" || taken.some(over)) return [];
      taken.push({ left, top, wide });
      return [s("text", { x: left, y: top }, text)];
    });
  }

  private numbers(): Numbers {
    const { panels, x } = this.options;
    const all = panels.flatMap((panel) => panel.series.map((series) => ({ panel, series })));
    const twice = new Set(all.map(({ series }) => series.name)).size < all.length;
    const positions = [...new Set(all.flatMap(({ series }) => series.points.map(([position]) => position)))];
    const text = (panel: Panel, { points, band }: Series, position: number) => {
      const point = points.find(([at]) => at === position);
      const ends = band?.find(([at]) => at === position);
      const within = ends ? ` (${panel.text(ends[1])} to ${panel.text(ends[2])})` : "";
      return point ? `${panel.text(point[1])}${within}` : ABSENT;
    };
    return {
      headings: [x.title, ...all.map(({ panel, series }) => (twice ? `${series.name}: ${panel.title}` : series.name))],
      rows: positions
        .sort((a, b) => a - b)
        .map((at) => [x.text(at), ...all.map(({ panel, series }) => text(panel, series, at))]),
    };
  }

  private nearest(position: number): number {
    let best = -1;
    for (const [i, x] of this.positions.entries()) {
      const found = this.positions[best];
      if (found === undefined || Math.abs(this.x(x) - position) < Math.abs(this.x(found) - position)) best = i;
    }
    return best;
  }

  private key(event: KeyboardEvent): boolean {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return false;
    const height = this.options.panels.reduce((sum, panel) => sum + panel.height + 44, 26) - 44;
    this.point(Math.min(this.positions.length - 1, Math.max(0, this.at + step)), height);
    announce(this.readout.textContent ?? "");
    return true;
  }

  private point(at: number, bottom: number): void {
    if (at === this.at) return;
    this.at = at;
    this.mark(bottom);
    this.say();
  }

  private mark(bottom: number): void {
    const position = this.positions[this.at];
    if (position === undefined) {
      this.cursor.replaceChildren();
    } else {
      const x = this.x(position);
      this.cursor.replaceChildren(s("line", { x1: x, x2: x, y1: 26, y2: bottom }));
    }
  }

  private say(): void {
    const { panels, x, at, interpolate } = this.options;
    const position = this.positions[this.at];
    if (position === undefined) {
      this.readout.textContent = "Hover over the chart or use the arrow keys to read values";
      return;
    }
    const values = panels.flatMap((panel) =>
      panel.series
        .filter((series) => !this.hidden.has(series.name))
        .map((series) => ({ name: series.name, value: valueAt(series.points, position, interpolate), panel }))
        .filter(({ value }) => value !== null)
        .map(({ name, value, panel }) => `${name} ${panel.text(value as number)}`),
    );
    this.readout.textContent = `${at} ${x.text(position)}:  ${values.join("  ·  ")}`;
  }
}

/** Returns the positions below the tick labels of each panel but the last. */
function panelCuts(panels: readonly Panel[]): number[] {
  let bottom = 26 - 44;
  return panels.slice(0, -1).map(({ height }) => {
    bottom += height + 44;
    return bottom + 22;
  });
}

/** Draws the labelled vertical line. */
function marked(x: number, text: string, bottom: number, width: number): SVGElement {
  const late = x > width * 0.7;
  return s(
    "g",
    { class: "mark" },
    s("line", { x1: x, x2: x, y1: 26, y2: bottom }),
    s("text", { x: late ? x - 6 : x + 6, y: 38, "text-anchor": late ? "end" : "start" }, text),
  );
}

/** Returns the value of a line at a position, null outside of its points. */
export function valueAt(points: readonly [number, number][], x: number, interpolate: boolean): number | null {
  const after = points.findIndex((point) => point[0] >= x);
  const exact = points.findLast((point) => point[0] === x);
  if (exact) return exact[1];
  const before = points[after < 0 ? points.length - 1 : after - 1];
  if (!before) return interpolate ? null : 0;
  const next = points[after];
  if (!interpolate) return before[1];
  if (!next) return null;
  return before[1] + ((next[1] - before[1]) * (x - before[0])) / (next[0] - before[0]);
}

function ends(values: readonly number[], logarithmic: boolean): [number, number] {
  const first = values[0] ?? 1;
  const last = values.at(-1) ?? 10;
  if (!logarithmic) return first === last ? [first - 1, last + 1] : [first, last];
  return last / first < 1.5 ? [first / 1.5, last * 1.5] : [first, last];
}

function scaleOf(panel: Panel, box: Box): Scale {
  const values = panel.series.flatMap(({ points, band }) => [
    ...points.map(([, y]) => y),
    ...(band ?? []).flatMap(([, low, high]) => [low, high]),
  ]);
  const high = panel.to ?? Math.max(...values, Number.MIN_VALUE);
  if (panel.logarithmic) {
    const positive = values.filter((value) => value > 0);
    const low = panel.from ?? Math.min(...positive, high);
    return scaleLog([low, Math.max(high, low * 10)], [box.bottom, box.top]);
  }
  const scale = scaleLinear([panel.from ?? 0, high], [box.bottom, box.top]);
  return panel.to === undefined ? scale.nice(5) : scale;
}

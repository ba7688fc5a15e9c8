// The time split as stacked bars. Parts of the total wait come first.
import { h, muted, s } from "../lib/dom";
import { percent, span } from "../lib/format";
import { grid } from "../table/grid";
import type { TimeSplit } from "../types/report";

export type PartKey = Exclude<keyof TimeSplit, "connections" | "elapsed_ns" | "busy_ns" | "outstanding_ns">;

export interface SplitPart {
  key: PartKey;
  name: string;
  /** Shorter name for the bar. */
  short?: string;
  /** Definition. */
  help: string;
}

export const SPLIT_PARTS: SplitPart[] = [
  { key: "server_ns", name: "Server", help: "service time minus the round trip" },
  {
    key: "server_or_network_ns",
    name: "Server or network",
    help: "service time if the round trip is unknown",
  },
  {
    key: "network_ns",
    name: "Network: round trips and retransmissions",
    short: "Network",
    help: "round trips between client, capture point and server, and waits for retransmissions",
  },
  { key: "request_transfer_ns", name: "Request transfer", help: "first to last packet of requests" },
  {
    key: "response_transfer_ns",
    name: "Response transfer",
    help: "first to last packet of responses",
  },
  {
    key: "unknown_ns",
    name: "Unknown",
    help: "a command was outstanding and its response was not captured",
  },
  {
    key: "think_ns",
    name: "Client",
    help: "nothing outstanding for at most 10 s between a response and the next request",
  },
  {
    key: "waiting_ns",
    name: "Expected waits",
    help: "only expected waits outstanding (change notify, blocking locks, pipe reads)",
  },
  {
    key: "idle_ns",
    name: "Idle",
    help: "nothing outstanding for more than 10 s, or before the first or after the last command",
  },
  {
    key: "filtered_out_ns",
    name: "Filtered out",
    help: "only commands excluded by the filter outstanding, or think time before one of them",
  },
];

/** Returns the parts that are not zero, with their start and end as fractions of the whole. */
export function splitShares(split: TimeSplit): { part: SplitPart; ns: number; from: number; to: number }[] {
  const whole = SPLIT_PARTS.reduce((sum, part) => sum + split[part.key], 0);
  let from = 0;
  return SPLIT_PARTS.filter((part) => split[part.key] > 0).map((part) => {
    const ns = split[part.key];
    const to = from + ns / whole;
    const share = { part, ns, from, to };
    from = to;
    return share;
  });
}

/** Creates a slim bar for a table cell. */
export function splitBar(split: TimeSplit | null): HTMLElement {
  if (!split) return muted();
  const shares = splitShares(split);
  const text = shares.map(({ part, ns }) => `${part.name} ${percent(ns, split.elapsed_ns)}`).join(", ");
  return slimBar(
    text,
    shares.map(({ part, from, to }) => segment(part.key, to - from)),
  );
}

export function slimBar(text: string, segments: HTMLElement[]): HTMLElement {
  return h("span", { class: "split-bar slim", role: "img", "aria-label": text, title: text }, ...segments);
}

/** Creates a segment in the colour of its part. */
export function segment(key: PartKey, share: number): HTMLElement {
  return h("span", { class: `segment ${partClass(key)}`, style: `flex-basis: ${(100 * share).toFixed(4)}%` });
}

function partClass(key: PartKey): string {
  return `part-${key.replace(/_ns$/, "")}`;
}

/** Parts of the total wait. */
const WAITED: ReadonlySet<PartKey> = new Set([
  "server_ns",
  "server_or_network_ns",
  "network_ns",
  "request_transfer_ns",
  "response_transfer_ns",
  "unknown_ns",
]);

/** Returns the total wait. */
export function waitedTime(split: TimeSplit): number {
  return SPLIT_PARTS.reduce((sum, { key }) => (WAITED.has(key) ? sum + split[key] : sum), 0);
}

function waitedShares(split: TimeSplit): ReturnType<typeof splitShares> {
  const parts = Object.fromEntries(SPLIT_PARTS.map(({ key }) => [key, WAITED.has(key) ? split[key] : 0]));
  return splitShares({ ...split, ...parts });
}

/** Creates the bars of all time and of the total wait. Leaves out the second if it looks like the first. */
function bars(split: TimeSplit): (HTMLElement | null)[] {
  const waited = waitedTime(split);
  const both = waited > 0 && waited < split.elapsed_ns * 0.995;
  return [labelledBar("All time", splitShares(split)), both ? labelledBar("Total wait", waitedShares(split)) : null];
}

/** Creates the bars for the answer, with a legend of the parts that have no room for their name. */
export function splitEvidence(split: TimeSplit): HTMLElement {
  return h("div", { class: "evidence" }, ...bars(split), unnamedLegend([splitShares(split), waitedShares(split)]));
}

type Shares = ReturnType<typeof splitShares>;

/** Returns true if a segment has room for its name. On a phone, text needs about three times the share of the bar. */
function hasRoom({ part, from, to }: Shares[number], phone: boolean): boolean {
  const text = part.short ?? part.name;
  return to - from > (phone ? 3 : 1) * (0.04 + text.length * 0.0095);
}

/** Share of a bar that is a pixel wide. */
const VISIBLE = 0.001;

/** Lists the parts whose name is missing in some bar. Names that are missing only on a phone are listed only there. */
function unnamedLegend(all: readonly Shares[]): HTMLElement | null {
  const missing = (phone: boolean) => {
    const keys = new Set(
      all
        .flat()
        .filter((share) => share.to - share.from > VISIBLE && !hasRoom(share, phone))
        .map(({ part }) => part.key),
    );
    return SPLIT_PARTS.filter(({ key }) => keys.has(key));
  };
  const wide = missing(false);
  return missing(true).length === 0 ? null : legendOf(missing(true), (part) => !wide.includes(part));
}

function legendOf(parts: readonly SplitPart[], narrowOnly: (part: SplitPart) => boolean = () => false): HTMLElement {
  const items = parts.map((part) =>
    h("span", { class: narrowOnly(part) ? "item on-narrow" : "item" }, swatch(part), part.short ?? part.name),
  );
  return h("div", { class: "legend split-legend" }, ...items);
}

/** Creates the legend of slim bars. Returns undefined if no row has a bar. */
export function partsLegend(keys: Iterable<PartKey>): HTMLElement | undefined {
  const known = new Set(keys);
  return known.size > 0 ? legendOf(SPLIT_PARTS.filter(({ key }) => known.has(key))) : undefined;
}

/** Creates the legend of a column of time splits. */
export function splitsLegend(splits: readonly (TimeSplit | null | undefined)[]): HTMLElement | undefined {
  return partsLegend(splits.flatMap((split) => (split ? splitShares(split).map(({ part }) => part.key) : [])));
}

/** Creates the bars with a table of the parts. */
export function splitFigure(split: TimeSplit, caption: string): HTMLElement {
  const shares = splitShares(split);
  const waited = waitedTime(split);
  const rows = shares.map(({ part, ns }) => [
    h("span", {}, swatch(part), part.name),
    percent(ns, split.elapsed_ns),
    WAITED.has(part.key) ? percent(ns, waited) : "",
    span(ns),
    part.help,
  ]);
  const columns = [
    [""],
    ["All time", "number strong"],
    ["Total wait", "number"],
    ["Time", "number"],
    ["", "help"],
  ] as const;
  return h("figure", { class: "split" }, ...bars(split), grid({ caption, columns, rows, kind: "legend-table" }));
}

function labelledBar(label: string, shares: ReturnType<typeof splitShares>): HTMLElement {
  const bar = h("div", { class: "split-bar" });
  for (const share of shares) {
    const { part, from, to } = share;
    const piece = segment(part.key, to - from);
    piece.title = `${part.name}: ${percent(to - from, 1)}`;
    const text = part.short ?? part.name;
    if (hasRoom(share, false)) {
      piece.append(h("span", { class: hasRoom(share, true) ? "in-bar" : "in-bar in-wide" }, text));
    }
    bar.append(piece);
  }
  return h("div", { class: "bar-row", "aria-hidden": "true" }, h("span", { class: "bar-label" }, label), bar);
}

function swatch(part: SplitPart): HTMLElement {
  return h("span", { class: `swatch ${partClass(part.key)}`, "aria-hidden": "true" });
}

/** Draws a line sample for a legend. */
export function lineSample(colour: string, dashes: string): SVGElement {
  return s(
    "svg",
    { class: "sample", width: 26, height: 10, "aria-hidden": "true" },
    s("line", {
      x1: 1,
      x2: 25,
      y1: 5,
      y2: 5,
      style: `stroke: ${colour}`,
      "stroke-width": 2.25,
      "stroke-dasharray": dashes,
    }),
  );
}

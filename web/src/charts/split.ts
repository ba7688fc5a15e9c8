// Where the time went: one bar, divided. The total wait comes first, the time in which nobody waited last.
import { h, muted, s } from "../lib/dom";
import { percent, span } from "../lib/format";
import { grid } from "../table/grid";
import type { TimeSplitEntry } from "../types/report";

export type PartKey = Exclude<keyof TimeSplitEntry, "connections" | "elapsed_ns" | "busy_ns" | "outstanding_ns">;

export interface SplitPart {
  key: PartKey;
  name: string;
  /** Shorter, for the bar. */
  short?: string;
  /** What it means. */
  help: string;
}

export const SPLIT_PARTS: SplitPart[] = [
  { key: "server_ns", name: "Server", help: "service time less the round trip" },
  {
    key: "server_or_network_ns",
    name: "Server or network",
    help: "service time where the round trip is not known",
  },
  {
    key: "network_ns",
    name: "Network: round trips and retransmissions",
    short: "Network",
    help: "round trips between client, capture point and server, and waits for segments to be sent again",
  },
  { key: "request_transfer_ns", name: "Request transfer", help: "first to last packet of requests" },
  {
    key: "response_transfer_ns",
    name: "Response transfer",
    help: "first to last packet of responses",
  },
  {
    key: "unknown_ns",
    name: "Not known",
    help: "a command was outstanding whose end was not captured",
  },
  {
    key: "think_ns",
    name: "Client",
    help: "nothing outstanding for at most 10 s between a response and the next request",
  },
  {
    key: "waiting_ns",
    name: "Expected waits",
    help: "nothing outstanding but expected waits (change notify, blocking locks, pipe reads)",
  },
  {
    key: "idle_ns",
    name: "Idle",
    help: "nothing outstanding for more than 10 s, or before and after all commands",
  },
  {
    key: "filtered_out_ns",
    name: "Filtered out",
    help: "only commands that the filter left out were outstanding, or the client thought before one of them",
  },
];

/** Parts with time in them, and where each begins as a fraction of the whole. */
export function splitShares(split: TimeSplitEntry): { part: SplitPart; ns: number; from: number; to: number }[] {
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

/** A slim bar for a cell of a table. */
export function splitBar(split: TimeSplitEntry | null): HTMLElement {
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

/** A part of a bar, of the colour of that part of the time. */
export function segment(key: PartKey, share: number): HTMLElement {
  return h("span", { class: `segment ${partClass(key)}`, style: `flex-basis: ${(100 * share).toFixed(4)}%` });
}

function partClass(key: PartKey): string {
  return `part-${key.replace(/_ns$/, "")}`;
}

/** Parts in which somebody waited for an answer. */
const WAITED: ReadonlySet<PartKey> = new Set([
  "server_ns",
  "server_or_network_ns",
  "network_ns",
  "request_transfer_ns",
  "response_transfer_ns",
  "unknown_ns",
]);

/** Time in which somebody waited for an answer. */
export function waitedTime(split: TimeSplitEntry): number {
  return SPLIT_PARTS.reduce((sum, { key }) => (WAITED.has(key) ? sum + split[key] : sum), 0);
}

/** The parts of the time in which somebody waited for an answer. */
function waitedShares(split: TimeSplitEntry): ReturnType<typeof splitShares> {
  const parts = Object.fromEntries(SPLIT_PARTS.map(({ key }) => [key, WAITED.has(key) ? split[key] : 0]));
  return splitShares({ ...split, ...parts });
}

/** The bars alone: whose the time was, and whose that in which somebody waited. */
function bars(split: TimeSplitEntry): (HTMLElement | null)[] {
  const waited = waitedTime(split);
  const both = waited > 0 && waited < split.elapsed_ns * 0.995;
  return [
    labelledBar("All the time", splitShares(split)),
    both ? labelledBar("Total wait", waitedShares(split)) : null,
  ];
}

/** The split of time in one look, beside the answer. */
export function splitEvidence(split: TimeSplitEntry): HTMLElement {
  return h("div", { class: "evidence" }, ...bars(split));
}

/** The bars, with a table that says the same in numbers. */
export function splitFigure(split: TimeSplitEntry, caption: string): HTMLElement {
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
    ["All the time", "number strong"],
    ["Total wait", "number"],
    ["Time", "number"],
    ["", "help"],
  ] as const;
  return h("figure", { class: "split" }, ...bars(split), grid({ caption, columns, rows, kind: "legend-table" }));
}

function labelledBar(label: string, shares: ReturnType<typeof splitShares>): HTMLElement {
  const bar = h("div", { class: "split-bar" });
  for (const { part, from, to } of shares) {
    const piece = segment(part.key, to - from);
    piece.title = `${part.name}: ${percent(to - from, 1)}`;
    const text = part.short ?? part.name;
    // What fits: text is about three times as wide beside the bar of a phone.
    const fits = (width: number) => to - from > width * (0.04 + text.length * 0.008);
    if (fits(1)) piece.append(h("span", { class: fits(3) ? "in-bar" : "in-bar in-wide" }, text));
    bar.append(piece);
  }
  return h("div", { class: "bar-row", "aria-hidden": "true" }, h("span", { class: "bar-label" }, label), bar);
}

function swatch(part: SplitPart): HTMLElement {
  return h("span", { class: `swatch ${partClass(part.key)}`, "aria-hidden": "true" });
}

/** A line as a sample of a series for a legend. */
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

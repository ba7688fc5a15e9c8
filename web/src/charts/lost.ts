// Time lost by cause: one bar per cause on a common scale of seconds. Causes overlap, so their bars are not stacked.
import { h } from "../lib/dom";
import { prosePercent, span } from "../lib/format";
import type { Cause } from "../types/report";

/** Number of bars. Further causes have only a card. */
const BARS_MAX = 5;

/** Returns the id of a cause's card, by its index in the answer. */
export function causeId(index: number): string {
  return `cause-${index + 1}`;
}

/** Creates the chart. Each name links to the card of its cause. Returns null if no lost time is known. */
export function lostTimes(causes: readonly Cause[]): HTMLElement | null {
  const known = causes
    .map((cause, index) => ({ ...cause, index }))
    .filter(({ lost_ns }) => lost_ns !== null)
    .slice(0, BARS_MAX);
  if (known.length === 0) return null;
  const most = Math.max(1, ...known.map(({ lost_ns, active_ns }) => Math.max(lost_ns?.high ?? 0, active_ns)));
  const rows = known.map((cause) => row(cause, cause.index, most));
  return h(
    "div",
    { class: "lost" },
    h("p", { class: "bar-label" }, "Time lost by cause"),
    h("ol", {}, ...rows),
    legend(known),
  );
}

/** Explains the parts of the bars that occur. */
function legend(causes: readonly Cause[]): HTMLElement {
  const isRange = causes.some(({ lost_ns }) => lost_ns !== null && lost_ns.high > lost_ns.low);
  const isPart = causes.some(({ lost_ns, active_ns }) => active_ns > (lost_ns?.high ?? 0));
  const item = (kind: string, text: string) =>
    h("span", { class: "item" }, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text);
  return h(
    "div",
    { class: `legend culprit-${causes[0]?.culprit}` },
    item("lost-low", isRange ? "lost at least" : "lost"),
    isRange && item("lost-high", "at most"),
    isPart && item("lost-active", "rest of the active time"),
  );
}

function row({ title, culprit, lost_ns, active_ns }: Cause, index: number, most: number): HTMLElement {
  const { low, best, high } = lost_ns ?? { low: 0, best: 0, high: 0 };
  const bar = h("span", { class: "lost-bar", "aria-hidden": "true" }, h("span"));
  const part = (time: number) => String(Math.min(1, Math.max(0, time / most)));
  bar.style.setProperty("--low", part(low));
  bar.style.setProperty("--high", part(high));
  bar.style.setProperty("--active", part(Math.max(active_ns, high)));
  const share = active_ns > 0 ? `${span(best)} of ${span(active_ns)} (${prosePercent(best, active_ns)})` : span(best);
  return h(
    "li",
    { class: `culprit-${culprit}` },
    h("a", { href: `#${causeId(index)}` }, title),
    bar,
    h("span", { class: "value" }, share),
  );
}

// The zoomed period. Zooming a chart over time sets it, tables with timed rows follow it, and a chip in the header shows
// and clears it.
import { h } from "./dom";

/** Timestamps in nanoseconds. */
export interface Period {
  from: number;
  to: number;
  /** `23.0 s – 31.5 s` */
  text: string;
}

let current: Period | null = null;

/** Callbacks by the element they belong to. */
const followers = new Map<HTMLElement, (period: Period | null) => void>();

let chip: HTMLElement | null = null;

/** Creates the chip for the sticky header. */
export function periodChip(): HTMLElement {
  chip = h("button", { type: "button", class: "quiet chip zoom", hidden: true, click: () => setPeriod(null) });
  return chip;
}

export function setPeriod(period: Period | null): void {
  if (period === null && current === null) return;
  current = period;
  if (chip) {
    chip.hidden = period === null;
    chip.textContent = period && `${period.text}  ×`;
    chip.title = "Show the whole capture again";
  }
  document.documentElement.classList.toggle("zoomed", period !== null);
  for (const [element, follow] of followers) {
    if (element.isConnected) follow(period);
    else followers.delete(element);
  }
}

/** Calls back whenever the period changes, as long as the element is connected. */
export function onPeriod(element: HTMLElement, follow: (period: Period | null) => void): void {
  followers.set(element, follow);
}

// The part of the time that is looked at: zooming a chart over time chooses it, tables whose rows have a time follow it,
// and a chip in the bar of the page says what it is and ends it.
import { h } from "./dom";

/** Points in time in nanoseconds. */
export interface Period {
  from: number;
  to: number;
  /** `23.0 s – 31.5 s` */
  text: string;
}

let current: Period | null = null;

/** What follows the period, with the element whose end is theirs. */
const followers = new Map<HTMLElement, (period: Period | null) => void>();

let chip: HTMLElement | null = null;

/** To be put where it is in sight wherever the page has been scrolled to. */
export function periodChip(): HTMLElement {
  chip = h("button", { type: "button", class: "quiet chip", hidden: true, click: () => setPeriod(null) });
  return chip;
}

export function setPeriod(period: Period | null): void {
  if (period === null && current === null) return;
  current = period;
  if (chip) {
    chip.hidden = period === null;
    chip.textContent = period && `${period.text}  ×`;
    chip.title = "Show all of the time again";
  }
  document.documentElement.classList.toggle("zoomed", period !== null);
  for (const [element, follow] of followers) {
    if (element.isConnected) follow(period);
    else followers.delete(element);
  }
}

/** Calls back whenever the period changes, as long as the element is in the page. */
export function onPeriod(element: HTMLElement, follow: (period: Period | null) => void): void {
  followers.set(element, follow);
}

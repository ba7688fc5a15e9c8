// Causes as cards, with lost time, advice and a Wireshark filter. Notes are a plain list.

import { causeId } from "../charts/lost";
import { copyButton } from "../lib/clipboard";
import { type Child, h } from "../lib/dom";
import { prosePercent, span, unbroken } from "../lib/format";
import { facts, headPart } from "../lib/page";
import {
  clientSelection,
  fileSelection,
  onSelection,
  SELECTION_KINDS,
  type Selection,
  selectButton,
  shareSelection,
} from "../lib/selection";
import type { Answer, Cause } from "../types/report";
import { CULPRITS } from "./answer";

/** Number of cards that are expanded at first. */
const OPEN = 3;

const CONFIDENCE: Record<Cause["confidence"], string> = {
  high: "high: seen in the packets",
  medium: "medium: the usual explanation",
  low: "low: one of several explanations",
};

/** Captures, indexed as in the evidence. */
type Captures = readonly { name: string }[];

export function causes(answer: Answer, captures: Captures): HTMLElement | null {
  if (answer.causes.length === 0) return null;
  const cards = answer.causes.map((cause, i) => following(card(answer, cause, i, captures), cause));
  return headPart("Causes", h("ol", { class: "causes" }, ...cards), "causes");
}

export function notes(answer: Answer, captures: Captures): HTMLElement | null {
  if (answer.notes.length === 0) return null;
  return headPart(
    "Notes",
    h("ul", { class: "notes" }, ...answer.notes.map((cause) => following(note(cause, captures), cause))),
  );
}

/** Returns true unless the cause is certainly about something else. Further clients of a cause are not listed. */
export function concerns({ client, clients, share, path }: Cause["subject"], selection: Selection): boolean {
  if (selection.kind === "client") return client === null || clients > 1 || client === selection.name;
  if (selection.kind === "share") return share === null || share === selection.name;
  if (share !== null && selection.share !== null && share !== selection.share) return false;
  return path === null || path === "" || path === selection.name || selection.name.startsWith(`${path}\\`);
}

/** Hides a card or note while the selection is about something else. */
function following(element: HTMLElement, { subject }: Cause): HTMLElement {
  onSelection(element, SELECTION_KINDS, (selection) => {
    element.hidden = selection !== null && !concerns(subject, selection);
  });
  return element;
}

/** Creates a card. Leaves out the advice and the sentence that the answer already shows. */
function card(answer: Answer, cause: Cause, index: number, captures: Captures): HTMLElement {
  const isFirst = index === 0;
  const isTold = isFirst && answer.states_first_cause;
  return h(
    "li",
    { class: `culprit-${cause.culprit}`, id: causeId(index) },
    h(
      "details",
      { open: index < OPEN },
      h(
        "summary",
        {},
        h("span", { class: "title" }, cause.title),
        h("span", { class: "culprit" }, CULPRITS[cause.culprit]),
        cost(cause),
      ),
      isTold ? null : h("p", {}, whatHappened(cause)),
      isFirst ? null : advice(cause),
      facts(details(cause, captures)),
    ),
  );
}

/** Shows the lost time with its interval, and its share of the active time as a number and a bar. */
function cost({ lost_ns, active_ns, share }: Cause): HTMLElement {
  if (lost_ns === null) return h("span", { class: "cost muted" }, "lost time unknown");
  const { low, best, high } = lost_ns;
  // The sentence of the cause gives the interval under the same condition.
  const isWide = high > low + Math.floor(best / 3);
  const range = isWide ? ` (${span(low)} to ${span(high)})` : "";
  const lost = `${span(best)}${range} lost`;
  if (share === null || active_ns <= 0) return h("span", { class: "cost" }, lost);
  const meter = h("span", { class: "meter", "aria-hidden": true });
  const part = (time: number) => String(Math.min(1, Math.max(0, time / active_ns)));
  meter.style.setProperty("--low", part(isWide ? low : best));
  meter.style.setProperty("--high", part(isWide ? high : best));
  return h(
    "span",
    { class: "cost" },
    h("span", {}, lost),
    meter,
    h("b", {}, prosePercent(best, active_ns)),
    h("span", { class: "visually-hidden" }, " of the active time"),
  );
}

function whatHappened({ sentence, cost }: Cause): string {
  return unbroken(`${sentence} ${cost}`.trim());
}

function advice(cause: Cause): HTMLElement {
  return h("p", { class: "advice" }, h("b", {}, "What to do: "), unbroken(cause.advice));
}

function note(cause: Cause, captures: Captures): HTMLElement {
  return h(
    "li",
    {},
    h(
      "details",
      {},
      h("summary", {}, h("b", {}, `${cause.title}: `), whatHappened(cause)),
      advice(cause),
      facts(details(cause, captures)),
    ),
  );
}

function details({ subject, lost_ns, active_ns, ...cause }: Cause, captures: Captures): [string, Child][] {
  // Pages of load points have no captures and no selection.
  const entries = places(subject, captures.length > 0);
  if (lost_ns !== null) entries.push(["Time lost", lostText(lost_ns, active_ns)]);
  entries.push(["Confidence", CONFIDENCE[cause.confidence]]);
  if (cause.also.length > 0) entries.push(["Also explains", cause.also.join("; ")]);
  const packets = cause.evidence.map(({ capture, packet }) => {
    const name = captures.length > 1 ? ` of ${captures[capture]?.name ?? "?"}` : "";
    return `${packet}${name}`;
  });
  if (packets.length > 0) entries.push([packets.length === 1 ? "Packet" : "Packets", packets.join(", ")]);
  const filter = cause.wireshark;
  if (filter !== "") {
    const copy = copyButton("Copy", () => filter, { "aria-label": `Copy ${filter}` });
    entries.push(["Wireshark filter", h("span", { class: "command" }, h("code", {}, filter), copy)]);
  }
  if (cause.source !== "") entries.push(["Source", cause.source]);
  return entries;
}

/** Names the client, server, share and file. */
function places(subject: Cause["subject"], selects: boolean): [string, Child][] {
  const { client, clients, server, share, path } = subject;
  const named = (selection: Selection) =>
    selects ? selectButton(selection) : h("span", { class: "name" }, selection.name);
  const entries: [string, Child][] = [];
  const users = subject.users.length > 0 ? ` (${subject.users.join(", ")})` : "";
  if (clients > 1) {
    const most = client === null ? [] : [", mainly ", named(clientSelection(client)), users];
    entries.push(["Clients", h("span", {}, String(clients), ...most)]);
  } else if (client !== null) entries.push(["Client", h("span", {}, named(clientSelection(client)), users)]);
  if (server !== null) {
    const on = share === null ? [] : [", share ", named(shareSelection(share))];
    entries.push(["Server", h("span", {}, server, ...on)]);
  } else if (share !== null) entries.push(["Share", named(shareSelection(share))]);
  if (path !== null && path !== "") entries.push(["File", named(fileSelection(path, share))]);
  return entries;
}

/** Formats `9.69 s of 11.6 s of active time; at least 8.72 s, at most 9.71 s`. */
function lostText({ low, best, high }: NonNullable<Cause["lost_ns"]>, active_ns: number): string {
  const of = active_ns > 0 ? ` of ${span(active_ns)} of active time` : "";
  const [least, most] = [span(low), span(high)];
  return `${span(best)}${of}${least === most ? "" : `; at least ${least}, at most ${most}`}`;
}

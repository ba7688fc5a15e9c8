// The answer: headline, what to do, what supports it, and what limits it. The document decides; this only shows it.
import { type Child, h } from "../lib/dom";
import { unbroken } from "../lib/format";
import { answerBox, headPart, list, whatNext } from "../lib/page";
import type { Answer, Cause } from "../types/report";

/** Who has to act, as a mark on a cause. */
export const CULPRITS: Record<Cause["culprit"], string> = {
  server: "Server",
  network: "Network",
  client: "Client",
  application: "Application",
  capture: "Not known",
  nothing: "Nothing slow",
};

/** The first screen. `chart` stands below the sentences, `quality` is about the capture. */
export function firstScreen(answer: Answer, chart: Child = null, quality = ""): HTMLElement {
  const { culprit, headline, evidence, caveats } = answer;
  const limits = [...caveats, quality].filter((sentence) => sentence !== "");
  return answerBox(
    culprit,
    markedHeadline(unbroken(headline)),
    whatToDo(answer),
    evidence.length > 0 && list(evidence.map(unbroken)),
    chart,
    limits.length > 0 && h("p", { class: caveats.length > 0 ? "trust limited" : "trust" }, unbroken(limits.join(" "))),
  );
}

/** Below the causes: what is not the cause, and what to look at next. */
export function furtherParts({ ruled_out, next }: Answer): (HTMLElement | null)[] {
  return [
    ruled_out.length > 0 ? headPart("Not the cause", list(ruled_out.map(unbroken), "ruled-out")) : null,
    whatNext(next),
  ];
}

/** The headline with the words before its colon marked: they name the culprit. */
function markedHeadline(headline: string): HTMLElement {
  const name = /^\p{L}[\p{L}' ]*(?=: )/u.exec(headline)?.[0] ?? "";
  return h(
    "p",
    { class: "headline" },
    name !== "" && h("span", { class: "culprit" }, name),
    headline.slice(name.length),
  );
}

/** Advice of the first cause, with its title where the headline is not about it. */
function whatToDo(answer: Answer): HTMLElement | null {
  const [first] = answer.causes;
  if (!first) return null;
  const about = answer.states_first_cause ? "What to do: " : `What to do about “${first.title}”: `;
  return h("p", { class: "advice" }, h("b", {}, about), unbroken(first.advice));
}

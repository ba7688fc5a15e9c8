// The answer: headline, advice, evidence and caveats, as the document has them.
import { lostTimes } from "../charts/lost";
import { type Child, h } from "../lib/dom";
import { unbroken } from "../lib/format";
import { answerBox, headPart, list, whatNext } from "../lib/page";
import type { Answer, Cause } from "../types/report";

/** Label of each culprit. */
export const CULPRITS: Record<Cause["culprit"], string> = {
  server: "Server",
  network: "Network",
  client: "Client",
  application: "Application",
  capture: "Unknown",
  nothing: "Nothing slow",
};

/** Creates the first screen. `chart` follows the sentences; `quality` describes the capture. */
export function firstScreen(answer: Answer, chart: Child = null, quality = ""): HTMLElement {
  const { culprit, headline, evidence, caveats } = answer;
  const limits = [...caveats, quality].filter((sentence) => sentence !== "");
  return answerBox(
    culprit,
    markedHeadline(unbroken(headline)),
    whatToDo(answer),
    lostTimes(answer.causes),
    evidence.length > 0 && list(evidence.map(unbroken)),
    chart,
    limits.length > 0 && h("p", { class: caveats.length > 0 ? "trust limited" : "trust" }, unbroken(limits.join(" "))),
  );
}

/** Lists ruled-out causes and next steps, below the causes. */
export function furtherParts({ ruled_out, next }: Answer): (HTMLElement | null)[] {
  return [
    ruled_out.length > 0 ? headPart("Not the cause", list(ruled_out.map(unbroken), "ruled-out")) : null,
    whatNext(next),
  ];
}

/** Creates the headline. The words before its colon name the culprit and are highlighted. */
function markedHeadline(headline: string): HTMLElement {
  const name = /^\p{L}[\p{L}' ]*(?=: )/u.exec(headline)?.[0] ?? "";
  return h(
    "p",
    { class: "headline" },
    name !== "" && h("span", { class: "culprit" }, name),
    headline.slice(name.length),
  );
}

/** Shows the advice for the first cause. Adds its title if the headline is about something else. */
export function whatToDo(answer: Pick<Answer, "causes" | "states_first_cause">): HTMLElement | null {
  const [first] = answer.causes;
  if (!first) return null;
  const about = answer.states_first_cause ? "What to do: " : `What to do about “${first.title}”: `;
  return h("p", { class: "advice" }, h("b", {}, about), unbroken(first.advice));
}

// What was found: each cause with whom it holds up, what it costs, what to do, and how to see it in Wireshark.
import { copyButton } from "../lib/clipboard";
import { type Child, h } from "../lib/dom";
import { percent, span, unbroken } from "../lib/format";
import { facts, headPart, list } from "../lib/page";
import type { Finding, SmbscopeReportDocument } from "../types/report";

/** Findings that are open to read; the others show their title and what they cost. */
const OPEN = 1;

export function findings(report: SmbscopeReportDocument): HTMLElement | null {
  const found = report.findings ?? [];
  if (found.length === 0) return null;
  return headPart(
    "Findings",
    h("ol", { class: "findings" }, ...found.map((finding, i) => entry(report, finding, i < OPEN))),
  );
}

function entry(report: SmbscopeReportDocument, finding: Finding, open: boolean): HTMLElement {
  const { lost_ns, active_ns } = finding;
  const share = lost_ns !== null && active_ns > 0 ? Math.min(1, lost_ns / active_ns) : null;
  const cost =
    lost_ns === null
      ? null
      : h(
          "span",
          { class: "cost" },
          share === null ? span(lost_ns) : `${span(lost_ns)}, ${percent(share, 1)} of the active time`,
        );
  const meter = share === null ? null : h("span", { class: "meter", "aria-hidden": true });
  meter?.style.setProperty("--share", String(share));
  return h(
    "li",
    {},
    h(
      "details",
      { open, class: `confidence-${finding.confidence}` },
      h(
        "summary",
        {},
        h("span", { class: "title" }, finding.title),
        finding.whose.client === null ? null : h("span", { class: "muted" }, finding.whose.client),
        cost,
        meter,
      ),
      h("p", {}, unbroken(finding.sentence)),
      h("p", { class: "advice" }, h("b", {}, "What to do: "), finding.advice),
      finding.ruled_out.length > 0 ? list(finding.ruled_out, "ruled-out") : null,
      facts(details(report, finding)),
    ),
  );
}

function details(report: SmbscopeReportDocument, finding: Finding): [string, Child][] {
  const { whose, evidence } = finding;
  const entries: [string, Child][] = [];
  if (whose.users.length > 0) entries.push([whose.users.length === 1 ? "User" : "Users", whose.users.join(", ")]);
  if (whose.share !== null) entries.push(["Share", whose.share]);
  if (whose.path !== null && whose.path !== "") entries.push(["File", h("span", { class: "name" }, whose.path)]);
  const packets = evidence.map(({ capture, packet }) => {
    const name = report.captures.length > 1 ? ` of ${report.captures[capture]?.name ?? "?"}` : "";
    return `from packet ${packet}${name}`;
  });
  const filter = finding.wireshark;
  const copy = copyButton("Copy", () => filter, { "aria-label": `Copy ${filter}` });
  entries.push([
    "Wireshark",
    h("span", {}, packets.length > 0 ? `${packets.join(", ")}; ` : "", h("code", {}, filter), " ", copy),
  ]);
  if (finding.confidence !== "high") {
    const sure = finding.confidence === "medium" ? "medium: the usual explanation" : "low: one of several explanations";
    entries.push(["Confidence", sure]);
  }
  entries.push(["Source", finding.source]);
  return entries;
}

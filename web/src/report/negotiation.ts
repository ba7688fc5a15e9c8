// SMB1 in use, and what both sides of the connections offered.
import { h } from "../lib/dom";
import { counted } from "../lib/format";
import { lead, part } from "../lib/page";
import { scrollingGrid } from "../table/grid";
import type { Negotiation, SmbscopeReportDocument } from "../types/report";

/** Negotiations that are shown, those of most connections. */
const LISTED = 8;
/** Addresses of each side that are named. */
const NAMED = 4;

/** The first thing on the page, in a colour of its own. */
export function smb1Notice(report: SmbscopeReportDocument): HTMLElement | null {
  if (report.smb1 === null) return null;
  return h("p", { class: "smb1", role: "note" }, h("strong", {}, "SMB1 "), report.smb1.sentence.replace(/^SMB1 /, ""));
}

export function negotiations(report: SmbscopeReportDocument): (HTMLElement | null)[] {
  const known = report.negotiations.filter(({ client, server }) => client !== null || server !== null);
  const unknown = report.negotiations.filter(({ client, server }) => client === null && server === null);
  const connections = (list: readonly Negotiation[]) =>
    counted(
      list.reduce((sum, negotiation) => sum + negotiation.connections, 0),
      "connection",
    );
  const left = known.slice(LISTED);
  return [
    ...known.slice(0, LISTED).map(negotiationPart),
    left.length > 0
      ? lead(`${counted(left.length, "more kind")} on ${connections(left)}: the JSON report has all.`)
      : null,
    unknown.length > 0
      ? lead(`On ${connections(unknown)} the negotiation was not captured: what both sides offered is not known.`)
      : null,
  ];
}

function negotiationPart(negotiation: Negotiation): HTMLElement {
  const named = (names: readonly string[]) => {
    const more = names.length - NAMED;
    return more > 0 ? `${names.slice(0, NAMED).join(", ")} and ${more} more` : names.join(", ");
  };
  const title = `${counted(negotiation.connections, "connection")}, ${named(negotiation.clients)} to ${named(negotiation.servers)}`;
  return part(title, featureGrid(`Offers on ${title}`, negotiation));
}

/** What both sides say of each feature, and what came of it. */
export function featureGrid(caption: string, negotiation: Negotiation): HTMLElement {
  return scrollingGrid({
    caption,
    columns: [["Feature"], ["Client"], ["Server"], ["Outcome"]],
    rows: negotiation.features.map(({ feature, client, server, outcome }) => [feature, client, server, outcome]),
  });
}

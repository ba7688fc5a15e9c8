// The SMB1 notice, and the features that clients and servers offered.
import { h } from "../lib/dom";
import { counted } from "../lib/format";
import { part, wholeLead } from "../lib/page";
import { onSelection } from "../lib/selection";
import { scrollingGrid } from "../table/grid";
import type { Negotiation, SmbscopeReportDocument } from "../types/report";

/** Number of negotiations shown. */
const LISTED = 8;
/** Number of addresses named on each side. */
const NAMED = 4;

/** Creates the notice at the top of the page. Returns null if SMB1 is not in use. */
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
      ? wholeLead(`${counted(left.length, "more kind")} on ${connections(left)}: see the JSON report.`)
      : null,
    unknown.length > 0
      ? wholeLead(`The negotiation of ${connections(unknown)} was not captured, so the offered features are unknown.`)
      : null,
  ];
}

function negotiationPart(negotiation: Negotiation): HTMLElement {
  const named = (names: readonly string[]) => {
    const more = names.length - NAMED;
    return more > 0 ? `${names.slice(0, NAMED).join(", ")} and ${more} more` : names.join(", ");
  };
  const title = `${counted(negotiation.connections, "connection")}, ${named(negotiation.clients)} to ${named(negotiation.servers)}`;
  const element = part(title, featureGrid(`Offered features of ${title}`, negotiation));
  onSelection(element, ["client"], (selection) => {
    element.hidden = selection !== null && !negotiation.clients.includes(selection.name);
  });
  return element;
}

/** Lists each feature with both offers and the outcome. */
export function featureGrid(caption: string, negotiation: Negotiation): HTMLElement {
  return scrollingGrid({
    caption,
    columns: [["Feature"], ["Client"], ["Server"], ["Outcome"]],
    rows: negotiation.features.map(({ feature, client, server, outcome }) => [feature, client, server, outcome]),
  });
}

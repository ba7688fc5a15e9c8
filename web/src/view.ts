// Shows a document with the view for its schema.

import { benchPage } from "./bench/index";
import { comparePage } from "./compare/index";
import { h } from "./lib/dom";
import { type Page, page } from "./lib/page";
import { predictionPage } from "./prediction/index";
import { reportPage } from "./report/index";
import { studyPage } from "./study/index";
import "./styles/base.css";
import "./styles/charts.css";
import "./styles/tables.css";
import "./styles/print.css";
import type { SmbscopeBenchDocument } from "./types/bench";
import type { SmbscopeComparisonDocument } from "./types/compare";
import type { SmbscopePredictionDocument } from "./types/prediction";
import type { SmbscopeReportDocument } from "./types/report";
import type { SmbscopeStudyDocument } from "./types/study";

const VIEWS: Record<string, (document: unknown) => Page> = {
  "smbscope.report/1": (document) => reportPage(document as SmbscopeReportDocument),
  "smbscope.bench/1": (document) => benchPage(document as SmbscopeBenchDocument),
  "smbscope.compare/1": (document) => comparePage(document as SmbscopeComparisonDocument),
  "smbscope.prediction/1": (document) => predictionPage(document as SmbscopePredictionDocument),
  "smbscope.study/1": (document) => studyPage(document as SmbscopeStudyDocument),
};

/** Returns the page of a document, given as JSON. */
export function shown(text: string): HTMLElement[] {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return problem("This file is damaged", "The embedded document is incomplete. Create the report again.");
  }
  const schema = typeof read === "object" && read !== null && "schema" in read ? String(read.schema) : "none";
  const view = VIEWS[schema];
  if (!view) {
    return problem(
      "This page cannot show its document",
      `Its schema is “${schema}”, but this page supports ${Object.keys(VIEWS).join(", ")}. Another version of smbscope created it.`,
    );
  }
  return page(view(read));
}

function problem(title: string, text: string): HTMLElement[] {
  document.title = title;
  return [h("main", { class: "problem" }, h("h1", {}, title), h("p", {}, text))];
}

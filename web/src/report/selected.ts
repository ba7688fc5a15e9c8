// Panel with the figures of the selected client, share or file, and the command that reports everything about it.
import { splitEvidence } from "../charts/split";
import { type Child, h } from "../lib/dom";
import { bytes, duration, percent, span, thousands } from "../lib/format";
import { commandLine, tile, tiles } from "../lib/page";
import { onSelection, SELECTION_KINDS, type Selection, selectionText } from "../lib/selection";
import type { SmbscopeReportDocument, TimeSplit, UserEntity } from "../types/report";
import { analyzeCommand, filterValue, isPlain } from "./commandline";
import { waited } from "./figures";

type Entity = Omit<UserEntity, "user"> & { time_split?: TimeSplit | null };

/** Creates the panel, hidden while everything is shown. */
export function selectionPanel(report: SmbscopeReportDocument): HTMLElement {
  const panel = h("div", { class: "selected", "data-always": true, hidden: true });
  onSelection(panel, SELECTION_KINDS, (selection) => {
    panel.hidden = selection === null;
    panel.replaceChildren(...(selection ? content(report, selection) : []));
  });
  return panel;
}

function content(report: SmbscopeReportDocument, selection: Selection): HTMLElement[] {
  const entity = entityOf(report, selection);
  const command = commandOf(report, selection);
  return [
    h("h2", {}, `Only ${selectionText(selection)}`),
    ...(entity
      ? figures(entity)
      : [h("p", {}, "This page does not list its figures, only rows of the tables below that name it.")]),
    h(
      "p",
      { class: "muted" },
      `The answer, throughput and cells of the heat map still cover ${everything(report)}. `,
      "Slowest commands are those among its 100 slowest. Hidden, as the page has no figures for the selection: ",
      h("span", { class: "hidden-sections" }),
      ".",
    ),
    ...(command === null ? [] : [commandLine("A report with all figures:", command)]),
  ];
}

function everything({ filter }: SmbscopeReportDocument): string {
  return filter === null ? "the whole capture" : "all filtered commands";
}

function figures(entity: Entity): HTMLElement[] {
  const { response_time: times, count, errors, time_split: split } = entity;
  const time = (name: string, value: number | null) => (value === null ? null : tile(name, duration(value)));
  const shown = tiles(
    tile("Commands", thousands(count)),
    time("Median", times.p50),
    time("p95", times.p95),
    time("p99", times.p99),
    time("Slowest", times.max),
    times.mean === null ? null : tile("Total wait", span(waited(times)), `mean ${duration(times.mean)}`),
    tile("Read", bytes(entity.bytes_read)),
    tile("Written", bytes(entity.bytes_written)),
    tile("Errors", thousands(errors), percent(errors, count)),
  );
  return split && split.elapsed_ns > 0 ? [shown, splitEvidence(split)] : [shown];
}

function entityOf(report: SmbscopeReportDocument, { kind, name, share }: Selection): Entity | undefined {
  if (kind === "client") return report.clients.find((row) => row.client === name && !row.is_other);
  if (kind === "share") return report.shares.find((row) => row.share === name && !row.is_other);
  return report.files.find((row) => row.path === name && row.share === share && !row.is_other);
}

/** Returns the command that reports on the selection. Returns null if a terminal cannot be trusted with its name. */
export function commandOf(
  report: Pick<SmbscopeReportDocument, "captures" | "filter">,
  { kind, name, share }: Selection,
): string | null {
  if (![name, share ?? ""].every(isPlain)) return null;
  const test = (column: string, value: string) => `${column} == ${filterValue(value)}`;
  const onShare = kind === "file" && share !== null ? [test("share", share)] : [];
  return analyzeCommand(report, "-o selected.html", [...onShare, test(kind === "file" ? "path" : kind, name)]);
}

/** Names the origin of parts that a selection does not change. */
export function wholeNote(report: SmbscopeReportDocument): Child {
  return h("p", { class: "whole-note" }, `Of ${everything(report)}:`);
}

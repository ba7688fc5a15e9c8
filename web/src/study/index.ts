// Page of a study, `smbscope.study/1`: the answer, its chart and its table, and everything needed to reproduce it.
import { type Factor, type FactorPanel, factors } from "../charts/factors";
import { copyButton, save } from "../lib/clipboard";
import { type Child, h } from "../lib/dom";
import { counted, date, span, unbroken } from "../lib/format";
import {
  Choice,
  facts,
  lead,
  list,
  meanings,
  type Page,
  part,
  resultBox,
  type Section,
  section,
  whatNext,
} from "../lib/page";
import type { SmbscopeStudyDocument, StudyRow } from "../types/study";
import { axisCurves, loadCurves } from "./curves";
import {
  isBaseline,
  nameOf,
  neededOf,
  repetitionTable,
  resultTable,
  runTable,
  serverTable,
  variantTable,
} from "./tables";
import { isAt, type Load, loadsOf, loadText, measuresOf, numericAxis } from "./values";

export function studyPage(study: SmbscopeStudyDocument): Page {
  const loads = loadsOf(study);
  const chosen = new Choice(
    "Load",
    loads.map((load) => ({ name: loadText(load), value: load })),
    loads.length - 1,
  );
  const server = serverTable(study);
  const any = study.results.length > 0;
  return {
    title: `SMB study: ${study.name}`,
    facts: [
      result(study),
      study.question && h("p", { class: "question" }, study.question),
      facts([
        ["Baseline", baselines(study)],
        ["Runs", runsText(study)],
        ...(study.definition.left_out.length > 0
          ? [["Left out", study.definition.left_out.join("; ")] as [string, Child]]
          : []),
        ["Time", timeText(study)],
        ...(study.definition.targets.length > 0
          ? [["Targets", study.definition.targets.join(", ")] as [string, Child]]
          : []),
      ]),
    ],
    version: study.generator.version,
    sections: [
      section(
        "factors",
        "Against the baseline",
        [any && lead(FACTORS), any && chosen.place((load) => [factorChart(study, load)])],
        "Factors",
      ),
      section("results", "Results", [
        any && resultTable(study),
        server && part("Server load", server),
        any && part("Every repetition", repetitionTable(study)),
      ]),
      curves(study, loads, chosen),
      section("setup", "Setup", [
        lead(
          study.studies.length > 0
            ? `Each variant of ${study.studies.join(" and ")} is compared with the variant of the same name. The studies were run at different times; factors compare all their repetitions.`
            : `The variants are all combinations of the axes' settings. Each repetition runs every variant once, in a random order (seed ${study.seed}); factors compare runs of the same repetition.`,
        ),
        part("Variants", variantTable(study)),
        part("Environment", environment(study)),
      ]),
      reproduce(study),
      section("method", "How the figures are computed", [h("div", { class: "prose" }, meanings(METHOD))], "Method"),
    ],
  };
}

const FACTORS =
  "Ratio to the baseline on a logarithmic axis. Colour and label show the effect on users. A whisker without a cap continues beyond the axis.";

function baselines(study: SmbscopeStudyDocument): string {
  const names = [...new Set(study.variants.map(({ baseline }) => nameOf(study, baseline)))];
  return names.length > 3
    ? `${names.slice(0, 3).join("; ")} and ${names.length - 3} more (see the chart)`
    : names.join("; ");
}

function runsText({ variants, repetitions, runs, definition, studies }: SmbscopeStudyDocument): string {
  const planned = variants.length * repetitions;
  const done = runs.filter((run) => run.failed === null).length;
  const made = done === planned ? counted(done, "run") : `${done} of ${counted(planned, "run")}`;
  const repeated = runs.filter((run) => run.attempts > 1).length;
  const again = repeated > 0 ? `, ${repeated} of them repeated` : "";
  const short = `${again}${definition.quick ? ", short form (--quick)" : ""}`;
  if (studies.length > 0) return `${counted(variants.length, "variant")}: ${counted(done, "run")}${short}`;
  return `${counted(variants.length, "variant")} × ${counted(repetitions, "repetition")}: ${made}${short}`;
}

function timeText({ started_ns, runs }: SmbscopeStudyDocument): string {
  const end = Math.max(...runs.map((run) => run.started_ns + run.duration_ns));
  return started_ns === null
    ? "not yet"
    : `${date(started_ns)} UTC, ${span(end - started_ns)} to the end of the last run`;
}

/** Creates the answer with its caveats and failed runs. */
function result(study: SmbscopeStudyDocument): HTMLElement {
  const failed = study.runs.filter((run) => run.failed !== null);
  const { answer } = study;
  const sentences = [
    ...answer.ruled_out,
    ...answer.evidence,
    ...answer.caveats,
    ...failed.map((run) =>
      `No result for ${nameOf(study, run.variant)}, repetition ${run.repetition}: ${run.failed}.`.replace(/\.\.$/, "."),
    ),
  ];
  return resultBox(
    answer.culprit,
    "Study",
    answer.headline ? unbroken(answer.headline) : "No result yet.",
    sentences.length > 0 && list(sentences.map(unbroken)),
    whatNext(answer.next),
  );
}

/** Draws the factors at a load, one panel per measure. Each baseline is above the variants compared with it. */
function factorChart(study: SmbscopeStudyDocument, load: Load): HTMLElement {
  const place = (row: StudyRow) => study.variants[row.variant]?.baseline ?? 0;
  const panels = measuresOf(study.results).map(({ measure }): FactorPanel => {
    const rows = study.results.filter((row) => row.measure === measure && isAt(row, load));
    const order = (row: StudyRow) => [place(row), row.factor === null ? 0 : 1, row.variant];
    const sorted = rows.sort((a, b) => {
      const [x, y] = [order(a), order(b)];
      const at = x.findIndex((value, i) => value !== y[i]);
      return (x[at] ?? 0) - (y[at] ?? 0);
    });
    const shown = sorted.filter((row) => isBaseline(study, row) || factorOf(row) !== null);
    return { title: measure, rows: shown.map((row) => ({ name: nameOf(study, row.variant), factor: factorOf(row) })) };
  });
  return factors({
    label: `Factors against the baseline at ${loadText(load)}: ${panels.map(({ title }) => title).join(", ")}`,
    // There are no factors if the baseline's value is zero.
    panels: panels.filter(({ rows }) => study.variants.length === 1 || rows.some(({ factor }) => factor !== null)),
  });
}

function factorOf({ factor, verdict }: StudyRow): Factor | null {
  if (!factor?.ratio) return null;
  const { ratio, interval, range } = factor;
  return { ratio, interval, range, verdict, needed: neededOf(factor) };
}

function curves(study: SmbscopeStudyDocument, loads: readonly Load[], chosen: Choice<Load>): Section | null {
  const axis = numericAxis(study);
  const several = loads.length > 1;
  if (loads.length === 0 || (!several && !axis)) return null;
  const bands = study.repetitions > 1 ? " Bands show the range across repetitions." : "";
  return section("curves", "Curves", [
    lead(`Means across repetitions.${bands}`),
    several && part("Against load", loadCurves(study)),
    axis &&
      part(
        `Against ${axis.name}`,
        chosen.place((load) => [axisCurves(study, axis, load)]),
      ),
  ]);
}

function environment({ environment }: SmbscopeStudyDocument): HTMLElement {
  const known = Object.entries(environment).map(([name, text]): [string, Child] => {
    return [name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " "), text];
  });
  return known.length > 0 ? facts(known) : h("p", { class: "muted" }, "No setting is the same for all runs");
}

/** Shows the study file, the command and the runs with their raw data. */
function reproduce(study: SmbscopeStudyDocument): Section | null {
  const { source, text, sha256 } = study.definition;
  const file = source.split(/[\\/]/).at(-1) ?? source;
  const command = h(
    "p",
    { class: "command" },
    h("code", {}, study.command),
    copyButton("Copy", () => study.command, { "aria-label": "Copy the command" }),
  );
  const content = h("pre", { class: "file", tabindex: 0, role: "region", "aria-label": file });
  // Keeps the line breaks of the file.
  content.textContent = text;
  return section(
    "reproduce",
    "How to reproduce",
    [
      study.command !== "" && command,
      text !== "" &&
        part(
          file,
          h(
            "div",
            { class: "table-tools no-print" },
            copyButton("Copy", () => text, { "aria-label": `Copy ${file}` }),
            h("button", { type: "button", class: "quiet", click: () => save(file, "text/plain", text) }, "Save"),
          ),
          content,
        ),
      facts([["SHA-256 (file, form and targets)", sha256]]),
      study.runs.length > 0 && part("Runs", lead(RAW), runTable(study)),
    ],
    "Reproduce",
  );
}

const RAW =
  "Each run has a directory next to this page with its raw data: run.json (all figures of the run), report.html (its page), exchanges.parquet (every command; histograms.hgrm if there are too many), intervals.parquet (every second) and server.parquet (server metrics, if measured).";

const METHOD: [string, string][] = [
  [
    "Factor",
    "Ratio to the baseline within the same repetition, as the geometric mean over all repetitions. Drift between repetitions affects both sides and cancels out. For compared studies, it is the ratio of the geometric means of their repetitions, which includes drift between the studies.",
  ],
  [
    "95% interval",
    "Confidence interval of the factor under the same conditions. It needs five repetitions; with three or four, the range of factors is shown in square brackets.",
  ],
  [
    "Slower, faster, more, less",
    "Significant at a false discovery rate of 5% over all rows of the study (Benjamini and Hochberg).",
  ],
  ["Equal within 5%", "The 90% interval is within ±5% (two one-sided tests)."],
  [
    "Undecided",
    "Neither a difference nor equality is significant. The number estimates the repetitions needed to decide.",
  ],
  [
    "Unfit runs",
    "Other programs used 25% or more of the processors just before or after the run, the client was stopped for a second, the server stalled, operations failed, or arrivals were missed. A run of one load point is repeated once, and the repetition counts. A load point that is still unfit is left out, unless the reason holds in most repetitions of the variant (of other programs and a stopped client: in most of the study): then it is kept. All are counted in the answer.",
  ],
  ["Spread", "Standard deviation of the repetitions, as a percentage of their mean."],
  ["A dash", "The value is unknown: too few commands, or none."],
];

// The page of a study, `smbscope.study/1`: the question, the answer, and all that is needed to make it again.
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
      study.question && h("p", { class: "question" }, study.question),
      facts([
        ["Baseline", baselines(study)],
        ["Runs", runsText(study)],
        ["Time", timeText(study)],
        ...(study.definition.targets.length > 0
          ? [["Targets", study.definition.targets.join(", ")] as [string, Child]]
          : []),
      ]),
      result(study),
    ],
    version: study.generator.version,
    sections: [
      section(
        "factors",
        "Against the baseline",
        [any && lead(FACTORS), any && chosen.place((load) => [factorChart(study, load)])],
        "Factors",
      ),
      curves(study, loads, chosen),
      section("results", "Results", [
        any && resultTable(study),
        any && part("Every repetition", repetitionTable(study)),
        server && part("What it cost the server", server),
      ]),
      section("setup", "Set-up", [
        lead(
          study.studies.length > 0
            ? `Each variant of ${study.studies.join(" and ")} stands beside that of the same name. They were made at different times; factors are taken between all their repetitions.`
            : `Every setting of every axis goes with every one of the others. A repetition has each variant once, in a random order of its own (seed ${study.seed}); factors are taken within repetitions.`,
        ),
        part("Variants", variantTable(study)),
        part("Made on", environment(study)),
      ]),
      reproduce(study),
      section("method", "How it was computed", [h("div", { class: "prose" }, meanings(METHOD))], "Method"),
    ],
  };
}

const FACTORS =
  "How many times the baseline’s value, on a logarithmic axis. The colour and the word say what it means for users; a whisker that ends without a cap goes on beyond the axis.";

/** What the others are compared with. */
function baselines(study: SmbscopeStudyDocument): string {
  const names = [...new Set(study.variants.map(({ baseline }) => nameOf(study, baseline)))];
  return names.length > 3
    ? `${names.slice(0, 3).join("; ")} and ${names.length - 3} more, as the chart shows`
    : names.join("; ");
}

function runsText({ variants, repetitions, runs, definition, studies }: SmbscopeStudyDocument): string {
  const planned = variants.length * repetitions;
  const done = runs.filter((run) => run.failed === null).length;
  const made = done === planned ? counted(done, "run") : `${done} of ${counted(planned, "run")}`;
  const short = definition.quick ? ", short form (--quick)" : "";
  if (studies.length > 0) return `${counted(variants.length, "variant")}: ${counted(done, "run")}${short}`;
  return `${counted(variants.length, "variant")} × ${counted(repetitions, "repetition")}: ${made}${short}`;
}

function timeText({ started_ns, runs }: SmbscopeStudyDocument): string {
  const end = Math.max(...runs.map((run) => run.started_ns + run.duration_ns));
  return started_ns === null
    ? "not yet"
    : `${date(started_ns)} UTC, ${span(end - started_ns)} to the end of the last run`;
}

/** The answer, and what weakens it. */
function result(study: SmbscopeStudyDocument): HTMLElement {
  const failed = study.runs.filter((run) => run.failed !== null);
  const { answer } = study;
  const sentences = [
    ...answer.evidence,
    ...answer.caveats,
    ...failed.map((run) =>
      `No result of ${nameOf(study, run.variant)}, repetition ${run.repetition}: ${run.failed}.`.replace(/\.\.$/, "."),
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

/** A panel for each measure, of the variants at a load; a baseline stands above what is compared with it. */
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
    // Of what the baseline has nothing of, there are no factors.
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
  const bands = study.repetitions > 1 ? " Bands reach from the least to the greatest repetition." : "";
  return section("curves", "Curves", [
    lead(`Means of the repetitions.${bands}`),
    several && part("Against the load", loadCurves(study)),
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
  return known.length > 0 ? facts(known) : h("p", { class: "muted" }, "Nothing is the same for all runs");
}

/** The file and the command; the runs, and where their raw data are. */
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
  // Its own text, lines and all.
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
      facts([["SHA-256, with form and targets", sha256]]),
      study.runs.length > 0 && part("Runs", lead(RAW), runTable(study)),
    ],
    "Reproduce",
  );
}

const RAW =
  "Each run has a directory beside this page with its raw data: run.json (everything about the run), report.html (its page), exchanges.parquet (every command; with too many of them histograms.hgrm), intervals.parquet (every second) and server.parquet (the server’s side, where it was measured).";

const METHOD: [string, string][] = [
  [
    "Factor",
    "The ratio to the baseline within the same repetition, of all repetitions their geometric mean: what drifts in the meantime hits both. Of studies beside each other the ratio of the geometric means of their repetitions: what drifted between them is part of it.",
  ],
  [
    "95% interval",
    "Of the factor of runs to come under the same conditions. It needs five repetitions; of three or four, the least and the greatest factor stand in brackets.",
  ],
  [
    "Slower, faster, more, less",
    "Chance alone makes such a difference in fewer than 5% of tables, all rows of the study considered (Benjamini and Hochberg).",
  ],
  ["Equal within 5%", "The interval of 90% lies within ±5%: shown by two one-sided tests."],
  ["Undecided", "Neither is shown. So many repetitions would probably decide it."],
  ["Spread", "The standard deviation of the repetitions, in percent of their mean."],
  ["A dash", "The value is not known: too few commands for it, or none."],
];

// Tables of a study: results, repetitions, server load, variants and runs.
import { serverColumns } from "../bench/tables";
import { factorText, verdictText } from "../charts/factors";
import { ABSENT, date, ratio, span } from "../lib/format";
import { type Column, countColumn, numberColumn, shareColumn, textColumn } from "../table/columns";
import { table } from "../table/table";
import type { SmbscopeStudyDocument, StudyRow, StudyRun } from "../types/study";
import { serverMean } from "./curves";
import { isAt, type Load, loadsOf, loadText, valueText } from "./values";

/** Creates a column of values with mixed units. Sorts and exports the plain numbers. */
function valueColumn<Row>(title: string, of: (row: Row) => { value: number; unit: string } | null): Column<Row> {
  const text = (row: Row) => {
    const found = of(row);
    return found ? valueText(found.value, found.unit) : ABSENT;
  };
  return { title, kind: "number", value: (row) => of(row)?.value ?? null, text };
}

function loadColumn<Row extends Load>(study: SmbscopeStudyDocument): Column<Row>[] {
  return loadsOf(study).length > 1 ? [textColumn("Load", (row) => loadText(row))] : [];
}

export function resultTable(study: SmbscopeStudyDocument): HTMLElement {
  const columns: Column<StudyRow>[] = [
    textColumn("Measure", (row) => row.measure),
    ...loadColumn<StudyRow>(study),
    textColumn("Variant", (row) => nameOf(study, row.variant)),
    valueColumn("Mean", ({ mean, unit }) => ({ value: mean, unit })),
    shareColumn("Spread", ({ stddev, mean }) => (stddev === null || mean <= 0 ? null : stddev / mean), {
      help: "Standard deviation of the repetitions, as a share of their mean",
    }),
    numberColumn("Factor", (row) => row.factor?.ratio ?? null, ratio, {
      help: "Ratio to the baseline within the same repetitions",
      text: ({ factor }) => (factor?.ratio ? factorText({ ...factor, ratio: factor.ratio }) : ABSENT),
      width: 24,
    }),
    textColumn("Verdict", (row) => {
      const { verdict, factor } = row;
      if (!factor || !verdict) return isBaseline(study, row) ? "baseline" : ABSENT;
      return verdictText({ verdict, needed: neededOf(factor) });
    }),
    numberColumn(
      "p",
      (row) => row.adjusted_p_value,
      (p) => (p < 0.001 ? "<0.001" : p.toFixed(3)),
      {
        help: "p-value, adjusted for the number of rows",
      },
    ),
    textColumn("Unit", (row) => row.unit || "count", { help: "Unit of the mean in copies and downloads" }),
  ];
  return table({ caption: "Results", columns, rows: study.results });
}

export function neededOf(factor: NonNullable<StudyRow["factor"]>): number | null {
  return factor.answer === "undecided" ? factor.repetitions_needed : null;
}

interface Repetition extends Load {
  row: StudyRow;
  repetition: number;
  value: number;
  ratio: number | null;
  directory: string | null;
}

/** Lists every value in its own row, ready for a statistics program. */
export function repetitionTable(study: SmbscopeStudyDocument): HTMLElement {
  const rows = study.results.flatMap((row) => {
    const baseline = study.variants[row.variant]?.baseline;
    const base = study.results.find(
      (other) => other.variant === baseline && other.measure === row.measure && isAt(other, row),
    );
    return row.values.flatMap((value, i): Repetition[] => {
      if (value === null) return [];
      const against = row.factor === null ? null : (base?.values[i] ?? null);
      const run = study.runs.find((run) => run.variant === row.variant && run.repetition === i + 1);
      return [
        {
          users: row.users,
          rate: row.rate,
          row,
          repetition: i + 1,
          value,
          ratio: against ? value / against : null,
          directory: run?.directory ?? null,
        },
      ];
    });
  });
  const columns: Column<Repetition>[] = [
    textColumn("Measure", ({ row }) => row.measure),
    ...loadColumn<Repetition>(study),
    textColumn("Variant", ({ row }) => nameOf(study, row.variant)),
    countColumn("Repetition", ({ repetition }) => repetition),
    valueColumn("Value", ({ value, row }) => ({ value, unit: row.unit })),
    numberColumn("Factor", (row) => row.ratio, ratio, { help: "To the baseline of the same repetition" }),
    textColumn("Run", (row) => row.directory, { help: "Directory of the run" }),
  ];
  return table({ caption: "Every repetition", columns, rows });
}

/** Lists the server metrics of each variant, as means over repetitions. Returns null if no run has metrics. */
export function serverTable(study: SmbscopeStudyDocument): HTMLElement | null {
  if (study.server.length === 0) return null;
  type Row = Load & { variant: number };
  const rows = loadsOf(study).flatMap((load) => study.variants.map((_, variant): Row => ({ ...load, variant })));
  const columns: Column<Row>[] = [
    textColumn("Variant", ({ variant }) => nameOf(study, variant)),
    ...loadColumn<Row>(study),
    ...serverColumns<Row>((row, metric, of) => {
      const found = study.server.find(
        (other) => other.metric === metric && other.variant === row.variant && isAt(other, row),
      );
      return found ? serverMean(found, of) : null;
    }),
  ];
  return table({ caption: "Server load", columns, rows, filter: false });
}

/** Maximum width of a command in characters. Copies and downloads have all of it. */
const COMMAND = 100;

export function variantTable(study: SmbscopeStudyDocument): HTMLElement {
  type Row = SmbscopeStudyDocument["variants"][number];
  const axes = Object.keys(study.variants[0]?.settings ?? {});
  const columns: Column<Row>[] = [
    textColumn("Variant", (row) => row.name),
    ...(axes.length > 1 ? axes.map((axis) => textColumn<Row>(axis, (row) => row.settings[axis] ?? null)) : []),
    textColumn("Compared with", (row) => (study.variants[row.baseline] === row ? null : nameOf(study, row.baseline))),
    textColumn("Files on", (row) => row.place || null),
    textColumn(
      "Conditions that differ",
      (row) =>
        Object.entries(row.environment)
          .map(([name, value]) => `${name} ${value}`)
          .join("; ") || null,
      { width: COMMAND },
    ),
    textColumn("Before each run", (row) => row.before.join("; ") || null, { width: COMMAND }),
    textColumn("After each run", (row) => row.after.join("; ") || null, { width: COMMAND }),
    textColumn("Command of one run", (row) => row.command || null, { width: COMMAND }),
  ];
  return table({ caption: "Variants", columns, rows: study.variants, filter: study.variants.length > 10 });
}

/** Names the reasons for which a run, or load points of it, are unfit. */
function unfitText(study: SmbscopeStudyDocument, run: StudyRun): string | null {
  const points = study.unfit.filter(
    ({ variant, repetition }) => variant === run.variant && repetition === run.repetition,
  );
  const texts = points.map(({ reason, left_out }) => `${reason.replaceAll("_", " ")}${left_out ? ", left out" : ""}`);
  return [...new Set(texts)].join("; ") || null;
}

/** Lists the runs in order of execution. */
export function runTable(study: SmbscopeStudyDocument): HTMLElement {
  const columns: Column<StudyRun>[] = [
    countColumn("Run", (row) => study.runs.indexOf(row) + 1),
    textColumn("Variant", (row) => nameOf(study, row.variant)),
    countColumn("Repetition", (row) => row.repetition),
    { ...textColumn<StudyRun>("Start (UTC)", (row) => date(row.started_ns)), width: 20 },
    numberColumn("Took", (row) => row.duration_ns, span, { exported: "Took (ns)" }),
    countColumn("Attempts", (row) => row.attempts),
    textColumn("Repeated because", (row) => row.repeated),
    textColumn("Unfit", (row) => unfitText(study, row), { help: "Why the run does not show what the study asks" }),
    textColumn("Directory", (row) => row.directory),
    textColumn("Failed", (row) => row.failed),
  ];
  return table({ caption: "Runs", columns, rows: study.runs });
}

/** Returns true if the row belongs to a baseline. */
export function isBaseline(study: SmbscopeStudyDocument, row: StudyRow): boolean {
  return study.variants[row.variant]?.baseline === row.variant;
}

export function nameOf(study: SmbscopeStudyDocument, variant: number): string {
  return study.variants[variant]?.name ?? "";
}

// Curves of a study: each measure against the load, or against an axis whose settings are numbers; below them, on the same
// axis, what it cost the server.
import { spaced } from "../bench/charts";
import { bandOf, curve, lines, type Series } from "../charts/lines";
import { MEASURES, type ServerFigure, serversPanels } from "../charts/server";
import { thousands } from "../lib/format";
import type { SmbscopeStudyDocument, StudyServerRow, VariantEntry } from "../types/study";
import { isAt, type Load, loadAt, loadsOf, loadText, measurePanel, measuresOf, type NumericAxis } from "./values";

/** A line of the chart, and where each of its points comes from. */
interface Line {
  name: string;
  points: { x: number; variant: number; load: Load }[];
}

/** Each variant against users, or against the rate. */
export function loadCurves(study: SmbscopeStudyDocument): HTMLElement {
  const loads = loadsOf(study);
  const byRate = loads.some(({ rate }) => rate !== null);
  const all = study.variants.map(({ name }, variant): Line => {
    return { name, points: loads.map((load) => ({ x: loadAt(load), variant, load })) };
  });
  const positions = loads.map(loadAt);
  return chart(study, all, byRate ? "the rate" : "the number of users", {
    title: byRate ? "Operations each second" : "Users",
    text: (n) => loadText(byRate ? { users: 0, rate: n } : { users: n, rate: null }),
    tickText: thousands,
    logarithmic: false,
    ...(positions.length <= 24 ? { ticks: spaced(positions) } : {}),
  });
}

/** At one load, against an axis; variants that differ in it alone make a line. */
export function axisCurves(study: SmbscopeStudyDocument, axis: NumericAxis, load: Load): HTMLElement {
  const numbers = new Map([...axis.texts].map(([number, text]) => [text, number]));
  const all = new Map<string, Line>();
  for (const [variant, found] of study.variants.entries()) {
    const name = others(found, axis.name);
    const line = all.get(name) ?? { name, points: [] };
    line.points.push({ x: numbers.get(found.settings[axis.name] ?? "") ?? 0, variant, load });
    all.set(name, line);
  }
  for (const line of all.values()) line.points.sort((a, b) => a.x - b.x);
  const positions = [...axis.texts.keys()].sort((a, b) => a - b);
  const [first, last] = [positions[0] ?? 0, positions.at(-1) ?? 0];
  return chart(study, [...all.values()], axis.name, {
    title: axis.name,
    text: (n) => axis.texts.get(n) ?? String(n),
    logarithmic: first > 0 && last / first > 20,
    ticks: positions,
  });
}

/** What tells a variant from others on the axis. */
function others({ settings }: VariantEntry, axis: string): string {
  const rest = Object.entries(settings).filter(([name]) => name !== axis);
  return rest.map(([, setting]) => setting).join(", ") || "all";
}

function chart(
  study: SmbscopeStudyDocument,
  all: readonly Line[],
  against: string,
  x: Parameters<typeof lines>[0]["x"],
): HTMLElement {
  const server = serversPanels((figure) =>
    all.map(({ name, points }, i) => serverSeries(study, figure, name, i, points)),
  );
  // What is a measure too is drawn once, with the server's side.
  const drawn = new Set(server.map(({ title }) => title));
  const own = measuresOf(study.results).filter(({ measure }) => !drawn.has(MEASURES[measure] ?? ""));
  const measures = own.map(({ measure, unit }) => {
    const rows = study.results.filter((row) => row.measure === measure);
    const found = all.map(({ name, points }, i) => {
      const known = points.flatMap(({ x, variant, load }) => {
        const row = rows.find((row) => row.variant === variant && isAt(row, load));
        return row ? [{ x, y: row.mean, values: row.values }] : [];
      });
      return banded(name, i, known);
    });
    return measurePanel(measure, unit, 150, found);
  });
  return lines({
    label: `${measures.map(({ title }) => title).join(", ")} against ${against}`,
    at: "At",
    x,
    panels: [...measures, ...server],
    interpolate: true,
  });
}

/** A line through means, with a band from the least to the greatest value. */
function banded(
  name: string,
  index: number,
  points: readonly { x: number; y: number; values: (number | null)[] }[],
): Series {
  const known = (values: (number | null)[]) => values.filter((value) => value !== null);
  return curve(
    name,
    index,
    points,
    ({ x }) => x,
    ({ y }) => y,
    {
      dots: true,
      ...bandOf(
        points,
        ({ x }) => x,
        ({ values }) => {
          const found = known(values);
          return found.length > 1 ? [Math.min(...found), Math.max(...found)] : null;
        },
      ),
    },
  );
}

function serverSeries(
  study: SmbscopeStudyDocument,
  figure: ServerFigure,
  name: string,
  index: number,
  points: Line["points"],
): Series {
  const known = points.flatMap(({ x, variant, load }) => {
    const row = study.server.find((row) => row.metric === figure.metric && row.variant === variant && isAt(row, load));
    const mean = row ? serverMean(row, figure.of) : null;
    return row && mean !== null ? [{ x, y: mean, values: figure.of === "max" ? row.maxima : row.means }] : [];
  });
  return banded(name, index, known);
}

/** Of the repetitions that have it. */
export function serverMean({ means, maxima }: StudyServerRow, of: "mean" | "max"): number | null {
  const known = (of === "max" ? maxima : means).filter((value) => value !== null);
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

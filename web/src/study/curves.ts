// Curves of a study: each measure against load, or against an axis with numeric settings, with server metrics below.
import { spaced } from "../bench/charts";
import { bandOf, curve, lines, type Series } from "../charts/lines";
import { MEASURES, type ServerFigure, serversPanels } from "../charts/server";
import { thousands } from "../lib/format";
import type { SmbscopeStudyDocument, StudyServerRow, VariantEntry } from "../types/study";
import { isAt, type Load, loadAt, loadsOf, loadText, measurePanel, measuresOf, type NumericAxis } from "./values";

/** Line of the chart, with the origin of each point. */
interface Line {
  name: string;
  points: { x: number; variant: number; load: Load }[];
}

/** Draws each variant against users or rate. */
export function loadCurves(study: SmbscopeStudyDocument): HTMLElement {
  const loads = loadsOf(study);
  const byRate = loads.some(({ rate }) => rate !== null);
  const all = study.variants.map(({ name }, variant): Line => {
    return { name, points: loads.map((load) => ({ x: loadAt(load), variant, load })) };
  });
  const positions = loads.map(loadAt);
  return chart(study, all, byRate ? "the rate" : "the number of users", {
    title: byRate ? "Operations per second" : "Users",
    text: (n) => loadText(byRate ? { users: 0, rate: n } : { users: n, rate: null }),
    tickText: thousands,
    logarithmic: false,
    ...(positions.length <= 24 ? { ticks: spaced(positions) } : {}),
  });
}

/** Draws one load against an axis. Variants that differ only in that axis form a line. */
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

/** Names a line by the settings of the other axes. */
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
  // A measure that is also a server metric is drawn once, with the server.
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

/** Creates a line through means, with a band from minimum to maximum. */
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

/** Returns the mean over the repetitions that have the metric. */
export function serverMean({ means, maxima }: StudyServerRow, of: "mean" | "max"): number | null {
  const known = (of === "max" ? maxima : means).filter((value) => value !== null);
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

// Formats values of a study: measures with units, loads and numeric settings.
import { bytesPanel, type Panel, percentPanel, ratePanel, type Series, timePanel } from "../charts/lines";
import { counted, decimal, duration, perSecond, rate, short, thousands } from "../lib/format";
import type { SmbscopeStudyDocument, StudyRow } from "../types/study";

/** Formats a value with its unit, as in the text report. */
export function valueText(value: number, unit: string): string {
  switch (unit) {
    case "s":
      return duration(Math.round(value * 1e9));
    case "B/s":
      return rate(value);
    case "percent":
      return `${value.toFixed(0)}%`;
    case "1/s":
      return value < 99.95 ? `${value.toFixed(1)}/s` : perSecond(value);
    default:
      return decimal(value);
  }
}

export function measurePanel(measure: string, unit: string, height: number, series: Series[]): Panel {
  switch (unit) {
    case "s":
      return isWide(series)
        ? timePanel(`${measure}, logarithmic`, height, series.map(inNanoseconds), true)
        : timePanel(measure, height, series.map(inNanoseconds));
    case "B/s":
      return bytesPanel(measure, height, series);
    case "percent":
      return percentPanel(measure, height, series);
    case "1/s":
      return { ...ratePanel(height, series), title: measure, text: (value) => valueText(value, unit) };
    default:
      return { title: measure, height, series, text: decimal, tickText: short };
  }
}

/** Lines that differ by more than this factor need a logarithmic axis. */
const WIDE = 10;

function isWide(series: readonly Series[]): boolean {
  const at = new Map<number, number[]>();
  for (const [x, value] of series.flatMap(({ points }) => points)) at.set(x, [...(at.get(x) ?? []), value]);
  const all = [...at.values()];
  return (
    all.flat().every((value) => value > 0) && all.some((values) => Math.max(...values) > WIDE * Math.min(...values))
  );
}

function inNanoseconds(series: Series): Series {
  const scaled = (value: number) => value * 1e9;
  return {
    ...series,
    points: series.points.map(([x, y]) => [x, scaled(y)]),
    ...(series.band ? { band: series.band.map(([x, low, high]) => [x, scaled(low), scaled(high)] as const) } : {}),
  };
}

/** Load point of a study. */
export interface Load {
  users: number;
  rate: number | null;
}

export function isAt(row: Load, load: Load): boolean {
  return row.users === load.users && row.rate === load.rate;
}

/** Returns the loads of the results, the lightest first. */
export function loadsOf({ results }: SmbscopeStudyDocument): Load[] {
  const found: Load[] = [];
  for (const { users, rate } of results) {
    if (!found.some((load) => isAt(load, { users, rate }))) found.push({ users, rate });
  }
  return found.sort((a, b) => a.users - b.users || (a.rate ?? 0) - (b.rate ?? 0));
}

export function loadText({ users, rate }: Load): string {
  return rate === null ? counted(users, "user") : `${thousands(Math.round(rate))}/s`;
}

export function loadAt({ users, rate }: Load): number {
  return rate ?? users;
}

export function measuresOf(rows: readonly StudyRow[]): { measure: string; unit: string }[] {
  const units = new Map(rows.map(({ measure, unit }) => [measure, unit]));
  return [...units].map(([measure, unit]) => ({ measure, unit }));
}

/** Multipliers of units. */
const MULTIPLES: Record<string, number> = {
  "": 1,
  "%": 1,
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  min: 60,
  h: 3_600,
  B: 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
};

/** Parses `64KiB` as 65536 and `1ms` as 0.001. Returns null if the setting is not a number. */
export function numberOf(setting: string): number | null {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)\s*([a-zA-Zµ%]*)$/.exec(setting) ?? [];
  const multiple = MULTIPLES[unit ?? "none"];
  return digits === undefined || multiple === undefined ? null : Number(digits) * multiple;
}

/** Axis of the study with numeric settings. */
export interface NumericAxis {
  name: string;
  /** Settings by their number. */
  texts: Map<number, string>;
}

/** Fewer settings than this are treated as names, such as dialects. */
const NUMBERS_MIN = 3;

/** Returns the axis with the most settings among those with distinct numbers only. */
export function numericAxis({ variants }: SmbscopeStudyDocument): NumericAxis | null {
  const names = Object.keys(variants[0]?.settings ?? {});
  const found = names.flatMap((name): NumericAxis[] => {
    const settings = [...new Set(variants.map((variant) => variant.settings[name] ?? ""))];
    const texts = new Map(
      settings.flatMap((text): [number, string][] => {
        const number = numberOf(text);
        return number === null ? [] : [[number, text]];
      }),
    );
    return texts.size === settings.length && texts.size >= NUMBERS_MIN ? [{ name, texts }] : [];
  });
  return found.sort((a, b) => b.texts.size - a.texts.size)[0] ?? null;
}

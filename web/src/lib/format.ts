// Formats numbers, times and names as the text report does.

/** Placeholder for a value that is unknown or has too few samples. */
export const ABSENT = "–";

/** Keeps a number and its unit on one line. */
const NO_BREAK = "\u00a0";

/** Formats a duration with three significant digits: `842 ns`, `1.43 ms`, `12.0 s`. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return ABSENT;
  const magnitude = Math.abs(ns);
  if (magnitude < 1_000) return `${Math.round(ns)}${NO_BREAK}ns`;
  // A value that would round to 1000 takes the next unit.
  const [divisor, unit] = magnitude < 999_500 ? [1e3, "µs"] : magnitude < 999_500_000 ? [1e6, "ms"] : [1e9, "s"];
  return `${significant(ns / divisor)}${NO_BREAK}${unit}`;
}

/** Formats with three significant digits; keeps all integer digits. */
function significant(value: number): string {
  const magnitude = Math.abs(value);
  const digits = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
  return magnitude < 999.5 ? value.toFixed(digits) : thousands(Math.round(value));
}

/** Formats a long duration: `4.21 s`, `10 min 52 s`, `3 h 05 min`, `12 days 7 h`. */
export function span(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return ABSENT;
  const total = Math.round(Math.abs(ns) / 1e9);
  if (total < 120) return duration(ns);
  const two = (n: number) => String(n).padStart(2, "0");
  const parts =
    total < 7_200
      ? [Math.floor(total / 60), "min", two(total % 60), "s"]
      : total < 172_800
        ? [Math.floor(total / 3_600), "h", two(Math.floor(total / 60) % 60), "min"]
        : [Math.floor(total / 86_400), "days", Math.floor(total / 3_600) % 24, "h"];
  return parts.join(NO_BREAK);
}

/** Formats a tick of a time axis: `10 µs`, `2.5 ms`, `300 s`. */
export function tickDuration(ns: number): string {
  if (ns === 0) return "0";
  const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
  ];
  const [divisor, unit] = units.find(([divisor]) => ns >= divisor * 0.9999) ?? [1, "ns"];
  return `${trimmed(ns / divisor)}${NO_BREAK}${unit}`;
}

/** Formats an offset from the start, to a tenth of a second or finer: `31.5 s`, `1 min 30.0 s`, `2 h 05 min 30.0 s`. */
export function elapsed(ns: number, digits = 1): string {
  const total = Math.max(0, Number((ns / 1e9).toFixed(digits)));
  const two = (n: number, digits = 0) => n.toFixed(digits).padStart(digits > 0 ? digits + 3 : 2, "0");
  if (total < 60) return `${total.toFixed(digits)}${NO_BREAK}s`;
  const [hours, minutes] = [Math.floor(total / 3_600), Math.floor(total / 60) % 60];
  const before = hours > 0 ? [hours, "h", two(minutes)] : [minutes];
  return [...before, "min", two(total % 60, digits), "s"].join(NO_BREAK);
}

/** Formats `1234567` as `1,234,567`. */
export function thousands(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Replaces blanks between numbers and units by no-break spaces. */
export function unbroken(text: string): string {
  return text.replace(/(\d) (?=(?:%|ns|µs|ms|s|min|h|[kMGT]?(?:B(?:\/s)?|bit\/s))(?![\p{L}\d]))/gu, `$1${NO_BREAK}`);
}

/** Formats a count with its noun: `1 file`, `1,204 files`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${thousands(n)}${NO_BREAK}${n === 1 ? one : many}`;
}

/** Formats bytes in decimal units with three significant digits: `842 B`, `1.43 MB`. */
export function bytes(n: number): string {
  return scaled(n, ["B", "kB", "MB", "GB", "TB", "PB"]);
}

export function rate(bytesPerSecond: number): string {
  return `${bytes(bytesPerSecond)}/s`;
}

/** Formats a tick of a throughput axis: `20 MB/s`, `2.5 MB/s`. */
export function tickRate(bytesPerSecond: number): string {
  return rate(bytesPerSecond).replace(/\.?0+(?=\u00a0)/, (zeros) => (zeros.startsWith(".") ? "" : zeros));
}

/** Formats a rate: `1,204/s`. */
export function perSecond(n: number | null | undefined): string {
  return n === null || n === undefined ? ABSENT : `${thousands(Math.round(n))}/s`;
}

/** Formats a count with at most three significant digits: `842`, `1.2 k`, `3 M`. */
export function short(n: number): string {
  const units: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  const found = units.find(([divisor]) => Math.abs(n) >= divisor * 0.9999);
  return found ? `${trimmed(n / found[0])}${NO_BREAK}${found[1]}` : trimmed(n);
}

function scaled(n: number, units: string[]): string {
  let value = n;
  let at = 0;
  while (Math.abs(value) >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 ? trimmed(Math.round(value)) : significant(value)}${NO_BREAK}${units[at]}`;
}

/** Formats with at most three significant digits, without trailing zeros. */
function trimmed(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Formats a share with one decimal. A small share that is not zero becomes `<0.1%`. */
export function percent(part: number, whole: number): string {
  const share = whole > 0 ? (100 * part) / whole : 0;
  return `${part > 0 && share < 0.05 ? "<0.1" : share.toFixed(1)}%`;
}

/** Formats a share for prose with about two digits: `71%`, `3.4%`, `98.9%`. Only the whole is `100%`. */
export function prosePercent(part: number, whole: number): string {
  const share = whole > 0 ? (100 * part) / whole : 0;
  if (part > 0 && share < 0.05) return "<0.1%";
  if (part < whole && share >= 99.95) return ">99.9%";
  return `${share.toFixed(share >= 9.95 && share < 95 ? 0 : 1).replace(/\.0$/, "")}%`;
}

/** Formats a number with one decimal below 100, none above. */
export function decimal(value: number | null | undefined): string {
  if (value === null || value === undefined) return ABSENT;
  return Math.abs(value) < 99.95 ? value.toFixed(1) : thousands(Math.round(value));
}

/** Formats a ratio: `1.40×`, `0.088×`, `12.5×`. */
export function ratio(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return ABSENT;
  return `${value > 0 && value < 0.0995 ? Number(value.toPrecision(2)) : significant(value)}×`;
}

/** Formats a timestamp in UTC to the second: `1997-08-11 09:30:00`. */
export function date(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return ABSENT;
  const time = new Date(Math.floor(ns / 1e9) * 1000);
  return Number.isNaN(time.getTime()) ? ABSENT : time.toISOString().slice(0, 19).replace("T", " ");
}

/** Formats the time of day in UTC to the millisecond. A double holds such timestamps to 256 ns. */
export function clock(ns: number): string {
  const time = new Date(Math.floor(ns / 1e6));
  return Number.isNaN(time.getTime()) ? ABSENT : time.toISOString().slice(11, 23);
}

/**
 * Replaces control characters, direction marks and invisible characters of a name from a capture: a file name must not be
 * able to pass for another.
 */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, "\ufffd");
}

import { describe, expect, it } from "vitest";
import {
  bytes,
  clean,
  clock,
  counted,
  date,
  duration,
  percent,
  prosePercent,
  ratio,
  short,
  span,
  thousands,
  tickDuration,
} from "../../src/lib/format";

/** As a reader sees it, who cannot tell the blanks apart. */
const seen = (texts: string[]) => texts.map((text) => text.replaceAll("\u00a0", " "));

describe("times", () => {
  it("have three digits and a unit, as the text report prints them", () => {
    // The same values as in the tests of Nanos in smbscope-model.
    const values = [0, 842, 1_430, 14_300, 999_400, 1_430_000, 12_000_000_000, 99_960_000_000];
    expect(seen(values.map(duration))).toEqual([
      "0 ns",
      "842 ns",
      "1.43 µs",
      "14.3 µs",
      "999 µs",
      "1.43 ms",
      "12.0 s",
      "100 s",
    ]);
  });

  it("that round to a thousand have the next unit", () => {
    expect(seen([999_499, 999_500, 999_499_999, 999_500_000].map(duration))).toEqual([
      "999 µs",
      "1.00 ms",
      "999 ms",
      "1.00 s",
    ]);
  });

  it("that are unknown are a dash and not a zero", () => {
    expect([duration(null), span(undefined), date(null)]).toEqual(["–", "–", "–"]);
  });

  it("that are long read as minutes, hours and days", () => {
    // 1,062,000 s are 12 days and 25,200 s, 7 h.
    const values = [4_210_000_000, 651_795_400_000, 11_100_000_000_000, 1_062_000_000_000_000];
    expect(seen(values.map(span))).toEqual(["4.21 s", "10 min 52 s", "3 h 05 min", "12 days 7 h"]);
  });

  it("on an axis have no zeros at the end", () => {
    expect(seen([1, 500, 1e3, 2.5e6, 1e7, 1e9, 3e11].map(tickDuration))).toEqual([
      "1 ns",
      "500 ns",
      "1 µs",
      "2.5 ms",
      "10 ms",
      "1 s",
      "300 s",
    ]);
  });

  it("of the epoch are dates in UTC", () => {
    // 871291800 is 11 August 1997, 09:30 UTC.
    expect(date(871_291_800.9e9)).toBe("1997-08-11 09:30:00");
    expect(clock(871_291_800.1234e9)).toBe("09:30:00.123");
  });
});

describe("numbers", () => {
  it("have their thousands grouped", () => {
    expect([0, 999, 1_000, 1_234_567].map(thousands)).toEqual(["0", "999", "1,000", "1,234,567"]);
    expect(seen([counted(1, "file"), counted(1204, "file"), counted(2, "entry", "entries")])).toEqual([
      "1 file",
      "1,204 files",
      "2 entries",
    ]);
  });

  it("of bytes have units of a thousand", () => {
    expect(seen([0, 999, 1_000, 999_499, 999_500, 1_430_000, 3e16].map(bytes))).toEqual([
      "0 B",
      "999 B",
      "1.00 kB",
      "999 kB",
      "1.00 MB",
      "1.43 MB",
      "30.0 PB",
    ]);
  });

  it("that exist never show as nothing", () => {
    // 1 of 2,001 is 0.04998 %, 1 of 2,000 is 0.05 %.
    expect(seen([percent(0, 9), percent(1, 2_001), percent(1, 2_000), percent(0, 0)])).toEqual([
      "0.0%",
      "<0.1%",
      "0.1%",
      "0.0%",
    ]);
  });

  it("that are ratios keep two digits at least", () => {
    expect([1.4, 0.088, 0.5, 12.49, 1_234, 0, null].map(ratio)).toEqual([
      "1.40×",
      "0.088×",
      "0.50×",
      "12.5×",
      "1,234×",
      "0.00×",
      "–",
    ]);
  });

  it("on an axis are short", () => {
    expect(seen([0, 0.25, 999, 1_200, 3_000_000].map(short))).toEqual(["0", "0.25", "999", "1.2 k", "3 M"]);
  });
});

describe("names", () => {
  it("cannot look like others", () => {
    expect(clean("a\u001b[31mb\nc\u202ed")).toBe("a\ufffd[31mb\ufffdc\ufffdd");
    expect(clean("a\u200bb\u2028c\u00add\u{e0041}é\u00a0f")).toBe("a\ufffdb\ufffdc\ufffdd\ufffdé\u00a0f");
  });
});

describe("shares in sentences", () => {
  it("have the digits that matter, as in the sentences of the answer", () => {
    // The same values as in the tests of prose_percent in smbscope-model.
    const shares = [
      [0, 9],
      [1, 9_999],
      [31, 1_000],
      [714, 1_000],
      [989, 1_000],
      [9_999, 10_000],
      [7, 7],
    ] as const;
    const shown = shares.map(([part, of]) => prosePercent(part, of));
    expect(shown).toEqual(["0%", "<0.1%", "3.1%", "71%", "98.9%", ">99.9%", "100%"]);
  });
});

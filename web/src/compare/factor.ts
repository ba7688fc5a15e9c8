// Converts a ratio of a comparison to a factor of the chart.
import type { Factor, Verdict } from "../charts/factors";
import type { Ratio } from "../types/compare";

/** Verdicts for a larger and a smaller value, by kind of figure. */
const WORDS = {
  time: ["slower", "faster"],
  throughput: ["faster", "slower"],
  amount: ["more", "less"],
} as const;

export function factorOf(ratio: Ratio | null, of: keyof typeof WORDS): Factor | null {
  if (!ratio || ratio.value <= 0) return null;
  const { value, interval, certainty } = ratio;
  return {
    ratio: value,
    interval: interval && [interval.low, interval.high],
    range: certainty?.range ?? null,
    verdict: certainty && verdictOf(value, certainty, of),
    needed: certainty?.repetitions_needed ?? null,
  };
}

/** Returns the verdict, which takes all rows of the comparison into account. */
function verdictOf(value: number, certainty: NonNullable<Ratio["certainty"]>, of: keyof typeof WORDS): Verdict {
  if (certainty.answer === "equal") return "equal";
  if (certainty.detectable === null) return "too_few";
  return certainty.shown ? WORDS[of][value > 1 ? 0 : 1] : "undecided";
}

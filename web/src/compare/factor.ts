// A ratio of a comparison as a factor of the chart.
import type { Factor, Verdict } from "../charts/factors";
import type { Ratio } from "../types/compare";

/** What a ratio of times means, or, where it is no time that a user waits for once, of an amount. */
export function factorOf(ratio: Ratio | null, isAmount = false): Factor | null {
  if (!ratio || ratio.value <= 0) return null;
  const { value, interval, certainty } = ratio;
  return {
    ratio: value,
    interval: interval && [interval.low, interval.high],
    range: certainty?.range ?? null,
    verdict: certainty && verdictOf(value, certainty, isAmount),
    needed: certainty?.repetitions_needed ?? null,
  };
}

/** A difference counts as shown only with all rows judged together. */
function verdictOf(value: number, certainty: NonNullable<Ratio["certainty"]>, isAmount: boolean): Verdict {
  if (certainty.answer === "equal") return "equal";
  if (certainty.detectable === null) return "too_few";
  if (!certainty.shown) return "undecided";
  return value > 1 ? (isAmount ? "more" : "slower") : isAmount ? "less" : "faster";
}

#!/usr/bin/env python3
"""Checks the statistics of smbscope-stats against SciPy and NumPy: intervals of ratios, p-values, block lengths,
corrections for multiple tests. The crate's test `scipy` writes its results to standard input as JSON."""

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 50_000
# Random difference between two bootstraps of 50,000 resamples, relative to the width of the interval.
TOLERANCE = 0.04

Values = NDArray[np.float64]


def percentiles(base: Values, other: Values, pairs: bool, level: float) -> tuple[float, float]:
    """Returns SciPy's percentile bootstrap interval of the logarithm of the ratio."""
    if pairs:
        found = stats.bootstrap(
            (other - base,), np.mean, confidence_level=level, n_resamples=RESAMPLES, method="percentile", rng=7
        )
    else:

        def difference(a: Values, b: Values, axis: int = -1) -> Any:
            return np.mean(b, axis=axis) - np.mean(a, axis=axis)

        found = stats.bootstrap(
            (base, other), difference, confidence_level=level, n_resamples=RESAMPLES, method="percentile", rng=7
        )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def expected(base: Values, other: Values, pairs: bool) -> tuple[tuple[float, float], float]:
    """Returns the interval described in docs/comparing.md and the p-value of Student's test."""
    if pairs:
        test = stats.ttest_rel(other, base)
        difference = other - base
        error = stats.sem(difference)
        deviation = np.std(difference) / np.sqrt(len(difference))
    else:
        test = stats.ttest_ind(other, base, equal_var=False)
        error = np.hypot(stats.sem(base), stats.sem(other))
        deviation = np.hypot(np.std(base) / np.sqrt(len(base)), np.std(other) / np.sqrt(len(other)))
    student = test.confidence_interval(0.95)
    t = stats.t.ppf(0.975, test.df)
    share = stats.norm.cdf(-t * error / deviation)
    low, high = percentiles(base, other, pairs, 1 - 2 * share)
    return (min(low, student.low), max(high, student.high)), float(test.pvalue)


def block_length(values: Values) -> float:
    """Optimal block length of the stationary bootstrap: Politis and White (2004), corrected 2009."""
    count = len(values)
    centred = values - values.mean()
    covariance = np.correlate(centred, centred, "full")[count - 1 :] / count
    quiet = max(5, int(np.ceil(np.sqrt(np.log10(count)))))
    lags = int(np.ceil(np.sqrt(count))) + quiet
    bound = 2 * np.sqrt(np.log10(count) / count)
    loud = np.abs(covariance[1 : lags + 1] / covariance[0]) >= bound
    runs = [begin for begin in range(lags - quiet + 1) if not loud[begin : begin + quiet].any()]
    last = runs[0] if runs else int(np.flatnonzero(loud)[-1]) + 1
    width = min(2 * max(last, 1), lags)
    at = np.arange(-width, width + 1)
    window = np.clip(2 * (1 - np.abs(at) / width), 0, 1)
    weighted = window * covariance[np.abs(at)]
    slope, spectrum = float((weighted * np.abs(at)).sum()), float(weighted.sum())
    length = (2 * slope**2 / (2 * spectrum**2)) ** (1 / 3) * count ** (1 / 3)
    return float(np.clip(length, 1, np.ceil(min(3 * np.sqrt(count), count / 3))))


def holm(values: Values) -> Values:
    """Holm's step-down correction, which SciPy lacks."""
    order = np.argsort(values)
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def main() -> int:
    """Prints the differences."""
    cases = json.load(sys.stdin)
    wrong = []
    for case in cases["figures"]:
        base, other, pairs = np.log(case["base"]), np.log(case["other"]), case["paired"]
        name = f"{'pairs' if pairs else 'runs'} {len(base)} and {len(other)}"
        (low, high), probability = expected(base, other, pairs)
        found = np.log(case["found"]["interval"])
        allowed = TOLERANCE * (high - low)
        if abs(found[0] - low) > allowed or abs(found[1] - high) > allowed:
            wrong.append(f"{name}: interval {found}, by SciPy {low, high}")
        if not np.isclose(np.log(case["found"]["ratio"]), other.mean() - base.mean()):
            wrong.append(f"{name}: ratio {case['found']['ratio']}")
        p_value = case["found"]["p_value"]
        # Student's p-value is the lower limit. It may only be exceeded where the resamples are less certain.
        if not probability * 0.999 - 1e-9 <= p_value <= max(3 * probability, probability + 0.05):
            wrong.append(f"{name}: probability {p_value}, by SciPy {probability}")
    for series in cases["series"]:
        length = block_length(np.array(series["values"]))
        if not np.isclose(length, series["found"]):
            wrong.append(f"block length {series['found']}, by NumPy {length}")
    p_values = np.array(cases["p_values"])
    if not np.allclose(holm(p_values), cases["holm"]):
        wrong.append("Holm differs")
    if not np.allclose(stats.false_discovery_control(p_values), cases["benjamini_hochberg"]):
        wrong.append("Benjamini and Hochberg differ")
    adjusted = 2 * len(p_values)
    print(
        f"compared {len(cases['figures'])} intervals, {len(cases['series'])} block lengths, "
        f"{adjusted} adjusted probabilities"
    )
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

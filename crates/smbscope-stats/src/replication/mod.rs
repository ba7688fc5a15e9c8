//! Comparison of repeated runs: the ratio of a value to its baseline, with an interval and one of four verdicts.
//!
//! The unit of replication is the run: commands of one run share the state of the server, so ten thousand of them say
//! nothing about the next run (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). The input is
//! one value per run. [`paired`] compares runs that alternate in blocks, so that drift cancels, [`unpaired`] two sets
//! of runs, and [`within_run`] one run of each side, with an interval that covers these runs only.
//!
//! All computations use logarithms, so that a ratio and its reciprocal get the same verdict. NaN stands for a missing
//! value, such as a p99 of ten commands, and excludes the run (or block). Other values must be positive and finite.

mod estimate;
#[cfg(test)]
mod tests;

pub use estimate::{Course, REPETITIONS_MAX, block_length, within_run};

use crate::random::Random;
use estimate::{LogRatioEstimate, RepetitionVariance};
use serde::{Deserialize, Serialize};

/// Runs of each side, or blocks, for a confidence interval.
pub const REPETITIONS_MIN: usize = 5;
/// Runs of each side for a range.
const RANGE_MIN: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicationSettings {
    /// Smallest relevant difference, as a fraction: 0.05 for 5%.
    pub margin: f64,
    pub confidence: f64,
    /// Probability of detecting a difference, for `detectable` and `repetitions_needed`.
    pub power: f64,
    pub resamples: u32,
    pub seed: u64,
}

impl Default for ReplicationSettings {
    fn default() -> ReplicationSettings {
        ReplicationSettings { margin: 0.05, confidence: 0.95, power: 0.8, resamples: 10_000, seed: 1 }
    }
}

/// Population that an interval describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Future runs under the same conditions.
    Runs,
    /// These two runs only.
    WithinRun,
}

/// A value as a multiple of the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineRatio {
    /// Value divided by the baseline's; for several runs, the ratio of geometric means. Null if one of them is zero or
    /// missing.
    pub ratio: Option<f64>,
    /// 95% interval of the ratio. Null with fewer than five runs of each side, or if a run is too short.
    pub interval: Option<(f64, f64)>,
    /// Smallest and largest ratio, if there are three or four runs of each side and therefore no interval.
    pub range: Option<(f64, f64)>,
    /// Conclusion from the interval.
    #[serde(flatten)]
    pub answer: DifferenceVerdict,
    /// Smallest ratio above 1 that data like these would detect in four of five attempts. Null without an interval.
    pub detectable: Option<f64>,
    /// Number of runs of the side that has fewer, or of blocks.
    pub repetitions: u32,
    /// Population that the interval describes.
    pub scope: Scope,
    /// Probability of a difference at least this large if the true ratio is 1. For tables, see [`benjamini_hochberg`].
    pub p_value: Option<f64>,
}

/// Verdict on a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// The value is higher: the whole interval is above 1, and the difference is not shown to be within the margin.
    Higher,
    /// The value is lower: the whole interval is below 1, and the difference is not shown to be within the margin.
    Lower,
    /// Equal within the margin, by two one-sided tests: the 90% interval lies within it.
    Equal,
    /// Neither a difference nor equality is shown.
    Undecided {
        /// Total runs of each side, or blocks, that would probably decide. Null if the spread is unknown or more than
        /// [`REPETITIONS_MAX`] would be needed.
        repetitions_needed: Option<u32>,
    },
}

impl DifferenceVerdict {
    pub fn differs(self) -> bool {
        matches!(self, DifferenceVerdict::Higher | DifferenceVerdict::Lower)
    }
}

pub fn paired(blocks: &[(f64, f64)], settings: &ReplicationSettings) -> BaselineRatio {
    let known: Vec<(f64, f64)> = blocks.iter().copied().filter(|(base, value)| !(base * value).is_nan()).collect();
    let logs: Vec<f64> = known.iter().map(|(base, value)| (value / base).ln()).collect();
    let usable = known.iter().all(|(base, value)| is_usable(*base) && is_usable(*value));
    if !usable || logs.is_empty() {
        return BaselineRatio::unknown(logs.len());
    }
    let mut random = Random::new(&[settings.seed]);
    let estimate = || LogRatioEstimate::paired(&logs, settings.resamples, &mut random);
    let extremes = extremes(&logs);
    BaselineRatio::from_logarithms(
        logs.len(),
        mean(&logs),
        extremes,
        RepetitionVariance::paired(&logs),
        settings,
        estimate,
    )
}

pub fn unpaired(base: &[f64], values: &[f64], settings: &ReplicationSettings) -> BaselineRatio {
    let known = |side: &[f64]| -> Vec<f64> { side.iter().copied().filter(|value| !value.is_nan()).collect() };
    let (base, values) = (known(base), known(values));
    let repetitions = base.len().min(values.len());
    if repetitions == 0 || !base.iter().chain(&values).all(|value| is_usable(*value)) {
        return BaselineRatio::unknown(repetitions);
    }
    let logs = |side: &[f64]| -> Vec<f64> { side.iter().map(|value| value.ln()).collect() };
    let (base, values) = (logs(&base), logs(&values));
    let mut random = Random::new(&[settings.seed]);
    let estimate = || LogRatioEstimate::unpaired(&base, &values, settings.resamples, &mut random);
    let (bases, others) = (extremes(&base), extremes(&values));
    let extremes = (others.0 - bases.1, others.1 - bases.0);
    let ratio = mean(&values) - mean(&base);
    BaselineRatio::from_logarithms(
        repetitions,
        ratio,
        extremes,
        RepetitionVariance::unpaired(&base, &values),
        settings,
        estimate,
    )
}

impl BaselineRatio {
    fn unknown(repetitions: usize) -> BaselineRatio {
        BaselineRatio {
            ratio: None,
            interval: None,
            range: None,
            answer: DifferenceVerdict::Undecided { repetitions_needed: None },
            detectable: None,
            repetitions: u32::try_from(repetitions).unwrap_or(u32::MAX),
            scope: Scope::Runs,
            p_value: None,
        }
    }

    fn from_logarithms(
        repetitions: usize,
        ratio: f64,
        extremes: (f64, f64),
        spread: RepetitionVariance,
        settings: &ReplicationSettings,
        estimate: impl FnOnce() -> LogRatioEstimate,
    ) -> BaselineRatio {
        let needed = |decided_by: usize| spread.repetitions(ratio, decided_by, settings);
        let known = BaselineRatio { ratio: Some(ratio.exp()), ..BaselineRatio::unknown(repetitions) };
        match repetitions {
            0..RANGE_MIN => known,
            RANGE_MIN..REPETITIONS_MIN => BaselineRatio {
                range: Some((extremes.0.exp(), extremes.1.exp())),
                answer: DifferenceVerdict::Undecided { repetitions_needed: needed(repetitions) },
                ..known
            },
            REPETITIONS_MIN.. => known.judged(&estimate(), settings, || needed(repetitions)),
        }
    }

    fn judged(
        self,
        estimate: &LogRatioEstimate,
        settings: &ReplicationSettings,
        needed: impl FnOnce() -> Option<u32>,
    ) -> BaselineRatio {
        let margin = settings.margin.max(0.0).ln_1p();
        let tail = 1.0 - settings.confidence;
        let (low, high) = estimate.interval(tail);
        // Two one-sided tests at 5% each correspond to an interval of 90%.
        let (equal_low, equal_high) = estimate.interval(2.0 * tail);
        let answer = if equal_low > -margin && equal_high < margin {
            DifferenceVerdict::Equal
        } else if low > 0.0 {
            DifferenceVerdict::Higher
        } else if high < 0.0 {
            DifferenceVerdict::Lower
        } else {
            DifferenceVerdict::Undecided { repetitions_needed: needed() }
        };
        BaselineRatio {
            interval: Some((low.exp(), high.exp())),
            detectable: Some(estimate.detectable(settings).exp()),
            p_value: Some(estimate.p_value()),
            answer,
            ..self
        }
    }
}

fn is_usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn extremes(logs: &[f64]) -> (f64, f64) {
    logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(*log), high.max(*log)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Adjusts the p-values of a few headline claims by Holm's method: of the rows at or below 0.05, the probability of
/// even one false positive is 5% (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979).
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let order = ascending(p_values);
    let mut adjusted = vec![None; p_values.len()];
    let mut least = 0.0f64;
    for (rank, (at, p)) in order.iter().enumerate() {
        least = least.max(p * (order.len() - rank) as f64).min(1.0);
        adjusted[*at] = Some(least);
    }
    adjusted
}

/// Adjusts p-values by the method of Benjamini and Hochberg: of the rows at or below 0.05, about 5% are false positives
/// ("Controlling the False Discovery Rate", 1995). For tables.
pub fn benjamini_hochberg(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let order = ascending(p_values);
    let mut adjusted = vec![None; p_values.len()];
    let mut most = 1.0f64;
    for (rank, (at, p)) in order.iter().enumerate().rev() {
        most = most.min(p * order.len() as f64 / (rank + 1) as f64);
        adjusted[*at] = Some(most);
    }
    adjusted
}

fn ascending(p_values: &[Option<f64>]) -> Vec<(usize, f64)> {
    let known = p_values.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?)).filter(|(_, p)| !p.is_nan()));
    let mut known: Vec<(usize, f64)> = known.collect();
    known.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    known
}

//! How sure a difference is: the ratio of a figure to that of a baseline with its interval, and one of three answers.
//!
//! The unit of replication is the run. Commands of one run share the state of the server, its caches and its
//! neighbours, so that ten thousand of them say nothing about the next run (Kalibera and Jones, "Rigorous Benchmarking
//! in Reasonable Time", ISMM 2013). What goes in here is one value a run: its p95, its MB/s, the elapsed time of its job.
//!
//! - [`paired`]: runs that alternate in blocks, one of each side in each; what drifts hits both and cancels.
//! - [`unpaired`]: two sets of runs.
//! - [`within_run`]: one run of each side. Its interval is about these runs only; [`Figure::scope`] says so.
//!
//! Everything is done with logarithms, so that a ratio and its reciprocal get the same answer; the value of several runs
//! is their geometric mean. A value that is not a number is one that its run does not have, such as a p99 of ten
//! commands: the run (or block) counts for nothing. Where a value is zero, negative or infinite there is no ratio.

mod adjust;
mod blocks;
mod estimate;
mod plan;
#[cfg(test)]
mod tests;
mod within;

pub use adjust::{benjamini_hochberg, holm};
pub use blocks::block_length;
pub use plan::REPETITIONS_MAX;
pub use within::{Course, within_run};

use crate::random::Random;
use estimate::LogRatioEstimate;
use serde::{Deserialize, Serialize};

/// Runs of each side, or blocks, that an interval needs.
pub const REPETITIONS_MIN: usize = 5;
/// Runs of each side, or blocks, that a range needs.
const RANGE_MIN: usize = 3;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicationSettings {
    /// Differences of less than this share are none: 0.05 for 5%.
    pub margin: f64,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Probability with which a difference is to be found, in [`Figure::detectable`] and
    /// [`Answer::Undecided::repetitions_needed`].
    pub power: f64,
    /// Resamples of the bootstrap.
    pub resamples: u32,
    /// Seed of the bootstrap: the same seed gives the same interval.
    pub seed: u64,
}

impl Default for ReplicationSettings {
    fn default() -> ReplicationSettings {
        ReplicationSettings { margin: 0.05, confidence: 0.95, power: 0.8, resamples: 10_000, seed: 1 }
    }
}

/// What an interval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Runs to come under the same conditions.
    Runs,
    /// These two runs and nothing else.
    WithinRun,
}

/// A figure as a multiple of the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineRatio {
    /// Value divided by the baseline's: of several runs, of the geometric means. Null where one of them is zero or
    /// missing.
    pub ratio: Option<f64>,
    /// The 95% interval of the ratio; null with fewer than five runs of each side, or with too short a run.
    pub interval: Option<(f64, f64)>,
    /// The least and the greatest ratio, where there are three or four runs of each side and so no interval.
    pub range: Option<(f64, f64)>,
    /// What the interval says.
    #[serde(flatten)]
    pub answer: DifferenceVerdict,
    /// The smallest ratio above 1 that data like these would show in four of five tries; null without an interval.
    pub detectable: Option<f64>,
    /// Runs of the side that has fewer, or blocks.
    pub repetitions: u32,
    /// What the interval is about.
    pub scope: Scope,
    /// The probability of at least this difference where there is none; for tables of many rows, see
    /// [`benjamini_hochberg`].
    pub p_value: Option<f64>,
}

/// What the data shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum DifferenceVerdict {
    /// The figure is higher: the whole interval is above 1, and it is not shown that the difference is within the margin.
    Higher,
    /// The same below 1.
    Lower,
    /// Equal within the margin, by two one-sided tests: an interval of 90% is within it.
    Equal,
    /// Neither is shown.
    Undecided {
        /// Runs of each side, or blocks, in all that would probably decide it; null where the spread is not known or
        /// more than [`REPETITIONS_MAX`] would be needed.
        repetitions_needed: Option<u32>,
    },
}

impl DifferenceVerdict {
    /// Whether a difference is shown.
    pub fn differs(self) -> bool {
        matches!(self, DifferenceVerdict::Higher | DifferenceVerdict::Lower)
    }
}

/// Pairs of baseline and value, one for each block of runs that stood next to each other.
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
        plan::RepetitionVariance::paired(&logs),
        settings,
        estimate,
    )
}

/// Runs of the baseline, and of what is compared with it.
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
        plan::RepetitionVariance::unpaired(&base, &values),
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

    /// Of logarithms of ratios.
    fn from_logarithms(
        repetitions: usize,
        ratio: f64,
        extremes: (f64, f64),
        spread: plan::RepetitionVariance,
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

    /// With the interval and the answer.
    fn judged(
        self,
        estimate: &LogRatioEstimate,
        settings: &ReplicationSettings,
        needed: impl FnOnce() -> Option<u32>,
    ) -> BaselineRatio {
        let margin = settings.margin.max(0.0).ln_1p();
        let tail = 1.0 - settings.confidence;
        let (low, high) = estimate.interval(tail);
        // Two one-sided tests of 5% each are an interval of 90%.
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

/// A value that has a logarithm.
fn is_usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn extremes(logs: &[f64]) -> (f64, f64) {
    logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(*log), high.max(*log)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Variance of a sample; 0 of fewer than two values.
fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

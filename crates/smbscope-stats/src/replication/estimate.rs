//! Bootstrap of the logarithm of a ratio, and the number of repetitions needed to decide a comparison.
//!
//! The percentile bootstrap of few values is too narrow: its variance lacks the factor n/(n − 1), and it ignores
//! Student's t. Both are corrected by percentiles further out, at Φ(−t·s/σ), with the deviation σ of the resamples and
//! the standard error s (Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69,
//! 2015: the expanded percentile interval). Few values also have few distinct resamples, so each side of the interval
//! is at least as wide as Student's.

use super::{REPETITIONS_MIN, ReplicationSettings, mean, variance};
use crate::random::Random;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

const RESOLVED_TAIL: usize = 3;

#[derive(Debug, Clone)]
pub(super) struct LogRatioEstimate {
    pub(super) log_ratio: f64,
    pub(super) resampled: Vec<f64>,
    pub(super) standard_error: f64,
    pub(super) degrees_of_freedom: f64,
    /// Limit of the standard deviation of the resamples; below the standard error.
    pub(super) deviation: f64,
}

impl LogRatioEstimate {
    pub(super) fn paired(logs: &[f64], resamples: u32, random: &mut Random) -> LogRatioEstimate {
        let count = logs.len() as f64;
        let squared = variance(logs) / count;
        LogRatioEstimate {
            log_ratio: mean(logs),
            resampled: sorted((0..resamples).map(|_| resampled_mean(logs, random)).collect()),
            standard_error: squared.sqrt(),
            degrees_of_freedom: count - 1.0,
            deviation: (squared * (count - 1.0) / count).sqrt(),
        }
    }

    /// Estimates from the logarithms of two sets of values. Degrees of freedom by Welch and Satterthwaite.
    pub(super) fn unpaired(base: &[f64], values: &[f64], resamples: u32, random: &mut Random) -> LogRatioEstimate {
        let means = (0..resamples).map(|_| resampled_mean(values, random) - resampled_mean(base, random));
        let resampled = sorted(means.collect());
        let sides = [base, values].map(|side| (side.len() as f64, variance(side) / side.len() as f64));
        let squared: f64 = sides.iter().map(|(_, squared)| squared).sum();
        let parts: f64 = sides.iter().map(|(count, squared)| squared.powi(2) / (count - 1.0)).sum();
        let shrunk: f64 = sides.iter().map(|(count, squared)| squared * (count - 1.0) / count).sum();
        LogRatioEstimate {
            log_ratio: mean(values) - mean(base),
            resampled,
            standard_error: squared.sqrt(),
            degrees_of_freedom: if parts > 0.0 { squared.powi(2) / parts } else { sides[0].0 + sides[1].0 - 2.0 },
            deviation: shrunk.sqrt(),
        }
    }

    pub(super) fn interval(&self, tail: f64) -> (f64, f64) {
        let tail = tail.clamp(f64::EPSILON, 1.0);
        let half = student(1.0 - tail / 2.0, self.degrees_of_freedom) * self.standard_error;
        let (low, high) = (self.log_ratio - half, self.log_ratio + half);
        if self.deviation <= 0.0 || self.resampled.is_empty() {
            return (low, high);
        }
        let share = normal().cdf(-half / self.deviation);
        (low.min(quantile(&self.resampled, share)), high.max(quantile(&self.resampled, 1.0 - share)))
    }

    /// Largest tail at which the interval still excludes a ratio of 1.
    pub(super) fn p_value(&self) -> f64 {
        if self.standard_error <= 0.0 {
            return if self.log_ratio == 0.0 { 1.0 } else { 0.0 };
        }
        let two_sided = |t: f64| match StudentsT::new(0.0, 1.0, self.degrees_of_freedom) {
            Ok(distribution) => (2.0 * distribution.cdf(-t.abs())).min(1.0),
            Err(_) => 1.0,
        };
        let by_student = two_sided(self.log_ratio / self.standard_error);
        let below = self.resampled.partition_point(|log| *log <= 0.0);
        let above = self.resampled.len() - self.resampled.partition_point(|log| *log < 0.0);
        let beyond = below.min(above);
        if beyond < RESOLVED_TAIL || self.deviation <= 0.0 {
            return by_student;
        }
        let share = (beyond as f64 / self.resampled.len() as f64).min(0.5);
        let t = normal().inverse_cdf(share) * self.deviation / self.standard_error;
        by_student.max(two_sided(t))
    }

    /// Returns the logarithm of the smallest ratio that such an interval would detect with the power in `settings`.
    pub(super) fn detectable(&self, settings: &ReplicationSettings) -> f64 {
        let quantiles = student(1.0 - (1.0 - settings.confidence) / 2.0, self.degrees_of_freedom)
            + student(settings.power, self.degrees_of_freedom);
        quantiles * self.standard_error
    }
}

fn resampled_mean(values: &[f64], random: &mut Random) -> f64 {
    let sum: f64 = (0..values.len()).map(|_| values[random.below(values.len() as u64) as usize]).sum();
    sum / values.len() as f64
}

pub(super) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Returns a quantile of ascending values by linear interpolation (Hyndman and Fan's type 7, as in NumPy).
fn quantile(ascending: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * (ascending.len() - 1) as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// Returns a quantile of Student's distribution, or of the normal one if the degrees of freedom are invalid.
pub(super) fn student(share: f64, degrees_of_freedom: f64) -> f64 {
    let share = if share.is_nan() { 0.5 } else { share.clamp(f64::EPSILON, 1.0 - f64::EPSILON) };
    match StudentsT::new(0.0, 1.0, degrees_of_freedom) {
        Ok(distribution) => distribution.inverse_cdf(share),
        Err(_) => normal().inverse_cdf(share),
    }
}

fn normal() -> Normal {
    Normal::standard()
}

/// Repetitions that a comparison may propose.
pub const REPETITIONS_MAX: u32 = 10_000;

/// Confidence of the upper bound for the variance used in planning: five runs underestimate it in more than half of all
/// cases (Browne, "On the Use of a Pilot Sample for Sample Size Determination", Statistics in Medicine 14, 1995).
const SPREAD_CONFIDENCE: f64 = 0.8;

#[derive(Debug, Clone, Copy)]
pub(super) struct RepetitionVariance {
    variance: f64,
    degrees_of_freedom: f64,
    /// Degrees of freedom that each further repetition adds: 1 if paired, 2 otherwise.
    each: f64,
}

impl RepetitionVariance {
    pub(super) fn paired(logs: &[f64]) -> RepetitionVariance {
        RepetitionVariance { variance: variance(logs), degrees_of_freedom: logs.len() as f64 - 1.0, each: 1.0 }
    }

    pub(super) fn unpaired(base: &[f64], values: &[f64]) -> RepetitionVariance {
        let degrees_of_freedom = (base.len() + values.len()) as f64 - 2.0;
        RepetitionVariance { variance: variance(base) + variance(values), degrees_of_freedom, each: 2.0 }
    }

    /// Total repetitions that would, with the requested power, show an existing difference of the margin, or else
    /// equality. If there are as many already, the number needed if the ratio stays the same.
    pub(super) fn repetitions(&self, log_ratio: f64, have: usize, settings: &ReplicationSettings) -> Option<u32> {
        if self.degrees_of_freedom < 1.0 || self.variance <= 0.0 {
            return None;
        }
        let margin = settings.margin.max(0.0).ln_1p();
        let tail = 1.0 - settings.confidence;
        // Pairs of a test quantile and a power quantile.
        let shown = (1.0 - tail / 2.0, settings.power);
        let equal = (1.0 - tail, (1.0 + settings.power) / 2.0);
        let upper = self.upper_variance();
        let planned = self.least(upper, &[(equal, margin), (shown, margin)])?;
        if planned as usize > have {
            return Some(planned);
        }
        let nearer = log_ratio.abs().max((margin - log_ratio.abs()).max(0.0));
        let further = self.least(upper, &[(shown, nearer)])?;
        Some(further.max(u32::try_from(have).ok()?.checked_add(1)?))
    }

    fn upper_variance(&self) -> f64 {
        match ChiSquared::new(self.degrees_of_freedom) {
            Ok(chi) => self.variance * self.degrees_of_freedom / chi.inverse_cdf(1.0 - SPREAD_CONFIDENCE),
            Err(_) => self.variance,
        }
    }

    fn least(&self, variance: f64, wanted: &[((f64, f64), f64)]) -> Option<u32> {
        let enough = |repetitions: u32| {
            let error = (variance / f64::from(repetitions)).sqrt();
            let degrees_of_freedom = f64::from(repetitions - 1) * self.each;
            wanted.iter().all(|((test, power), distance)| {
                (student(*test, degrees_of_freedom) + student(*power, degrees_of_freedom)) * error <= *distance
            })
        };
        let (mut low, mut high) = (REPETITIONS_MIN as u32, REPETITIONS_MAX);
        if !enough(high) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

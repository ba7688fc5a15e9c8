//! The bootstrap of the logarithm of a ratio, and what can be read from it.
//!
//! The percentile bootstrap of few values is too narrow, for two reasons. Its variance lacks the factor n/(n − 1), and it
//! knows nothing of Student's t; both are put right by taking percentiles further out, at Φ(−t·s/σ), where σ is the
//! deviation of the resamples and s the standard error (Hesterberg, "What Teachers Should Know About the Bootstrap", The
//! American Statistician 69, 2015: the expanded percentile interval). And resamples of few values take few values: those of
//! five have 126 means. So the interval is on each side at least as wide as Student's.

use super::{ReplicationSettings, mean, variance};
use crate::random::Random;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Resamples in a tail below which its share is not known.
const RESOLVED_TAIL: usize = 3;

/// The logarithm of a ratio, and how uncertain it is.
#[derive(Debug, Clone)]
pub(super) struct LogRatioEstimate {
    /// As observed.
    pub(super) log_ratio: f64,
    /// Of the resamples, ascending.
    pub(super) resampled: Vec<f64>,
    pub(super) standard_error: f64,
    pub(super) degrees_of_freedom: f64,
    /// What the deviation of the resamples tends to; below the standard error.
    pub(super) deviation: f64,
}

impl LogRatioEstimate {
    /// Of the logarithms of the ratios of blocks.
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

    /// Of the logarithms of two sets of values; degrees of freedom by Welch and Satterthwaite.
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

    /// The interval that leaves out `tail` on both sides together.
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

    /// The probability of at least this difference where there is none: the tail that an interval may have and just not
    /// hold 1.
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

    /// The logarithm of the least ratio that an interval like this one would show with the wanted power.
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

/// A quantile of ascending values, between neighbours in proportion (Hyndman and Fan's type 7, as NumPy's).
fn quantile(ascending: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * (ascending.len() - 1) as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// A quantile of Student's distribution, of the normal one where there is no such number of degrees of freedom.
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

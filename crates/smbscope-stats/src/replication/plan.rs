//! Number of repetitions needed to decide a comparison.

use super::estimate::student;
use super::{REPETITIONS_MIN, ReplicationSettings, variance};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Limit beyond which no number of repetitions is suggested.
pub const REPETITIONS_MAX: u32 = 10_000;

/// Confidence of the upper bound for the variance used in planning. The variance of five runs is itself uncertain, and
/// the observed one is too small in more than half of all cases (Browne, "On the Use of a Pilot Sample for Sample Size
/// Determination", Statistics in Medicine 14, 1995).
const SPREAD_CONFIDENCE: f64 = 0.8;

/// Variance of the logarithms of single-run ratios.
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

    /// Returns the total number of repetitions that would, with the requested power, show a difference of the margin if
    /// there is one, and show equality if there is none. If there are as many already, returns the number needed if the
    /// ratio stays as it is.
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

    /// Returns the fewest repetitions at which every pair of quantiles stays within its distance.
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

//! Bootstrap of the logarithm of a ratio, and the number of repetitions needed to decide a comparison.
//!
//! The percentile bootstrap of few values is too narrow: its variance lacks the factor n/(n − 1), and it ignores
//! Student's t. Both are corrected by percentiles further out, at Φ(−t·s/σ), with the deviation σ of the resamples and
//! the standard error s (Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69,
//! 2015: the expanded percentile interval). Few values also have few distinct resamples, so each side of the interval
//! is at least as wide as Student's.

use super::{BaselineRatio, REPETITIONS_MIN, ReplicationSettings, Scope, is_usable, mean, variance};
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

/// Independent blocks of each side for an interval. With fewer, their variance is unknown.
const BLOCKS_MIN: f64 = 4.0;

pub struct Course<'a> {
    /// One value per interval, from which the block length is computed.
    pub series: &'a [f64],
    pub figure: &'a dyn Fn(&[usize]) -> Option<f64>,
}

/// Comparison of one run of each side: a bootstrap over the intervals of each run.
///
/// Response times of neighbouring intervals are correlated, so resamples consist of blocks of random length (Politis
/// and Romano, "The Stationary Bootstrap", JASA 89, 1994). The result applies to these two runs only.
pub fn within_run(base: &Course<'_>, other: &Course<'_>, settings: &ReplicationSettings) -> BaselineRatio {
    let unknown = BaselineRatio { scope: Scope::WithinRun, ..BaselineRatio::unknown(1) };
    let whole = |course: &Course<'_>| {
        let all: Vec<usize> = (0..course.series.len()).collect();
        (course.figure)(&all).filter(|value| is_usable(*value)).map(f64::ln)
    };
    let (Some(before), Some(after)) = (whole(base), whole(other)) else { return unknown };
    let known = BaselineRatio { ratio: Some((after - before).exp()), ..unknown };
    let mut random = Random::new(&[settings.seed]);
    let mut sides = Vec::new();
    for course in [base, other] {
        let dependence = dependence(course.series);
        let blocks = course.series.len() as f64 / dependence.length;
        let logs =
            (blocks >= BLOCKS_MIN).then(|| resampled(course, dependence.length, settings.resamples, &mut random));
        match logs.flatten() {
            Some(logs) => sides.push((logs, blocks, dependence.missed)),
            _ => return known,
        }
    }
    let [(base, base_blocks, base_missed), (other, other_blocks, other_missed)] = &sides[..] else { return known };
    let log_ratio = after - before;
    // Compares resamples with resamples, not with the observed values, so that a bias of the estimator cancels.
    let resampled = sorted(base.iter().zip(other).map(|(base, other)| other - base).collect());
    let squared =
        [(base, base_blocks, base_missed), (other, other_blocks, other_missed)].map(|(logs, blocks, missed)| {
            let shrunk = super::variance(logs);
            (shrunk, shrunk * missed * blocks / (blocks - 1.0), *blocks)
        });
    let shrunk: f64 = squared.iter().map(|(shrunk, ..)| shrunk).sum();
    let error: f64 = squared.iter().map(|(_, error, _)| error).sum();
    let parts: f64 = squared.iter().map(|(_, error, blocks)| error.powi(2) / (blocks - 1.0)).sum();
    let estimate = LogRatioEstimate {
        log_ratio,
        resampled,
        standard_error: error.sqrt(),
        degrees_of_freedom: if parts > 0.0 { error.powi(2) / parts } else { base_blocks + other_blocks - 2.0 },
        deviation: shrunk.sqrt(),
    };
    known.judged(&estimate, settings, || None)
}

fn resampled(course: &Course<'_>, length: f64, resamples: u32, random: &mut Random) -> Option<Vec<f64>> {
    let count = course.series.len();
    if count == 0 {
        return None;
    }
    let mut places = vec![0; count];
    let draw = |_| {
        let mut at = random.below(count as u64) as usize;
        for place in &mut places {
            *place = at;
            let ends = random.unit() * length < 1.0;
            at = if ends { random.below(count as u64) as usize } else { (at + 1) % count };
        }
        (course.figure)(&places).filter(|value| is_usable(*value)).map(f64::ln)
    };
    (0..resamples).map(draw).collect()
}

/// Number of consecutive insignificant lags at which the search stops (K_N in Politis and White).
const QUIET_LAGS: usize = 5;
/// Significance bound for autocorrelations, in standard errors (c in Politis and White).
const INSIGNIFICANT: f64 = 2.0;
const LEAST_SEEN: f64 = 1e-3;
/// Upper limit for the correction; the estimate from a short series can be anything.
const MOST_MISSED: f64 = 4.0;
/// Upper limit for the correlation of neighbours; beyond it the blocks are not independent anyway.
const CLOSEST_NEIGHBOURS: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dependence {
    pub(super) length: f64,
    /// Ratio of the mean's variance to the resamples', which is too small because blocks separate neighbours.
    pub(super) missed: f64,
}

impl Dependence {
    const NONE: Dependence = Dependence { length: 1.0, missed: 1.0 };
}

/// Returns the mean block length for the stationary bootstrap of the mean of a series (Politis and White, "Automatic
/// Block-Length Selection for the Dependent Bootstrap", Econometric Reviews 23, 2004, with the correction of Patton,
/// Politis and White, 2009). At least 1, at most the lesser of 3·√n and n/3.
pub fn block_length(series: &[f64]) -> f64 {
    dependence(series).length
}

pub(super) fn dependence(series: &[f64]) -> Dependence {
    let count = series.len();
    if count < 2 * QUIET_LAGS || series.iter().any(|value| !value.is_finite()) {
        return Dependence::NONE;
    }
    let n = count as f64;
    let mean = series.iter().sum::<f64>() / n;
    let covariance = |lag: usize| {
        let products = series.iter().zip(&series[lag..]).map(|(a, b)| (a - mean) * (b - mean));
        products.sum::<f64>() / n
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return Dependence::NONE;
    }
    let quiet = QUIET_LAGS.max(n.log10().sqrt().ceil() as usize);
    let lags_max = (n.sqrt().ceil() as usize + quiet).min(count - 1);
    let covariances: Vec<f64> = (0..=lags_max).map(covariance).collect();
    let bound = INSIGNIFICANT * (n.log10() / n).sqrt();
    let loud = |lag: &usize| (covariances[*lag] / variance).abs() >= bound;
    // The last lag before `quiet` consecutive insignificant ones; if there is no such place, the last significant lag.
    let begin = (1..=lags_max.saturating_sub(quiet) + 1)
        .find(|begin| !(*begin..(begin + quiet).min(lags_max + 1)).any(|lag| loud(&lag)));
    let last = match begin {
        Some(begin) => begin - 1,
        None => (1..=lags_max).rev().find(loud).unwrap_or(1),
    };
    let width = (2 * last.max(1)).min(lags_max);
    let mut spectrum = variance;
    let mut slope = 0.0;
    for (lag, covariance) in covariances.iter().enumerate().take(width + 1).skip(1) {
        let weighted = 2.0 * flat_top(lag as f64 / width as f64) * covariance;
        spectrum += weighted;
        slope += weighted * lag as f64;
    }
    let most = (3.0 * n.sqrt()).min(n / 3.0).ceil();
    if spectrum <= 0.0 {
        return Dependence::NONE;
    }
    // D of the stationary bootstrap, corrected: 2·g(0)².
    let length = (2.0 * slope.powi(2) / (2.0 * spectrum.powi(2))).cbrt() * n.cbrt();
    let length = length.clamp(1.0, most);
    // Limit of the stationary bootstrap's variance (Politis and Romano 1994, lemma 1).
    let kept = |lag: usize| (1.0 - lag as f64 / n) * (1.0 - 1.0 / length).powi(lag as i32);
    let seen = (1..count).take_while(|lag| kept(*lag) > LEAST_SEEN).map(|lag| 2.0 * kept(lag) * covariance(lag));
    let seen = variance + seen.sum::<f64>();
    // The window considers significant lags only. An autoregressive process with the same correlation of neighbours
    // (with Kendall's small-sample correction) adds longer lags, which matter in a short series.
    let neighbours = covariance(1) / variance;
    let neighbours = (neighbours + (1.0 + 3.0 * neighbours) / n).clamp(0.0, CLOSEST_NEIGHBOURS);
    let autoregressive = variance * (1.0 + neighbours) / (1.0 - neighbours);
    let missed = if seen > 0.0 { (spectrum.max(autoregressive) / seen).clamp(1.0, MOST_MISSED) } else { 1.0 };
    Dependence { length, missed }
}

/// Flat-top lag window: 1 up to a half, then falling to 0.
fn flat_top(share: f64) -> f64 {
    (2.0 * (1.0 - share)).clamp(0.0, 1.0)
}

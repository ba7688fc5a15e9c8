//! Comparison of one run of each side: a bootstrap over the intervals of each run.
//!
//! Response times of neighbouring intervals are correlated, so resamples consist of blocks of random length (Politis
//! and Romano, "The Stationary Bootstrap", JASA 89, 1994). The result applies to these two runs only.

use super::estimate::{LogRatioEstimate, sorted};
use super::{BaselineRatio, ReplicationSettings, Scope, is_usable};
use crate::random::Random;

/// Independent blocks of each side for an interval. With fewer, their variance is unknown.
const BLOCKS_MIN: f64 = 4.0;

pub struct Course<'a> {
    /// One value per interval, from which the block length is computed.
    pub series: &'a [f64],
    pub figure: &'a dyn Fn(&[usize]) -> Option<f64>,
}

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

//! Comparison of one run of each side: a bootstrap over the intervals of each run.
//!
//! Response times of neighbouring intervals are correlated, so resamples consist of blocks of random length (Politis
//! and Romano, "The Stationary Bootstrap", JASA 89, 1994). The result applies to these two runs only, not to future
//! ones.

use super::blocks::dependence;
use super::estimate::{LogRatioEstimate, sorted};
use super::{BaselineRatio, ReplicationSettings, Scope, is_usable};
use crate::random::Random;

/// Minimum number of independent blocks of each side for an interval. With fewer, their variance is unknown.
const BLOCKS_MIN: f64 = 4.0;

/// A run as a series of intervals of equal length.
pub struct Course<'a> {
    /// One value per interval, from which the block length is computed.
    pub series: &'a [f64],
    /// Computes the value of a run that consists of the given intervals.
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

//! How long the blocks of a stationary bootstrap must be.

/// Autocorrelation is looked at until this many lags in a row (Politis and White: K_N) show none.
const QUIET_LAGS: usize = 5;
/// Standard errors below which an autocorrelation is none (their c).
const INSIGNIFICANT: f64 = 2.0;
/// Weight below which a lag adds nothing to the variance of resamples.
const LEAST_SEEN: f64 = 1e-3;
/// The most that resamples are taken to miss; the estimate of a short series can be anything.
const MOST_MISSED: f64 = 4.0;
/// Correlation of neighbours beyond which a series is none of independent blocks anyway.
const CLOSEST_NEIGHBOURS: f64 = 0.95;

/// How the intervals of a run depend on their neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dependence {
    /// Mean length of blocks.
    pub(super) length: f64,
    /// The variance of the mean, as a multiple of what resamples of such blocks have: they break neighbours apart at
    /// their ends, and so show too little.
    pub(super) missed: f64,
}

impl Dependence {
    const NONE: Dependence = Dependence { length: 1.0, missed: 1.0 };
}

/// The mean length of blocks for the stationary bootstrap of the mean of a series (Politis and White, "Automatic
/// Block-Length Selection for the Dependent Bootstrap", Econometric Reviews 23, 2004, with the correction of Patton,
/// Politis and White, 2009); at least 1, at most the lesser of 3·√n and n/3.
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
    // The last lag before `quiet` in a row without correlation; where there is no such place, the last with one.
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
    // What the stationary bootstrap's variance tends to (Politis and Romano 1994, lemma 1).
    let kept = |lag: usize| (1.0 - lag as f64 / n) * (1.0 - 1.0 / length).powi(lag as i32);
    let seen = (1..count).take_while(|lag| kept(*lag) > LEAST_SEEN).map(|lag| 2.0 * kept(lag) * covariance(lag));
    let seen = variance + seen.sum::<f64>();
    // The window sees only what is significant; of a short series that is less than there is. An autoregressive process
    // with the same correlation of neighbours (corrected by Kendall for the length of the series) sees further.
    let neighbours = covariance(1) / variance;
    let neighbours = (neighbours + (1.0 + 3.0 * neighbours) / n).clamp(0.0, CLOSEST_NEIGHBOURS);
    let autoregressive = variance * (1.0 + neighbours) / (1.0 - neighbours);
    let missed = if seen > 0.0 { (spectrum.max(autoregressive) / seen).clamp(1.0, MOST_MISSED) } else { 1.0 };
    Dependence { length, missed }
}

/// The lag window: 1 up to a half, from there on falling to 0.
fn flat_top(share: f64) -> f64 {
    (2.0 * (1.0 - share)).clamp(0.0, 1.0)
}

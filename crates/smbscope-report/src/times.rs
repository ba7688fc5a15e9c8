//! Figures of one of the times, as every document has them: `{count, min, max, mean, stddev, p50, p90, p95, p99, p999}`.

use serde::{Deserialize, Serialize};
use smbscope_model::Nanos;
use smbscope_stats::Figures;

/// Statistics of one of the times in nanoseconds. Standard deviation is that of a sample (n − 1). Percentiles
/// interpolate linearly (Hyndman and Fan 7), are exact up to 10,000 values and have three significant digits above; p50
/// needs 1 value, p90 10, p95 20, p99 100, p999 1000. What too few values support is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: Option<Nanos>,
    /// Largest value.
    pub max: Option<Nanos>,
    /// Arithmetic mean.
    pub mean: Option<Nanos>,
    /// Sample standard deviation.
    pub stddev: Option<Nanos>,
    /// Median.
    pub p50: Option<Nanos>,
    /// 90th percentile.
    pub p90: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
    /// 99.9th percentile.
    pub p999: Option<Nanos>,
}

impl From<Figures> for Times {
    fn from(figures: Figures) -> Times {
        let Figures { count, min, max, mean, stddev, p50, p90, p95, p99, p999, .. } = figures;
        Times { count, min, max, mean, stddev, p50, p90, p95, p99, p999 }
    }
}

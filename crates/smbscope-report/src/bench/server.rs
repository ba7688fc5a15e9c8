//! Server metrics of a load point.

use serde::{Deserialize, Serialize};
use smbscope_model::Timestamp;

/// Server metrics, sampled every second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerLoad {
    /// Source: `this machine`, or the URL of an exporter.
    pub source: String,
    /// Sample times. A sample covers the second before it.
    pub times_ns: Vec<Timestamp>,
    /// Metrics, each with one value per sample time.
    pub metrics: Vec<ServerSeries>,
}

/// A metric of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSeries {
    /// Name: `cpu`, `cpu_busiest`, `disk_queue`, `samba_read`, `samba_read_time` …
    pub metric: String,
    /// Unit: `percent`, `bytes/s`, `bytes`, `1/s`, `ns` or `count`.
    pub unit: String,
    /// Mean of the samples. For times (`ns`), the mean of all operations.
    pub mean: f64,
    /// Largest sample.
    pub max: f64,
    /// Value at each sample time. Null if missing.
    pub values: Vec<Option<f64>>,
}

impl ServerSeries {
    pub fn new(metric: &str, unit: &str, values: Vec<Option<f64>>) -> ServerSeries {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        ServerSeries {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            mean: known.iter().sum::<f64>() / known.len().max(1) as f64,
            max: known.iter().copied().fold(0.0, f64::max),
            values,
        }
    }
}

impl ServerLoad {
    /// Creates the metrics of a load point. The mean of a time is weighted by the operations of each second.
    pub fn new(source: String, times_ns: Vec<Timestamp>, mut metrics: Vec<ServerSeries>) -> ServerLoad {
        let weighted: Vec<Option<f64>> = metrics
            .iter()
            .map(|series| {
                let rate = series.metric.strip_suffix("_time")?;
                let rates = &metrics.iter().find(|other| other.metric == rate)?.values;
                let known = || series.values.iter().zip(rates).filter_map(|(time, rate)| Some(((*time)?, (*rate)?)));
                let count: f64 = known().map(|(_, rate)| rate).sum();
                (count > 0.0).then(|| known().map(|(time, rate)| time * rate).sum::<f64>() / count)
            })
            .collect();
        for (series, mean) in metrics.iter_mut().zip(weighted) {
            series.mean = mean.unwrap_or(series.mean);
        }
        ServerLoad { source, times_ns, metrics }
    }

    pub fn metric(&self, name: &str) -> Option<&ServerSeries> {
        self.metrics.iter().find(|series| series.metric == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 read of 10 ms in the first second and 9 of 20 ms in the third: (10 + 180) / 10 = 19 ms, not 15 ms.
    #[test]
    fn a_mean_time_is_that_of_all_operations() {
        let rates = ServerSeries::new("samba_read", "1/s", vec![Some(1.0), None, Some(9.0)]);
        let times = ServerSeries::new("samba_read_time", "ns", vec![Some(10e6), None, Some(20e6)]);
        let load = ServerLoad::new(
            "this machine".to_owned(),
            vec![Timestamp(1), Timestamp(2), Timestamp(3)],
            vec![rates, times],
        );
        let mean = |name: &str| load.metric(name).map(|series| series.mean);
        assert_eq!((mean("samba_read"), mean("samba_read_time")), (Some(5.0), Some(19e6)));
    }
}

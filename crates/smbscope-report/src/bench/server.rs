//! The server's side of a load point: what it cost the server.

use serde::{Deserialize, Serialize};
use smbscope_model::Timestamp;

/// Metrics of the server, a sample a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerLoad {
    /// Where they come from: `this machine`, or the URL of an exporter.
    pub source: String,
    /// When the samples were taken; each is about the second before.
    pub times_ns: Vec<Timestamp>,
    /// Each metric.
    pub metrics: Vec<ServerSeries>,
}

/// A metric of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSeries {
    /// What: `cpu`, `cpu_busiest`, `disk_queue` …
    pub metric: String,
    /// In what: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
    pub unit: String,
    /// The average of the samples.
    pub mean: f64,
    /// The greatest sample.
    pub max: f64,
    /// A value for each time; null where there is none.
    pub values: Vec<Option<f64>>,
}

impl ServerSeries {
    /// With the average and the greatest of the values.
    pub fn of(metric: &str, unit: &str, values: Vec<Option<f64>>) -> ServerSeries {
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
    /// A metric, where it was measured.
    pub fn metric(&self, name: &str) -> Option<&ServerSeries> {
        self.metrics.iter().find(|series| series.metric == name)
    }
}

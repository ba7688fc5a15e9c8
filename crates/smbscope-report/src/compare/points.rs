//! Load points of several ramps with the same number of users: throughput, response times and server metrics.

use super::cells::row_of;
use super::ramps::{row, row_of_group};
use super::{ComparisonCell, Ratio};
use crate::bench::{BenchDocument, BenchRun};
use crate::json::entries::StatisticsEntry;
use serde::Serialize;
use smbscope_model::{CommandGroup, Nanos};
use std::collections::BTreeSet;

/// Load points with the same number of users.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedLoadPoint {
    /// Concurrent users.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// All headline groups. One cell per column. Null if it has no such load point.
    pub total: Vec<Option<PointCell>>,
    /// By group. `Other` is followed by its parts.
    pub groups: Vec<PointGroup>,
    /// Server metrics. Empty if unknown.
    pub server: Vec<PointMetric>,
}

/// A group at a load point.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointGroup {
    /// Name of the group.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub group: String,
    /// Group that includes this one.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::part_of"))]
    pub part_of: Option<String>,
    /// One cell per column. Null if it has no such load point or group.
    pub cells: Vec<Option<PointCell>>,
}

/// Figures of a group at a load point of one ramp.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointCell {
    /// Answered commands per second.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub per_second: Option<f64>,
    /// Ratio of `per_second` to the first ramp.
    pub per_second_ratio: Option<Ratio>,
    /// Bytes read and written per second. For `Read` only bytes read, for `Write` only bytes written, for other groups
    /// null.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub bytes_per_second: Option<f64>,
    /// Ratio of `bytes_per_second` to the first ramp.
    pub bytes_per_second_ratio: Option<Ratio>,
    /// Ranges of several runs of the column. Null for a single run.
    pub spread: Option<RepetitionRange>,
    /// Counts and times, with ratios to the first ramp.
    #[serde(flatten)]
    pub cell: ComparisonCell,
}

/// Smallest and largest values of several runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RepetitionRange {
    /// Range of `per_second`.
    pub per_second: Option<(f64, f64)>,
    /// Range of `bytes_per_second`.
    pub bytes_per_second: Option<(f64, f64)>,
    /// Range of the mean response time.
    pub mean: Option<(Nanos, Nanos)>,
    /// Range of the median.
    pub p50: Option<(Nanos, Nanos)>,
    /// Range of the 95th percentile.
    pub p95: Option<(Nanos, Nanos)>,
}

/// A metric of the servers at a load point.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointMetric {
    /// Name: `cpu`, `disk_busiest` …, as in the document of a run.
    pub metric: String,
    /// Unit: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
    pub unit: String,
    /// One cell per column. Null if its server metrics are unknown.
    pub cells: Vec<Option<MetricCell>>,
}

/// A metric of one server at a load point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricCell {
    /// Mean of the samples; of several runs, mean of their means.
    pub mean: f64,
    /// Largest sample; of several runs, mean of their maxima.
    pub max: f64,
    /// Smallest and largest mean of several runs. Null for a single run.
    pub mean_range: Option<(f64, f64)>,
    /// Smallest and largest maximum of several runs. Null for a single run.
    pub max_range: Option<(f64, f64)>,
}

/// Returns the smallest and largest value. None for fewer than two values.
pub(super) fn range<T: Copy>(
    values: impl Iterator<Item = T>,
    before: fn(&T, &T) -> std::cmp::Ordering,
) -> Option<(T, T)> {
    let values: Vec<T> = values.collect();
    let (least, most) = (values.iter().copied().min_by(before)?, values.iter().copied().max_by(before)?);
    (values.len() > 1).then_some((least, most))
}

pub(super) fn points(ramps: &[Option<&BenchDocument>]) -> Vec<ComparedLoadPoint> {
    let loads: BTreeSet<u32> =
        ramps.iter().flatten().flat_map(|document| &document.runs).map(|run| run.users).collect();
    let point = |users: u32| {
        // If a load was run several times, the last run counts.
        let runs: Vec<Option<&BenchRun>> = ramps
            .iter()
            .map(|document| document.and_then(|document| document.runs.iter().rev().find(|run| run.users == users)))
            .collect();
        let cells = |of: &dyn Fn(&BenchRun) -> Option<StatisticsEntry>,
                     bytes: &dyn Fn(&BenchRun) -> Option<u64>|
         -> Vec<Option<PointCell>> {
            let rows: Vec<Option<StatisticsEntry>> = runs.iter().map(|run| run.and_then(of)).collect();
            with_rates(row_of(rows.iter().map(Option::as_ref)), &runs, bytes)
        };
        let groups = crate::names::groups().map(|(name, part_of, _)| PointGroup {
            group: name.to_owned(),
            part_of: part_of.map(str::to_owned),
            cells: cells(&|run| run.group(name).map(|group| row_of_group(run, group)), &|run| match name {
                name if name == CommandGroup::Read.name() => Some(run.bytes_read),
                name if name == CommandGroup::Write.name() => Some(run.bytes_written),
                _ => None,
            }),
        });
        ComparedLoadPoint {
            users,
            total: cells(&|run| Some(row(run.headline().count, run.errors.clone(), run.headline())), &|run| {
                Some(run.bytes_read.saturating_add(run.bytes_written))
            }),
            groups: groups.filter(|group| group.cells.iter().any(Option::is_some)).collect(),
            server: metrics(&runs),
        }
    };
    loads.into_iter().map(point).collect()
}

fn with_rates(
    cells: Vec<Option<ComparisonCell>>,
    runs: &[Option<&BenchRun>],
    bytes: &dyn Fn(&BenchRun) -> Option<u64>,
) -> Vec<Option<PointCell>> {
    let rates = |of: &dyn Fn(usize, &BenchRun) -> Option<u64>| -> Vec<Option<f64>> {
        let rate = |(at, run): (usize, &Option<&BenchRun>)| Some(of(at, (*run)?)? as f64 / (*run)?.seconds()?);
        runs.iter().enumerate().map(rate).collect()
    };
    let commands = rates(&|at, _| Some(cells[at].as_ref()?.count));
    let bytes = rates(&|_, run| bytes(run));
    let ratio = |rates: &[Option<f64>], at: usize| {
        if at == 0 { None } else { Ratio::new(rates[at], rates.first().copied().flatten()) }
    };
    let made = cells.into_iter().enumerate().map(|(at, cell)| {
        Some(PointCell {
            per_second: commands[at],
            per_second_ratio: ratio(&commands, at),
            bytes_per_second: bytes[at],
            bytes_per_second_ratio: ratio(&bytes, at),
            spread: None,
            cell: cell?,
        })
    });
    made.collect()
}

fn metrics(runs: &[Option<&BenchRun>]) -> Vec<PointMetric> {
    let all = || runs.iter().flatten().flat_map(|run| &run.server).flat_map(|server| &server.metrics);
    let mut known: Vec<(&str, &str)> = Vec::new();
    for series in all() {
        if known.iter().all(|(metric, _)| *metric != series.metric) {
            known.push((&series.metric, &series.unit));
        }
    }
    let cell = |run: &Option<&BenchRun>, metric: &str| {
        let series = (*run)?.server.as_ref()?.metric(metric)?;
        Some(MetricCell { mean: series.mean, max: series.max, mean_range: None, max_range: None })
    };
    let metric = |(metric, unit): (&str, &str)| PointMetric {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        cells: runs.iter().map(|run| cell(run, metric)).collect(),
    };
    known.into_iter().map(metric).collect()
}

//! Comparison of ramps: throughput, response times and server metrics at load points with the same number of users.
//!
//! The rest of a comparison treats a ramp as a capture of one load point, the highest that all ramps have.

use super::cells::row_of;
use super::saved::{ComparableReport, LISTED_MAX, together};
use super::{ComparisonCell, ComparisonColumn, ComparisonInput, Overview, Ratio};
use crate::bench::{self, BenchDocument, BenchRun, LoopModel};
use crate::format::counted;
use crate::json::entries;
use serde::Serialize;
use smbscope_model::{CommandGroup, Nanos, Protocol, Timestamp};
use smbscope_stats::{CommandStatistics, DurationStatistics};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
pub struct Given {
    /// Name, unique among the columns.
    pub name: String,
    /// Sources and contents of the runs, at least one. A source is the argument as given, or a directory in it.
    pub runs: Vec<(String, ComparableDocument)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Single<'a> {
    name: &'a str,
    source: &'a str,
    content: &'a ComparableDocument,
}

impl Given {
    pub(super) fn singles(&self) -> impl Iterator<Item = Single<'_>> {
        self.runs.iter().map(|(source, content)| Single { name: &self.name, source, content })
    }
}

/// Returns the load point to compare: the one that all ramps have, otherwise the last.
fn chosen(document: &BenchDocument, common: Option<u32>) -> Option<&BenchRun> {
    document.runs.iter().rfind(|run| Some(run.users) == common).or(document.runs.last())
}

pub(super) fn compared_runs<'a>(singles: &[Single<'a>]) -> Vec<Option<&'a BenchRun>> {
    let ramps: Vec<Option<&BenchDocument>> = singles.iter().map(Single::ramp).collect();
    let common = highest_common(&ramps);
    ramps.into_iter().map(|document| chosen(document?, common)).collect()
}

impl<'a> Single<'a> {
    pub(super) fn content(&self) -> &'a ComparableDocument {
        self.content
    }

    fn ramp(&self) -> Option<&'a BenchDocument> {
        match self.content {
            ComparableDocument::Ramp(document) => Some(document),
            ComparableDocument::Report(_) => None,
        }
    }

    pub(super) fn started(&self) -> Option<Timestamp> {
        match self.content {
            ComparableDocument::Ramp(document) => Some(document.started_ns),
            ComparableDocument::Report(_) => None,
        }
    }
}

#[derive(Debug, Clone)]
pub enum ComparableDocument {
    Report(Box<ComparableReport>),
    Ramp(Box<BenchDocument>),
}

impl ComparableDocument {
    pub fn by(&self) -> &[String] {
        let slices = match self {
            ComparableDocument::Report(report) => report.slices.as_ref(),
            ComparableDocument::Ramp(ramp) => {
                ramp.runs.iter().find_map(|run| run.counted.as_ref()).and_then(|counted| counted.slices.as_ref())
            }
        };
        slices.map_or(&[], |slices| &slices.by)
    }
}

/// Ramps side by side. Cells are in the order of the comparison's columns. Captures have none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ramps {
    /// Data of each ramp. Null for columns that are not ramps.
    pub columns: Vec<Option<Ramp>>,
    /// Loads that occur in any ramp, ascending.
    pub points: Vec<ComparedLoadPoint>,
}

/// Data of one ramp.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ramp {
    /// Users of the load point used in the rest of the comparison.
    pub users: u32,
    /// Name of the workload.
    pub workload: String,
    /// `closed loop`, or `open loop` with its rate.
    pub schedule: String,
    /// Overall response time from the document of the ramp.
    pub overall_response_time_ns: Option<Nanos>,
    /// Highest load that meets the criterion of the ramp. Null if unknown.
    pub capacity: Option<u32>,
    /// Command that measures the load point again.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(super) again: Option<String>,
    /// Path of the load point's capture.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(super) capture: Option<String>,
}

/// Converts all columns to reports, and returns the ramps among them.
pub(super) fn resolved(given: &[Single<'_>]) -> (Vec<ComparisonInput>, Option<Ramps>) {
    let ramps: Vec<Option<&BenchDocument>> = given.iter().map(Single::ramp).collect();
    let common = highest_common(&ramps);
    let inputs = given.iter().map(|given| {
        let report = match given.content {
            ComparableDocument::Report(report) => (**report).clone(),
            ComparableDocument::Ramp(document) => report_of(document, chosen(document, common)),
        };
        ComparisonInput { name: given.name.to_owned(), source: given.source.to_owned(), report }
    });
    let columns: Vec<Option<Ramp>> = ramps
        .iter()
        .zip(given)
        .map(|(document, given)| {
            let document = (*document)?;
            let run = chosen(document, common);
            let directory = given.source.strip_suffix("run.json").unwrap_or(given.source);
            let directory = if directory.is_empty() { "." } else { directory };
            Some(Ramp {
                again: run.and_then(|run| bench::again(document, run)),
                capture: run.and_then(|run| bench::capture_of(directory, run)),
                users: run.map_or(0, |run| run.users),
                workload: document.workload.name.clone(),
                schedule: schedule(document),
                overall_response_time_ns: document.overall_response_time_ns,
                capacity: document.capacity.as_ref().and_then(|capacity| capacity.users),
            })
        })
        .collect();
    let found = columns.iter().any(Option::is_some);
    (inputs.collect(), found.then(|| Ramps { columns, points: points(&ramps) }))
}

fn highest_common(ramps: &[Option<&BenchDocument>]) -> Option<u32> {
    let loads =
        ramps.iter().flatten().map(|document| document.runs.iter().map(|run| run.users).collect::<BTreeSet<u32>>());
    loads.reduce(|common, loads| &common & &loads)?.last().copied()
}

pub(super) fn schedule(document: &BenchDocument) -> String {
    match document.settings.schedule {
        LoopModel::Closed { think_ns: Nanos(0) } => "closed loop".to_owned(),
        LoopModel::Closed { think_ns } => format!("closed loop, {think_ns} between operations"),
        LoopModel::Open { .. } if document.is_ramp_of_rates() => {
            format!("open loop, {:?} operations/s", document.settings.rates)
        }
        LoopModel::Open { rate, per_user: true, .. } => format!("open loop, {rate} operations/s of each user"),
        LoopModel::Open { rate, .. } => format!("open loop, {rate} operations/s"),
    }
}

fn row(count: u64, errors: BTreeMap<String, u64>, times: &DurationStatistics) -> CommandStatistics {
    CommandStatistics { count, timed: times.count, errors, response_time: *times, ..CommandStatistics::default() }
}

fn report_of(document: &BenchDocument, run: Option<&BenchRun>) -> ComparableReport {
    let runs = || run.into_iter();
    let users = run.map_or(0, |run| run.users);
    let answered = runs().map(|run| run.operations).sum();
    let unanswered: u64 = runs().map(|run| run.unanswered).sum();
    let groups: Vec<entries::GroupEntry> = runs().flat_map(groups).collect();
    let overview = Overview {
        elapsed_ns: run.map(|run| run.duration_ns),
        commands: super::sum([answered, unanswered].into_iter()),
        timed: answered,
        untimed: unanswered,
        errors: super::sum(groups.iter().map(|group| group.row.errors())),
        bytes_read: runs().map(|run| run.bytes_read).sum(),
        bytes_written: runs().map(|run| run.bytes_written).sum(),
        job_elapsed_ns: run.and_then(|run| run.jobs.as_ref()?.elapsed.mean),
        ..Overview::default()
    };
    // All users have the same number of connections, with the same dialect.
    let sessions = u64::from(users) * u64::from(document.settings.sessions_per_user);
    let dialects = (sessions > 0).then(|| (document.target.dialect.clone(), sessions));
    let found = run.and_then(|run| run.counted.as_ref());
    ComparableReport {
        negotiated: super::saved::Negotiated::default(),
        title: document.title.clone(),
        filter: None,
        version: document.generator.version.clone(),
        captures: Vec::new(),
        quality: match run {
            Some(_) => format!("Measured inside the client, at {}.", counted(users.into(), "user", "users")),
            None => "Nothing was measured.".to_owned(),
        },
        encrypted_frames: 0,
        overview: overview.completed(dialects.into_iter().collect()),
        answer: run.and_then(|run| run.answer.clone()).unwrap_or_default(),
        headline: run.map_or_else(CommandStatistics::default, |run| {
            row(run.headline().count, run.errors.clone(), run.headline())
        }),
        groups,
        commands: runs().flat_map(commands).collect(),
        heatmap: found.and_then(|counted| counted.heatmap.clone().if_any()),
        slowest: found.map(|counted| counted.slowest.clone()).unwrap_or_default(),
        files: found.map(|counted| counted.files.iter().take(LISTED_MAX).cloned().collect()).unwrap_or_default(),
        slices: found.and_then(|counted| counted.slices.clone()),
        warnings: document.warnings.clone(),
    }
}

/// Returns the figures of a group, with the errors of its commands and of the commands in its parts.
fn row_of_group(run: &BenchRun, group: &bench::MeasuredGroup) -> CommandStatistics {
    let is_part = |name: &str| run.group(name).is_some_and(|part| part.part_of.as_ref() == Some(&group.group));
    let members = run.commands.iter().filter(|command| command.group == group.group || is_part(&command.group));
    row(group.operations, add_up(members.map(|command| &command.errors)), &group.times.client)
}

fn groups(run: &BenchRun) -> Vec<entries::GroupEntry> {
    let one = |group: &bench::MeasuredGroup, parts: Vec<entries::GroupEntry>| {
        let row = row_of_group(run, group);
        let bench::MeasuredGroup { group, headline, .. } = group;
        let counted = run.counted.as_ref().and_then(|counted| entries::GroupEntry::find(&counted.groups, group));
        let cumulative = counted.map(|counted| counted.cumulative.clone()).unwrap_or_default();
        entries::GroupEntry { group: group.clone(), headline: *headline, row, cumulative, parts }
    };
    let whole = run.groups.iter().filter(|group| group.part_of.is_none());
    let parts_of = |name: &str| {
        let parts = run.groups.iter().filter(|group| group.part_of.as_deref() == Some(name));
        parts.map(|part| one(part, Vec::new())).collect()
    };
    whole.map(|group| one(group, parts_of(&group.group))).collect()
}

/// Merges the subcommands of a command, as in a report. Percentiles of several can't be combined and stay None.
fn commands(run: &BenchRun) -> Vec<entries::CommandEntry> {
    let mut kinds: BTreeMap<(&str, &str, bool), Vec<&bench::MeasuredCommand>> = BTreeMap::new();
    let waiting = CommandGroup::Waiting.name();
    for command in &run.commands {
        let key = (command.protocol.as_str(), command.command.as_str(), command.group == waiting);
        kinds.entry(key).or_default().push(command);
    }
    let merged = kinds.into_iter().map(|((protocol, name, _), parts)| {
        let rows: Vec<CommandStatistics> =
            parts.iter().map(|part| row(part.count, part.errors.clone(), &part.times.client)).collect();
        let all = together(&rows.iter().collect::<Vec<_>>());
        let subcommands = parts.iter().zip(rows).filter_map(|(part, row)| {
            let subcommand = part.subcommand.clone()?;
            Some(entries::SubcommandEntry { subcommand, row })
        });
        let groups = CommandGroup::ALL.into_iter().filter(|group| parts.iter().any(|part| part.group == group.name()));
        entries::CommandEntry {
            protocol: if protocol == "SMB1" { Protocol::Smb1 } else { Protocol::Smb2 },
            command: name.to_owned(),
            groups: groups.collect(),
            row: all,
            subcommands: subcommands.collect(),
            apart: Vec::new(),
        }
    });
    merged.collect()
}

fn add_up<'a>(counts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (status, count) in counts.flatten() {
        let sum = sums.entry(status.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    sums
}

impl Ramps {
    pub(super) fn named<'a>(
        &'a self,
        columns: &'a [ComparisonColumn],
    ) -> impl Iterator<Item = (usize, &'a ComparisonColumn, &'a Ramp)> {
        let found = self.columns.iter().zip(columns).enumerate();
        found.filter_map(|(at, (ramp, column))| Some((at, column, ramp.as_ref()?)))
    }
}

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

fn points(ramps: &[Option<&BenchDocument>]) -> Vec<ComparedLoadPoint> {
    let loads: BTreeSet<u32> =
        ramps.iter().flatten().flat_map(|document| &document.runs).map(|run| run.users).collect();
    let point = |users: u32| {
        // If a load was run several times, the last run counts.
        let runs: Vec<Option<&BenchRun>> = ramps
            .iter()
            .map(|document| document.and_then(|document| document.runs.iter().rev().find(|run| run.users == users)))
            .collect();
        let cells = |of: &dyn Fn(&BenchRun) -> Option<CommandStatistics>,
                     bytes: &dyn Fn(&BenchRun) -> Option<u64>|
         -> Vec<Option<PointCell>> {
            let rows: Vec<Option<CommandStatistics>> = runs.iter().map(|run| run.and_then(of)).collect();
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

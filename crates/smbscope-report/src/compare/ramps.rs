//! Comparison of ramps: throughput, response times and server metrics at load points with the same number of users.
//!
//! The rest of a comparison covers one load point per ramp, the highest one that all ramps have. There a ramp is
//! treated as a capture, and can be compared with captures.

use super::points::{ComparedLoadPoint, points};
use super::saved::{ComparableReport, LISTED_MAX};
use super::{ComparisonColumn, ComparisonInput, NoteKind, Overview};
use crate::bench::{self, BenchDocument, BenchRun, LoopModel};
use crate::format::counted;
use crate::json::entries::{self, StatisticsEntry};
use serde::Serialize;
use smbscope_model::{CommandGroup, Nanos, Protocol, Timestamp};
use smbscope_stats::DurationStatistics;
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

/// Returns the columns whose differences may not come from the server: another workload, or times measured in another
/// place.
pub(super) fn differences(given: &[Given]) -> Vec<(usize, NoteKind, String)> {
    let Some((base, others)) = given.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (column, other) in (1..).zip(others) {
        let name = &base.name;
        let (Some((_, base)), Some((_, other))) = (base.runs.first(), other.runs.first()) else { continue };
        match (base, other) {
            (ComparableDocument::Ramp(base), ComparableDocument::Ramp(ramp)) => {
                found.extend(load(ramp, base, name).map(|text| (column, NoteKind::Mix, text)));
            }
            (ComparableDocument::Report(_), ComparableDocument::Report(_)) => {}
            (ComparableDocument::Report(_), ComparableDocument::Ramp(_)) => {
                let text = format!("times taken inside the client, and those of {name} on the wire: {ELSEWHERE}");
                found.push((column, NoteKind::Place, text));
            }
            (ComparableDocument::Ramp(_), ComparableDocument::Report(_)) => {
                let text = format!("times taken on the wire, and those of {name} inside the client: {ELSEWHERE}");
                found.push((column, NoteKind::Place, text));
            }
        }
    }
    found
}

const ELSEWHERE: &str = "inside the client the time of its own system and of its network counts too";

fn load(ramp: &BenchDocument, base: &BenchDocument, name: &str) -> Option<String> {
    let load = |ramp: &BenchDocument| format!("{}, {}", ramp.workload.name, schedule(ramp));
    let users = |ramp: &BenchDocument| ramp.runs.iter().map(|run| run.users).collect::<BTreeSet<u32>>();
    let definitions = (&ramp.workload.sha256, &base.workload.sha256);
    if load(ramp) != load(base) {
        Some(format!("another load than {name}: {}, and there {}", load(ramp), load(base)))
    } else if let (Some(own), Some(bases)) = definitions
        && own != bases
    {
        let workload = &ramp.workload.name;
        Some(format!("another workload than {name}: both are called {workload}, and their definitions differ"))
    } else if ramp.workload.seed != base.workload.seed {
        Some(format!("another seed than {name}: the order, places and sizes of operations differ"))
    } else if users(ramp) != users(base) {
        Some(format!("other load points than {name}: overall response times of different ranges do not compare"))
    } else {
        None
    }
}

pub(super) fn row(count: u64, errors: BTreeMap<String, u64>, times: &DurationStatistics) -> StatisticsEntry {
    StatisticsEntry { count, timed: times.count, errors, response_time: *times, ..StatisticsEntry::default() }
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
        headline: run
            .map_or_else(StatisticsEntry::default, |run| row(run.headline().count, run.errors.clone(), run.headline())),
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
pub(super) fn row_of_group(run: &BenchRun, group: &bench::MeasuredGroup) -> StatisticsEntry {
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

/// Merges the subcommands of a command, as a report has them. Percentiles of several subcommands can't be combined and
/// stay None.
fn commands(run: &BenchRun) -> Vec<entries::CommandEntry> {
    let mut kinds: BTreeMap<(&str, &str, bool), Vec<&bench::MeasuredCommand>> = BTreeMap::new();
    let waiting = CommandGroup::Waiting.name();
    for command in &run.commands {
        let key = (command.protocol.as_str(), command.command.as_str(), command.group == waiting);
        kinds.entry(key).or_default().push(command);
    }
    let merged = kinds.into_iter().map(|((protocol, name, _), parts)| {
        let rows: Vec<StatisticsEntry> =
            parts.iter().map(|part| row(part.count, part.errors.clone(), &part.times.client)).collect();
        let all = StatisticsEntry::together(&rows.iter().collect::<Vec<_>>());
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

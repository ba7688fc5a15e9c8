//! Comparison of captures, saved reports and ramps side by side, with the certainty of each difference, and its document
//! `smbscope.compare/1`, described by `schema/smbscope.compare-1.schema.json`.
//!
//! Every column is read from a `smbscope.report/1` document, saved or just made, so that a capture and its saved report
//! compare as equal. The first column is the baseline. A ratio is a column's value divided by the baseline's.

mod answer;
mod cells;
mod limit;
mod notes;
mod ramps;
mod repetitions;
mod saved;
mod significance;
mod text;

pub use answer::Compared;
pub use cells::{Certainty, ComparisonCell, Conclusion, ConfidenceInterval, Ratio, Ratios, ResponseTime};
pub use limit::{Judged, Judgement, NoFigure, RatioLimit, judge};
pub use notes::{ComparisonNote, FEW, MIX_PERCENT, NoteKind, UNTIMED_PERCENT};
pub use ramps::{
    ComparableDocument, ComparedLoadPoint, Given, MetricCell, PointCell, PointGroup, PointMetric, Ramp, Ramps,
    RepetitionRange,
};
pub use saved::ComparableReport;
pub use text::{markdown, render};

use crate::Answer;
use crate::document::{Generator, write_indented};
use crate::json::entries::EntityEntry;
use crate::json::listings::{SliceEntryKey, SliceFigures, SlowExchange};
use cells::{row_of, with_ratios};
use ramps::Single;
use repetitions::ColumnRuns;
use saved::Negotiated;
use serde::Serialize;
use smbscope_model::{CaptureInfo, Nanos, Protocol};
use smbscope_stats::{FileKey, HeatMap};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Debug, Clone)]
pub struct ComparisonInput {
    /// Name, unique among the inputs.
    pub name: String,
    pub source: String,
    pub report: ComparableReport,
}

/// Reports side by side. Cells are in the order of the columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Title given by the user.
    pub title: Option<String>,
    /// Conclusions: one for each column but the first.
    pub answers: Vec<Compared>,
    /// Compared captures, reports and ramps. The first is the baseline.
    #[cfg_attr(feature = "schema", schemars(length(min = 2)))]
    pub columns: Vec<ComparisonColumn>,
    /// All groups without expected waits and encrypted frames, in total.
    pub headline: Headline,
    /// Groups that occur in any column, in the order of the report; `Other` is followed by its parts.
    pub groups: Vec<ComparedGroup>,
    /// Commands that occur in any column, by longest total response time in any of them. The expected waits of a
    /// command are a separate entry.
    pub commands: Vec<ComparedCommand>,
    /// Commands grouped by `--by`. Null without it.
    pub slices: Option<ComparedSlices>,
    /// Ramps among the columns, by load point. The rest of the comparison covers one load point of each. Null without
    /// ramps.
    pub ramps: Option<Ramps>,
    /// Caveats, one sentence each.
    pub notes: Vec<ComparisonNote>,
}

/// A column of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonColumn {
    /// Name, unique among the columns.
    pub name: String,
    /// Argument as given. With several runs, the argument of the run whose lists and charts are used.
    pub source: String,
    /// Number of runs in the column. With several, times and rates are geometric means, counts are arithmetic means,
    /// and lists and charts are from the run with the median of the mean response times.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub runs: u32,
    /// Title of the report.
    pub title: Option<String>,
    /// Filter of the report. Null if it covers all exchanges.
    pub filter: Option<String>,
    /// Version of smbscope that wrote the report.
    pub version: String,
    /// Captures of the report.
    pub captures: Vec<CaptureInfo>,
    /// Coverage of the capture in one sentence.
    pub quality: String,
    /// Totals of the capture.
    pub overview: Overview,
    /// Response times over time, as in a report. Null if unknown.
    pub(crate) heatmap: Option<HeatMap>,
    /// The slowest commands, slowest first, at most 20.
    pub(crate) slowest: Vec<SlowExchange>,
    /// Files with the longest total response time, at most 20. The rest is not summed up.
    pub(crate) files: Vec<EntityEntry<FileKey>>,
    /// Diagnosis of the column. Causes that differ from the baseline are reported in `answers`.
    #[serde(skip)]
    pub(crate) answer: Answer,
    /// Limits and capabilities. Those that differ from the baseline are reported in `answers`.
    #[serde(skip)]
    negotiated: Negotiated,
}

/// Totals of a capture.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overview {
    /// Time from the first to the last packet.
    pub elapsed_ns: Option<Nanos>,
    /// Commands of all groups.
    pub commands: u64,
    /// Commands with a response time.
    pub timed: u64,
    /// Commands that should have a response time but couldn't be timed.
    pub untimed: u64,
    /// Error responses.
    pub errors: u64,
    /// Connections that carried SMB.
    pub connections: u64,
    /// Bytes of successful reads.
    pub bytes_read: u64,
    /// Bytes of successful writes.
    pub bytes_written: u64,
    /// Bytes read and written per second.
    pub bytes_per_second: Option<f64>,
    /// Commands of all groups per second.
    pub commands_per_second: Option<f64>,
    /// Mean duration of a job, a complete pass of a workload that has an end. Null without jobs.
    pub job_elapsed_ns: Option<Nanos>,
    /// Commands of all groups per 1,000,000 bytes read and written. Null without data.
    pub commands_per_megabyte: Option<f64>,
    /// Round trips that clients waited for one after the other (`time_split.round_trips` of a report), per file or
    /// folder that they named. Null if names are unknown or not all listed.
    pub round_trips_per_file: Option<f64>,
    /// Connections that carried SMB, per client address. Null if unknown.
    pub connections_per_client: Option<f64>,
    /// Connections by dialect, most frequent first; unknown dialects last.
    pub dialects: Vec<DialectCount>,
    /// Ratios to the baseline. Null in the baseline.
    pub ratios: Option<OverviewRatios>,
}

/// Connections of one dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DialectCount {
    /// Name of the dialect. Null if the negotiation was not captured.
    pub dialect: Option<String>,
    /// Number of connections.
    pub connections: u64,
}

/// Ratios of the totals to the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverviewRatios {
    /// Ratio of `bytes_per_second`.
    pub bytes_per_second: Option<Ratio>,
    /// Ratio of `commands_per_second`.
    pub commands_per_second: Option<Ratio>,
    /// Ratio of `job_elapsed_ns`.
    pub job_elapsed: Option<Ratio>,
    /// Ratio of `commands_per_megabyte`.
    pub commands_per_megabyte: Option<Ratio>,
    /// Ratio of `round_trips_per_file`.
    pub round_trips_per_file: Option<Ratio>,
    /// Ratio of `connections_per_client`.
    pub connections_per_client: Option<Ratio>,
}

impl OverviewRatios {
    /// `ratio` compares one figure with the baseline's.
    fn new(ratio: impl Fn(fn(&Overview) -> Option<f64>) -> Option<Ratio>) -> OverviewRatios {
        OverviewRatios {
            bytes_per_second: ratio(|overview| overview.bytes_per_second),
            commands_per_second: ratio(|overview| overview.commands_per_second),
            job_elapsed: ratio(Overview::job_elapsed),
            commands_per_megabyte: ratio(|overview| overview.commands_per_megabyte),
            round_trips_per_file: ratio(|overview| overview.round_trips_per_file),
            connections_per_client: ratio(|overview| overview.connections_per_client),
        }
    }

    /// The ratios of [`Overview::per_unit`].
    fn per_unit_mut(&mut self) -> [&mut Option<Ratio>; 3] {
        [&mut self.commands_per_megabyte, &mut self.round_trips_per_file, &mut self.connections_per_client]
    }
}

/// Total of the headline groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// One cell per column. Null if it has none of these commands.
    pub cells: Vec<Option<ComparisonCell>>,
}

/// A group of commands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedGroup {
    /// Name of the group.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub group: String,
    /// Group that includes this one.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::part_of"))]
    pub part_of: Option<String>,
    /// Counts in the headline.
    pub headline: bool,
    /// One cell per column. Null if it has none.
    pub cells: Vec<Option<ComparisonCell>>,
    /// Cumulative distribution of response times per column, as in a report. Empty if unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::cumulatives"))]
    pub cumulative: Vec<Vec<(Nanos, f64)>>,
}

/// A command, or equivalent commands of SMB1 and SMB2.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedCommand {
    /// Protocol of the command.
    pub protocol: Protocol,
    /// Name in the specification, or the code in hexadecimal.
    pub command: String,
    /// The entry holds the command's expected waits.
    pub waiting: bool,
    /// Commands and SMB1 subcommands per column, if the entry combines equivalent commands of SMB1 and SMB2 under the
    /// SMB2 name. Null for all other entries.
    pub members: Option<Vec<Vec<String>>>,
    /// One cell per column. Null if it has none.
    pub cells: Vec<Option<ComparisonCell>>,
}

impl Comparison {
    pub fn new(title: Option<String>, inputs: &[ComparisonInput]) -> Comparison {
        Comparison::of_inputs(title, inputs).answered()
    }

    fn of_inputs(title: Option<String>, inputs: &[ComparisonInput]) -> Comparison {
        let groups = groups(inputs);
        let rows = inputs.iter().map(|input| Some(&input.report.headline));
        let mut columns: Vec<ComparisonColumn> = inputs.iter().map(ComparisonColumn::new).collect();
        if let Some((base, others)) = columns.split_first_mut() {
            others.iter_mut().for_each(|column| column.overview.compare(&base.overview));
        }
        Comparison {
            title,
            answers: Vec::new(),
            columns,
            headline: Headline { cells: row_of(rows) },
            notes: notes::notes(inputs, &groups),
            groups,
            commands: commands(inputs),
            slices: compared_slices(inputs),
            ramps: None,
        }
    }

    pub fn of_all(title: Option<String>, given: &[Given]) -> Comparison {
        let singles: Vec<Single<'_>> = given.iter().flat_map(Given::singles).collect();
        let (inputs, ramps) = ramps::resolved(&singles);
        let sides = ColumnRuns::new(given, &singles);
        let mut comparison = sides.folded(Comparison { ramps, ..Comparison::of_inputs(title, &inputs) });
        // Differences in the workload or place of measurement come before their consequences.
        comparison.notes.extend(notes::load_differences(given));
        comparison.notes.extend(notes::setup_differences(given));
        comparison.notes.sort_by_key(|note| {
            let asked = matches!(note.kind, NoteKind::Mix | NoteKind::Place);
            (note.kind != NoteKind::Setup, note.column, !asked)
        });
        comparison.answered()
    }

    fn answered(mut self) -> Comparison {
        significance::headline(&mut self);
        significance::adjust(&mut self);
        Comparison { answers: answer::answers(&self), ..self }
    }
}

impl ComparisonColumn {
    fn new(input: &ComparisonInput) -> ComparisonColumn {
        let report = &input.report;
        ComparisonColumn {
            name: input.name.clone(),
            source: input.source.clone(),
            runs: 1,
            title: report.title.clone(),
            filter: report.filter.clone(),
            version: report.version.clone(),
            captures: report.captures.clone(),
            quality: report.quality.clone(),
            overview: report.overview.clone(),
            heatmap: report.heatmap.clone(),
            slowest: report.slowest.clone(),
            files: report.files.clone(),
            answer: report.answer.clone(),
            negotiated: report.negotiated.clone(),
        }
    }
}

impl Overview {
    fn job_elapsed(&self) -> Option<f64> {
        self.job_elapsed_ns.map(|elapsed| elapsed.0 as f64)
    }

    /// Returns the figures that don't depend on the length of the captures: labels, values and ratios to the baseline.
    fn per_unit(&self) -> [(&'static str, Option<f64>, Option<Ratio>); 3] {
        let ratio = |of: fn(&OverviewRatios) -> Option<Ratio>| self.ratios.as_ref().and_then(of);
        [
            ("Commands per MB", self.commands_per_megabyte, ratio(|ratios| ratios.commands_per_megabyte)),
            ("Round trips per file", self.round_trips_per_file, ratio(|ratios| ratios.round_trips_per_file)),
            ("Connections per client", self.connections_per_client, ratio(|ratios| ratios.connections_per_client)),
        ]
    }

    fn compare(&mut self, base: &Overview) {
        self.ratios = Some(OverviewRatios::new(|figure| Ratio::new(figure(self), figure(base))));
    }
}

fn groups(inputs: &[ComparisonInput]) -> Vec<ComparedGroup> {
    let of_all = crate::names::groups().map(|(name, part_of, headline)| {
        let found = || inputs.iter().map(|input| input.report.group(name));
        ComparedGroup {
            group: name.to_owned(),
            part_of: part_of.map(str::to_owned),
            headline,
            cells: row_of(found().map(|group| group.map(|group| &group.row))),
            cumulative: found().map(|group| group.map(|group| group.cumulative.clone()).unwrap_or_default()).collect(),
        }
    });
    of_all.filter(|group| group.cells.iter().any(Option::is_some)).collect()
}

fn commands(inputs: &[ComparisonInput]) -> Vec<ComparedCommand> {
    let mut commands = saved::command_rows(inputs);
    let longest = |command: &ComparedCommand| {
        let sums = command.cells.iter().flatten().filter_map(|cell| cell.response_time.sum);
        sums.max()
    };
    commands.sort_by_key(|command| (command.waiting, Reverse(longest(command))));
    commands
}

/// Adds counts, saturating because the numbers of a saved file may be arbitrary.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

pub const SCHEMA: &str = "smbscope.compare/1";

/// Output of `smbscope compare --format json`: captures, saved reports and ramps side by side. Times are integers in
/// nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values.
/// Cells are in the order of `columns`. The first column is the baseline, and ratios are relative to it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ComparisonEnvelope<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    generator: Generator,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl<'a> ComparisonEnvelope<'a> {
    pub(crate) fn new(comparison: &'a Comparison, version: &str) -> ComparisonEnvelope<'a> {
        ComparisonEnvelope { schema: SCHEMA, generator: Generator::new(version), comparison }
    }
}

/// Writes the comparison as indented JSON and a newline. `version` is the version of smbscope.
pub fn write(comparison: &Comparison, version: &str, out: impl Write) -> io::Result<()> {
    write_indented(&ComparisonEnvelope::new(comparison, version), out)
}

/// Slices kept, longest total wait in any column first.
const SLICES_COMPARED: usize = 1_000;

/// Slices of all columns, grouped by the same dimensions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedSlices"))]
pub struct ComparedSlices {
    /// Dimensions.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::dimensions"))]
    pub(crate) by: Vec<String>,
    /// Slices by longest total wait in any column, at most 1,000.
    pub(crate) entries: Vec<ComparedSlice>,
    /// Number of slices not listed.
    pub(crate) left_out: u64,
}

/// Commands with the same key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedSlice"))]
pub struct ComparedSlice {
    /// Values of the dimensions; null is unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::slice_key"))]
    pub(crate) key: SliceEntryKey,
    /// One cell per column. Null if the column does not have or list the slice.
    pub(crate) cells: Vec<Option<ComparisonCell>>,
}

fn compared_slices(inputs: &[ComparisonInput]) -> Option<ComparedSlices> {
    let all: Vec<_> = inputs.iter().map(|input| input.report.slices.as_ref()).collect::<Option<_>>()?;
    let by = &all.first()?.by;
    if all.iter().any(|slices| slices.by != *by) {
        return None;
    }
    let mut found: BTreeMap<&SliceEntryKey, Vec<Option<&SliceFigures>>> = BTreeMap::new();
    for (column, slices) in all.iter().enumerate() {
        for entry in &slices.entries {
            found.entry(&entry.key).or_insert_with(|| vec![None; all.len()])[column] = Some(&entry.figures);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    let longest =
        |figures: &[Option<&SliceFigures>]| figures.iter().flatten().map(|figures| figures.response_time_sum_ns).max();
    found.sort_by_key(|(_, figures)| Reverse(longest(figures)));
    let left_out = found.len().saturating_sub(SLICES_COMPARED) as u64;
    let entries = found.into_iter().take(SLICES_COMPARED).map(|(key, figures)| ComparedSlice {
        key: key.clone(),
        cells: with_ratios(figures.into_iter().map(|figures| figures.map(ComparisonCell::of_slice))),
    });
    Some(ComparedSlices { by: by.clone(), entries: entries.collect(), left_out })
}

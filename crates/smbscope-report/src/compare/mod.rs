//! Captures side by side: what changed for whom, and how far that can be believed.
//!
//! Every column comes from a report as `smbscope.report/1` says it, whether it was saved or has just been made, so that
//! a capture and its saved report compare as equal. The first column is the base; a ratio is a column's value divided
//! by the base's.

mod actions;
mod adjust;
mod answer;
mod cells;
mod json;
mod limit;
mod next;
mod notes;
mod points;
mod ramps;
mod repetitions;
mod saved;
mod setup;
mod slices;
mod text;
mod within;

pub use answer::Compared;
pub use cells::{Certainty, ComparisonCell, Conclusion, ConfidenceInterval, Ratio, Ratios, ResponseTime};
pub(crate) use json::ComparisonEnvelope;
pub use json::{SCHEMA, write};
pub use limit::{NoFigure, RatioLimit, judge};
pub use notes::{ComparisonNote, FEW, MIX_PERCENT, NoteKind, UNTIMED_PERCENT};
pub use points::{ComparedLoadPoint, MetricCell, PointCell, PointGroup, PointMetric, RepetitionRange};
pub use ramps::{ComparableDocument, Given, Ramp, Ramps};
pub use saved::ComparableReport;
pub use slices::{ComparedSlice, ComparedSlices};
pub use text::render;

use crate::Answer;
use crate::json::FileName;
use crate::json::entries::EntityEntry;
use crate::json::waits::SlowExchange;
use cells::row_of;
use ramps::Single;
use repetitions::ColumnRuns;
use serde::Serialize;
use smbscope_model::{CaptureInfo, Nanos, Protocol};
use smbscope_stats::HeatMap;
use std::cmp::Reverse;

/// A report, and what it is called in the comparison.
#[derive(Debug, Clone)]
pub struct ComparisonInput {
    /// Unique among the inputs.
    pub name: String,
    /// Where it comes from: the argument as given.
    pub source: String,
    /// What it says.
    pub report: ComparableReport,
}

/// Reports side by side. Cells stand in the order of the columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// A title given by the user.
    pub title: Option<String>,
    /// What got slower, by how much and how sure that is: one for each column but the first.
    pub answers: Vec<Compared>,
    /// What is compared; the first is the base.
    #[cfg_attr(feature = "schema", schemars(length(min = 2)))]
    pub columns: Vec<ComparisonColumn>,
    /// All groups without expected waits and encrypted frames.
    pub headline: Headline,
    /// Groups that occur in any column, in the order of the report; `Other` is followed by its parts.
    pub groups: Vec<ComparedGroup>,
    /// Commands that occur in any column, those that were waited for longest in any of them first. Expected waits of a
    /// command are an entry of their own.
    pub commands: Vec<ComparedCommand>,
    /// The commands divided by --by; null without it.
    pub slices: Option<ComparedSlices>,
    /// The ramps among the columns, load point by load point; the rest of the comparison is about one load point of
    /// each. Null where there is none.
    pub ramps: Option<Ramps>,
    /// Caveats, a sentence each.
    pub notes: Vec<ComparisonNote>,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonColumn {
    /// Unique among the columns.
    pub name: String,
    /// The argument as given; of several runs, where the one comes from whose lists and pictures stand here.
    pub source: String,
    /// Runs that the column is made of. Of several, times and rates are geometric means, counts are means, and lists and
    /// pictures are those of the run whose mean response time is the middle one.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub runs: u32,
    /// Title of the report.
    pub title: Option<String>,
    /// The expression that chose the exchanges of the report; null where it is about all of them.
    pub filter: Option<String>,
    /// Version of smbscope that made the report.
    pub version: String,
    /// Its captures.
    pub captures: Vec<CaptureInfo>,
    /// How far the figures cover the capture, in one sentence.
    pub quality: String,
    /// The capture as a whole.
    pub overview: Overview,
    /// Response times over time, as a report has them; null where they are not known.
    pub(crate) heatmap: Option<HeatMap>,
    /// The slowest commands, slowest first, at most 20.
    pub(crate) slowest: Vec<SlowExchange>,
    /// At most 20, those that were waited for longest; what is not listed is not added up.
    pub(crate) files: Vec<EntityEntry<FileName>>,
    /// Why its users waited. The causes of the other columns are told in `answers`, where they differ.
    #[serde(skip)]
    pub(crate) answer: Answer,
}

/// A capture as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overview {
    /// First to last packet.
    pub elapsed_ns: Option<Nanos>,
    /// Commands of every group.
    pub commands: u64,
    /// Those of them that were timed.
    pub timed: u64,
    /// Those of them that should have been timed and could not be.
    pub untimed: u64,
    /// Error responses.
    pub errors: u64,
    /// Connections that carried SMB.
    pub connections: u64,
    /// Bytes of successful reads.
    pub bytes_read: u64,
    /// Bytes of successful writes.
    pub bytes_written: u64,
    /// Bytes read and written.
    pub bytes_per_second: Option<f64>,
    /// Commands of every group.
    pub commands_per_second: Option<f64>,
    /// What a job took, a whole pass of a workload that has an end: the mean; null where there is none.
    pub job_elapsed_ns: Option<Nanos>,
    /// Connections by dialect, the most first; what was not seen after what was.
    pub dialects: Vec<DialectCount>,
    /// To the base; null in the base itself.
    pub ratios: Option<OverviewRatios>,
}

/// Connections of one dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DialectCount {
    /// Its name; null where the negotiation was not captured.
    pub dialect: Option<String>,
    /// Connections.
    pub connections: u64,
}

/// What a capture as a whole did, as multiples of the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverviewRatios {
    /// Of `bytes_per_second`.
    pub bytes_per_second: Option<Ratio>,
    /// Of `commands_per_second`.
    pub commands_per_second: Option<Ratio>,
    /// Of `job_elapsed_ns`.
    pub job_elapsed: Option<Ratio>,
}

/// The sum of the headline groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// One for each column; null where it has no command of them.
    pub cells: Vec<Option<ComparisonCell>>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedGroup {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub group: String,
    /// The group that it is a part of, and is counted in as well.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::part_of"))]
    pub part_of: Option<String>,
    /// Whether it counts in the headline.
    pub headline: bool,
    /// One for each column; null where it has none.
    pub cells: Vec<Option<ComparisonCell>>,
    /// The cumulative distribution of response time in each column, as a report has it; empty where it is not known.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::cumulatives"))]
    pub cumulative: Vec<Vec<(Nanos, f64)>>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedCommand {
    /// Its protocol.
    pub protocol: Protocol,
    /// The specification's name, or the code in hexadecimal.
    pub command: String,
    /// The entry holds the expected waits of the command.
    pub waiting: bool,
    /// Where commands of SMB1 and SMB2 that do the same stand in one entry: those of each column, subcommands of SMB1
    /// among them. The entry has the name that SMB2 has for it. Null in any other entry.
    pub members: Option<Vec<Vec<String>>>,
    /// One for each column; null where it has none.
    pub cells: Vec<Option<ComparisonCell>>,
}

impl Comparison {
    /// Compares reports with the first of them.
    pub fn new(title: Option<String>, inputs: &[ComparisonInput]) -> Comparison {
        Comparison::of_inputs(title, inputs).answered()
    }

    /// Without the answers, for which what else is compared counts too.
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
            slices: slices::compare(inputs),
            ramps: None,
        }
    }

    /// Compares reports and ramps with the first of them.
    pub fn of_all(title: Option<String>, given: &[Given]) -> Comparison {
        let singles: Vec<Single<'_>> = given.iter().flat_map(Given::singles).collect();
        let (inputs, ramps) = ramps::resolved(&singles);
        let sides = ColumnRuns::new(given, &singles);
        let mut comparison = sides.folded(Comparison { ramps, ..Comparison::of_inputs(title, &inputs) });
        let loads =
            ramps::differences(given).into_iter().map(|(column, kind, text)| ComparisonNote { kind, column, text });
        // What was asked of the servers stands before what came of it.
        comparison.notes.extend(loads);
        comparison.notes.extend(setup::differences(given));
        comparison.notes.sort_by_key(|note| {
            let asked = matches!(note.kind, NoteKind::Mix | NoteKind::Place);
            (note.kind != NoteKind::Setup, note.column, !asked)
        });
        comparison.answered()
    }

    fn answered(mut self) -> Comparison {
        within::headline(&mut self);
        adjust::rows(&mut self);
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
        }
    }
}

impl Overview {
    fn job_elapsed(&self) -> Option<f64> {
        self.job_elapsed_ns.map(|elapsed| elapsed.0 as f64)
    }

    fn compare(&mut self, base: &Overview) {
        self.ratios = Some(OverviewRatios {
            bytes_per_second: Ratio::new(self.bytes_per_second, base.bytes_per_second),
            commands_per_second: Ratio::new(self.commands_per_second, base.commands_per_second),
            job_elapsed: Ratio::new(self.job_elapsed(), base.job_elapsed()),
        });
    }
}

/// Groups of every column in the order of the report.
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

/// Commands of every column, by the longest sum of their response times in any column.
fn commands(inputs: &[ComparisonInput]) -> Vec<ComparedCommand> {
    let mut commands = actions::rows(inputs);
    let longest = |command: &ComparedCommand| {
        let sums = command.cells.iter().flatten().filter_map(|cell| cell.response_time.sum);
        sums.max()
    };
    commands.sort_by_key(|command| (command.waiting, Reverse(longest(command))));
    commands
}

/// A sum of what a file says: it may say anything.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

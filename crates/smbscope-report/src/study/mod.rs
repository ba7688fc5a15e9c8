//! Results of `smbscope study` as a document, `smbscope.study/1`, from which an interrupted study continues; and the
//! rule for load points that don't show what the study asks, because something disturbed them.

mod answer;
mod results;
mod text;

use crate::bench::{BenchRun, ScheduleAdherence};
use crate::document::{self, DocumentKind, Generator, ParseError, write_indented_above};
use crate::{Answer, quoted};
pub use results::{Results, Suspect};
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::Measure;
use smbscope_stats::replication::BaselineRatio;
use std::collections::BTreeMap;
use std::io::{self, Write};
pub use text::{markdown, render};

pub const SCHEMA: &str = "smbscope.study/1";

const KIND: DocumentKind = DocumentKind { schema: SCHEMA, advice: "give the study.json that study wrote" };

/// A study and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyDocument {
    /// Program and version that wrote the document.
    pub generator: Generator,
    /// Name of the study.
    pub name: String,
    /// Question of the study. Empty if the file has none.
    pub question: String,
    /// Answer to the question. `evidence` lists differences beyond those in the headline; `culprit` and `causes`
    /// come from most runs of the worst variant; `caveats` repeat the warnings.
    pub answer: Answer,
    /// Study file.
    pub definition: StudyDefinitionEntry,
    /// Command that makes the study, from its directory.
    #[serde(default)]
    pub command: String,
    /// Start of the first run.
    pub started_ns: Option<Timestamp>,
    /// Runs per variant.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub repetitions: u32,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Test environment by name, as far as it is the same for all runs.
    pub environment: BTreeMap<String, String>,
    /// Variants: every combination of settings.
    pub variants: Vec<VariantEntry>,
    /// Runs in the order they were made.
    pub runs: Vec<StudyRun>,
    /// Load points that were unfit.
    #[serde(default)]
    pub unfit: Vec<UnfitPoint>,
    /// Results by measure, load and variant, without the load points that were left out.
    pub results: Vec<StudyRow>,
    /// Server metrics by load and variant. Empty if unknown.
    #[serde(default)]
    pub server: Vec<ServerRow>,
    /// Limits of the results, one sentence each.
    pub warnings: Vec<String>,
    /// Compared studies, the baseline first. Empty for a single study.
    #[serde(default)]
    pub studies: Vec<String>,
}

/// Definition of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyDefinition"))]
pub struct StudyDefinitionEntry {
    /// File name as given.
    pub source: String,
    /// SHA-256 of the text and of the effects of `--quick` and `--target`, in hexadecimal.
    pub sha256: String,
    /// Text of the file.
    pub text: String,
    /// Made with `--quick`.
    pub quick: bool,
    /// Settings and options of the full study that the short form changes or leaves out. Empty for the full study.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Servers given with `--target` to replace the ones in the file, in order.
    pub targets: Vec<String>,
    /// Hardware and settings of these servers in the user's words: `NAME=TEXT`.
    #[serde(default)]
    pub about: Vec<String>,
}

impl StudyDefinitionEntry {
    pub fn command(&self, repetitions: u32, directory: &str) -> String {
        let repetitions = repetitions.to_string();
        let mut words = vec!["smbscope", "study", &self.source];
        words.extend(self.quick.then_some("--quick"));
        words.extend(self.targets.iter().flat_map(|target| ["--target", target]));
        words.extend(self.about.iter().flat_map(|about| ["--about", about]));
        words.extend(["--repetitions", &repetitions, "-o", directory]);
        words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// A combination of one setting per axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariantEntry {
    /// Names of its settings.
    pub name: String,
    /// Index of its baseline; its own index for a baseline.
    pub baseline: usize,
    /// Setting by axis.
    pub settings: BTreeMap<String, String>,
    /// Directory of its runs, relative to the study directory.
    pub folder: String,
    /// Place of its files: a target, `private server`, or `this machine`.
    #[serde(default)]
    pub place: String,
    /// Test environment by name, as far as it is the same for all runs of the variant and differs from other variants.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Command line that repeats one of its runs.
    #[serde(default)]
    pub command: String,
    /// Shell commands before each run.
    #[serde(default)]
    pub before: Vec<String>,
    /// Shell commands after each run.
    #[serde(default)]
    pub after: Vec<String>,
}

/// A run of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyRun"))]
pub struct StudyRun {
    /// Index of the variant.
    pub variant: usize,
    /// Repetition, from 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub repetition: u32,
    /// Run directory, relative to the study directory.
    pub directory: String,
    /// Start.
    pub started_ns: Timestamp,
    /// Duration, including preparation.
    pub duration_ns: Nanos,
    /// Attempts: 2 if the first one failed or was unfit.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub attempts: u32,
    /// Reason for a second attempt. Null without one.
    #[serde(default)]
    pub repeated: Option<String>,
    /// CPU time of other programs just before or after the run, whichever is higher, in percent of all processors of
    /// this machine. Null if unknown.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub other_load_percent: Option<f64>,
    /// Reason for a missing result. Null if there is one.
    pub failed: Option<String>,
}

/// Load point that was unfit to show what the study asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyUnfitPoint"))]
pub struct UnfitPoint {
    /// Index of the variant.
    pub variant: usize,
    /// Repetition, from 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub repetition: u32,
    /// Users at the load point.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations per second at the load point. Null if load points differ in users.
    pub rate: Option<f64>,
    /// Reason.
    pub reason: UnfitReason,
    /// Left out of all figures. False if most repetitions of the variant (of other load and a stopped client: most of
    /// the study) are unfit for this reason.
    pub left_out: bool,
}

/// Reason why a load point is unfit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyUnfitReason"))]
#[serde(rename_all = "snake_case")]
pub enum UnfitReason {
    /// Other programs used the processors of the client's machine.
    OtherLoad,
    /// The client was stopped for a second or more.
    ClientStopped,
    /// The server stalled.
    Stall,
    /// Operations ended otherwise than the workload expects.
    Errors,
    /// Operations that were due never began.
    MissedArrivals,
    /// Scenarios were late or exceeded their time.
    Overload,
}

/// A measure of a variant at a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyRow"))]
pub struct StudyRow {
    /// Measure, such as `p95(Read)`, `elapsed` or `throughput`.
    pub measure: String,
    /// Unit of the values: `s`, `1/s`, `B/s`, `percent` or empty.
    pub unit: String,
    /// Users at the load point.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations per second at the load point. Null if load points differ in users.
    pub rate: Option<f64>,
    /// Index of the variant.
    pub variant: usize,
    /// Value of each repetition. Null if missing.
    pub values: Vec<Option<f64>>,
    /// Mean of the values.
    pub mean: f64,
    /// Sample standard deviation. Null for a single value.
    pub stddev: Option<f64>,
    /// Ratio to the baseline at the same load, within repetitions (with several studies, all values of one to all of
    /// the other). Null for a baseline, and if the baseline has no value.
    pub factor: Option<BaselineRatio>,
    /// Probability of a difference at least this large by chance, adjusted for the number of rows (headline rows by
    /// Holm, others by Benjamini and Hochberg). Null without an interval.
    pub adjusted_p_value: Option<f64>,
    /// Meaning of the ratio for users. Null without one.
    #[serde(default)]
    pub verdict: Option<StudyVerdict>,
}

/// Meaning of a ratio for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyVerdict"))]
#[serde(rename_all = "snake_case")]
pub enum StudyVerdict {
    /// Slower, or lower throughput.
    Slower,
    /// Faster, or higher throughput.
    Faster,
    /// More errors, or more server processor time.
    More,
    /// Fewer errors, or less server processor time.
    Less,
    /// Equal within 5%.
    Equal,
    /// The data show neither a difference nor equality.
    Undecided,
    /// Too few repetitions for an interval.
    TooFew,
}

/// A server metric of a variant at a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyServerRow"))]
pub struct ServerRow {
    /// Metric: `cpu`, `disk_busiest` …, as in the document of a run.
    pub metric: String,
    /// Unit: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
    pub unit: String,
    /// Users at the load point.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations per second at the load point. Null if load points differ in users.
    pub rate: Option<f64>,
    /// Index of the variant.
    pub variant: usize,
    /// Mean of each repetition. Null if missing.
    pub means: Vec<Option<f64>>,
    /// Highest sample of each repetition.
    pub maxima: Vec<Option<f64>>,
}

/// Indentation depth with one entry per line. Deeper levels are short and stay on one line.
const LEVELS: usize = 3;

/// Study as `study.json` holds it and `smbscope study --format json` prints it. Timestamps are nanoseconds since the
/// Unix epoch; values have their unit in a separate field.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StudyEnvelope<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    document: &'a StudyDocument,
}

impl<'a> StudyEnvelope<'a> {
    pub(crate) fn new(document: &'a StudyDocument) -> StudyEnvelope<'a> {
        StudyEnvelope { schema: SCHEMA, document }
    }
}

pub fn write(document: &StudyDocument, out: impl Write) -> io::Result<()> {
    write_indented_above(LEVELS, &StudyEnvelope::new(document), out)
}

impl StudyDocument {
    pub fn parse(text: &[u8]) -> Result<StudyDocument, ParseError> {
        document::parse(KIND, text)
    }

    fn name_of(&self, variant: usize) -> &str {
        self.variants.get(variant).map_or("", |variant| variant.name.as_str())
    }

    /// Returns the name of a variant, with the place of its files if the study was told where the server is.
    fn name_with_place(&self, variant: usize) -> String {
        match self.variants.get(variant) {
            Some(entry) if !self.definition.targets.is_empty() && !entry.place.is_empty() => {
                format!("{} ({})", entry.name, entry.place)
            }
            _ => self.name_of(variant).to_owned(),
        }
    }

    fn baseline_of(&self, row: &StudyRow) -> usize {
        self.variants.get(row.variant).map_or(0, |variant| variant.baseline)
    }
}

/// CPU time of other programs before or after a run from which the run is unfit, in percent of all processors.
const OTHER_LOAD_PERCENT: f64 = 25.0;
/// Wake-up delay of the client from which it was stopped: 1 s.
const STOPPED: Nanos = Nanos(1_000_000_000);
/// Percentage of arrivals that never began, and of scenarios that were overloaded, from which a load point is unfit.
const MISSED_PERCENT: f64 = 1.0;

impl UnfitReason {
    /// Returns the reason as a clause.
    pub fn words(self) -> &'static str {
        match self {
            UnfitReason::OtherLoad => "other programs used the processors of this machine",
            UnfitReason::ClientStopped => "the client was stopped",
            UnfitReason::Stall => "the server stalled",
            UnfitReason::Errors => "operations failed",
            UnfitReason::MissedArrivals => "operations that were due never began",
            UnfitReason::Overload => "scenarios were overloaded",
        }
    }

    /// True if the reason has nothing to do with the variant.
    fn is_of_machine(self) -> bool {
        matches!(self, UnfitReason::OtherLoad | UnfitReason::ClientStopped)
    }
}

/// Returns why a load point is unfit. What the study measures (errors, overload) is a result.
///
/// The rule: a run of one load point that is unfit is repeated once, and the repetition counts instead. A load point
/// that is unfit then, or one of a ramp, is left out of all figures, unless most are: a reason that holds in most
/// repetitions of a variant (of other load and a stopped client: in most of the study) is a property of the variant (or
/// of the machine), and stays. All are counted and named.
pub fn unfit_reasons(run: &BenchRun, other_load: Option<f64>, measures: &[Measure]) -> Vec<UnfitReason> {
    let measures_errors = measures.iter().any(|measure| matches!(measure, Measure::Errors | Measure::ErrorsOf(_)));
    let measures_overload = measures.contains(&Measure::Overload);
    let missed = match run.pace {
        ScheduleAdherence::Open { rate, not_begun, .. } => {
            let due = rate * run.duration_ns.as_secs_f64();
            due > 0.0 && 100.0 * not_begun as f64 / due >= MISSED_PERCENT
        }
        ScheduleAdherence::Closed => false,
    };
    let late = run.client_cpu.and_then(|cpu| cpu.late_max_ns);
    let overloaded = run.overload.is_some_and(|overload| overload.percent >= MISSED_PERCENT);
    let reasons = [
        (UnfitReason::OtherLoad, other_load.is_some_and(|percent| percent >= OTHER_LOAD_PERCENT)),
        (UnfitReason::ClientStopped, late.is_some_and(|late| late >= STOPPED)),
        (UnfitReason::Stall, !run.stalls.is_empty()),
        (UnfitReason::Errors, run.unexpected_count() > 0 && !measures_errors),
        (UnfitReason::MissedArrivals, missed && !measures_overload),
        (UnfitReason::Overload, overloaded && !measures_overload),
    ];
    reasons.into_iter().filter_map(|(reason, holds)| holds.then_some(reason)).collect()
}

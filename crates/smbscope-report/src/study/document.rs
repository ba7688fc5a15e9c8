//! The document of a study, `smbscope.study/1`: what was asked, which runs answered it, and what came out. It is also the
//! memory of a study that goes on later.

use crate::document::{self, Generator, Kind, ParseError};
use crate::json::escaped::write_indented_above;
use crate::{Answer, quoted};
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::replication::Figure;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The value of the key `schema`.
pub const SCHEMA: &str = "smbscope.study/1";

const KIND: Kind = Kind { schema: SCHEMA, advice: "give the study.json that study wrote" };

/// A study and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Who wrote it.
    pub generator: Generator,
    /// What the study is called.
    pub name: String,
    /// What it answers; empty where the file does not say.
    pub question: String,
    /// The answer to the question. `evidence` holds the differences that the headline does not name; `culprit` and `causes` are
    /// those of most runs of the worst variant; `caveats` repeat the warnings and say what is undecided.
    pub answer: Answer,
    /// The file that it was made from.
    pub definition: Definition,
    /// The command that makes it, from the directory in which it was made.
    #[serde(default)]
    pub command: String,
    /// When its first run began.
    pub started_ns: Option<Timestamp>,
    /// Runs of each variant.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub repetitions: u32,
    /// What the order of the runs begins from.
    pub seed: u64,
    /// What the runs were made on, name by name, where that is the same for all.
    pub environment: BTreeMap<String, String>,
    /// Every setting of every axis with every one of the others.
    pub variants: Vec<Variant>,
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// By measure, load and variant.
    pub results: Vec<Row>,
    /// What the load cost the server, by metric, load and variant; empty where nothing is known of its side.
    #[serde(default)]
    pub server: Vec<ServerRow>,
    /// What weakens the results, a sentence each.
    pub warnings: Vec<String>,
    /// The studies that this one sets beside each other, the baseline first; empty for a study of its own.
    #[serde(default)]
    pub studies: Vec<String>,
}

/// What a study was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyDefinition"))]
pub struct Definition {
    /// The file, as it was named.
    pub source: String,
    /// SHA-256 of the text and of what `--quick` and `--target` make of it, in hexadecimal.
    pub sha256: String,
    /// The text.
    pub text: String,
    /// The short form.
    pub quick: bool,
    /// The servers that stand for those of the file, in their order.
    pub targets: Vec<String>,
}

impl Definition {
    /// The command that makes the study in this directory.
    pub fn command(&self, repetitions: u32, directory: &str) -> String {
        let repetitions = repetitions.to_string();
        let mut words = vec!["smbscope", "study", &self.source];
        words.extend(self.quick.then_some("--quick"));
        words.extend(self.targets.iter().flat_map(|target| ["--target", target]));
        words.extend(["--repetitions", &repetitions, "-o", directory]);
        words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// One setting of each axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variant {
    /// What it is called: the names of its settings.
    pub name: String,
    /// Index of the variant that it is compared with; its own for one that others are compared with.
    pub baseline: usize,
    /// Setting by axis.
    pub settings: BTreeMap<String, String>,
    /// Where its runs are, below the directory of the study.
    pub folder: String,
    /// The command line that does what one of its runs did.
    #[serde(default)]
    pub command: String,
    /// Commands for the shell, before each of its runs.
    #[serde(default)]
    pub before: Vec<String>,
    /// Commands for the shell, after each of its runs.
    #[serde(default)]
    pub after: Vec<String>,
}

/// A run of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyRun"))]
pub struct Run {
    /// Index into the variants.
    pub variant: usize,
    /// From 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub repetition: u32,
    /// Its run directory, below that of the study.
    pub directory: String,
    /// When it began.
    pub started_ns: Timestamp,
    /// How long it took, preparation included.
    pub duration_ns: Nanos,
    /// How often it was begun: twice where the first attempt failed.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub attempts: u32,
    /// Why it has no result; null where it has one.
    pub failed: Option<String>,
}

/// One measure of one variant at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyRow"))]
pub struct Row {
    /// `p95(Read)`, `elapsed`, `throughput` …
    pub measure: String,
    /// Of the values: `s`, `1/s`, `B/s`, `percent` or empty.
    pub unit: String,
    /// Users of the load point.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations a second of the load point; null where load points differ in their users.
    pub rate: Option<f64>,
    /// Index into the variants.
    pub variant: usize,
    /// The value of each repetition, in their order; null where there is none.
    pub values: Vec<Option<f64>>,
    /// Their average.
    pub mean: f64,
    /// Their sample standard deviation; null for a single one.
    pub stddev: Option<f64>,
    /// Against its baseline at the same load, repetition by repetition (those of several studies: all of one against all of
    /// the other); null for a baseline itself, and where that has no
    /// value.
    pub factor: Option<Figure>,
    /// The probability of at least this difference where there is none, adjusted for the number of rows (those of the
    /// headline by Holm, the others by Benjamini and Hochberg); null without an interval.
    pub adjusted_p_value: Option<f64>,
    /// What the factor means for a user; null without one.
    #[serde(default)]
    pub verdict: Option<Verdict>,
}

/// What a factor means for a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyVerdict"))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Takes longer, or gets less done in a second.
    Slower,
    /// Takes less time, or gets more done in a second.
    Faster,
    /// More errors, or more processor time of the server.
    More,
    /// Fewer errors, or less processor time of the server.
    Less,
    /// The same within 5%.
    Equal,
    /// Neither a difference nor that there is none is shown.
    Undecided,
    /// Too few repetitions for an interval.
    TooFew,
}

/// A metric of the server at one load of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StudyServerRow"))]
pub struct ServerRow {
    /// What: `cpu`, `disk_busiest` …, as in the document of a run.
    pub metric: String,
    /// In what: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
    pub unit: String,
    /// Users of the load point.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations a second of the load point; null where load points differ in their users.
    pub rate: Option<f64>,
    /// Index into the variants.
    pub variant: usize,
    /// The average of each repetition, in their order; null where there is none.
    pub means: Vec<Option<f64>>,
    /// The greatest sample of each repetition.
    pub maxima: Vec<Option<f64>>,
}

/// Levels of a document that are written one entry a line: what lies deeper is short.
const LEVELS: usize = 3;

/// What `study.json` of a study's directory holds, and `smbscope study --format json` prints: its runs and what came out.
/// Points in time are nanoseconds since the Unix epoch; values have the unit that stands beside them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Whole<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    document: &'a Document,
}

impl<'a> Whole<'a> {
    pub(crate) fn new(document: &'a Document) -> Whole<'a> {
        Whole { schema: SCHEMA, document }
    }
}

/// Writes the document.
pub fn write(document: &Document, out: impl Write) -> io::Result<()> {
    write_indented_above(LEVELS, &Whole::new(document), out)
}

impl Document {
    /// Reads what [`write()`] wrote.
    pub fn parse(text: &[u8]) -> Result<Document, ParseError> {
        document::parse(KIND, text)
    }

    /// The name of a variant.
    pub(super) fn name_of(&self, variant: usize) -> &str {
        self.variants.get(variant).map_or("", |variant| variant.name.as_str())
    }

    /// The variant that a row's variant is compared with.
    pub(super) fn baseline_of(&self, row: &Row) -> usize {
        self.variants.get(row.variant).map_or(0, |variant| variant.baseline)
    }
}

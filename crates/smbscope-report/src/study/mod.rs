//! Results of `smbscope study` as a document, `smbscope.study/1`, from which an interrupted study continues.

mod results;

use crate::bench::load_name;
use crate::document::{self, DocumentKind, Generator, ParseError, write_indented_above};
use crate::format::{bytes, clean, counted, rate, ratio};
use crate::page::{Paint, TextPage};
use crate::tables::{ColumnHead, Row, Table, Unit, Value};
use crate::{Answer, quoted};
pub use results::Results;
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::replication::BaselineRatio;
use std::collections::BTreeMap;
use std::io::{self, Write};

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
    /// come from most runs of the worst variant; `caveats` repeat the warnings and name undecided comparisons.
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
    /// Results by measure, load and variant.
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
    /// Servers given with `--target` to replace the ones in the file, in order.
    pub targets: Vec<String>,
}

impl StudyDefinitionEntry {
    pub fn command(&self, repetitions: u32, directory: &str) -> String {
        let repetitions = repetitions.to_string();
        let mut words = vec!["smbscope", "study", &self.source];
        words.extend(self.quick.then_some("--quick"));
        words.extend(self.targets.iter().flat_map(|target| ["--target", target]));
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Attempts: 2 if the first one failed.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub attempts: u32,
    /// Reason for a missing result. Null if there is one.
    pub failed: Option<String>,
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

    fn baseline_of(&self, row: &StudyRow) -> usize {
        self.variants.get(row.variant).map_or(0, |variant| variant.baseline)
    }
}

pub fn render(document: &StudyDocument, width: usize, color: bool) -> String {
    render_on(TextPage::new(width, color), document)
}

/// Formats the study in Markdown, for a ticket or a pull request.
pub fn markdown(document: &StudyDocument) -> String {
    render_on(TextPage::markdown(), document)
}

fn render_on(mut page: TextPage, document: &StudyDocument) -> String {
    page.title(&format!("Study {}", document.name), false);
    if !document.question.is_empty() {
        page.paragraph(Paint::Plain, &document.question);
    }
    let answer = &document.answer;
    if !answer.headline.is_empty() {
        page.paragraph(Paint::Heading, &clean(&answer.headline));
    }
    answer.evidence.iter().for_each(|sentence| page.beside(Paint::Plain, "- ", &clean(sentence)));
    answer.caveats.iter().for_each(|caveat| page.paragraph(Paint::Warning, &clean(caveat)));
    page.what_next(&answer.next);
    page.blank();
    facts(&mut page, document);
    let rendered = results(document).render(&mut page);
    if !document.results.is_empty() {
        let mut baselines: Vec<&str> =
            document.variants.iter().map(|variant| document.name_of(variant.baseline)).collect();
        baselines.sort_unstable();
        baselines.dedup();
        let baseline = match baselines.as_slice() {
            [one] => format!("the baseline ({one})"),
            _ => "the baseline above it".to_owned(),
        };
        let within = match document.studies.is_empty() {
            true => " within the same repetitions",
            false => ", of all repetitions of the two studies",
        };
        let text = format!(
            "× = ratio to {baseline}{within}, with its 95% interval; in brackets the least and the greatest ratio of too \
             few repetitions for an interval. Answers are adjusted for the number of rows."
        );
        rendered.note(&mut page, &text);
    }
    page.into_text()
}

fn facts(page: &mut TextPage, document: &StudyDocument) {
    let (variants, repetitions) = (document.variants.len() as u64, document.repetitions);
    let done = document.runs.iter().filter(|run| run.failed.is_none()).count() as u64;
    let planned = variants * u64::from(repetitions);
    let short = if document.definition.quick { ", short form (--quick)" } else { "" };
    let runs = match done == planned {
        true => counted(done, "run", "runs"),
        false => format!("{done} of {planned} runs"),
    };
    let variants = counted(variants, "variant", "variants");
    let text = match document.studies.is_empty() {
        true => format!(
            "{variants} × {}, {runs} in random order (seed {}){short}",
            counted(repetitions.into(), "repetition", "repetitions"),
            document.seed
        ),
        false => format!("{variants}, {}{short}", counted(done, "run", "runs")),
    };
    page.fact(Paint::Plain, "Runs", &text);
    page.fact(Paint::Plain, "File", &format!("{}, SHA-256 {}", document.definition.source, sha(document)));
    let client = |name: &str| document.environment.get(name).cloned();
    let cores = client("cores").map(|cores| format!("{cores} cores"));
    let governor = client("governor").map(|governor| format!("governor {governor}"));
    let facts =
        [client("processor"), cores, governor, client("memory"), client("system"), client("kernel"), client("server")];
    let environment: Vec<String> = facts.into_iter().flatten().collect();
    if !environment.is_empty() {
        page.fact(Paint::Plain, "Made on", &environment.join(", "));
    }
}

/// Returns the shortest prefix that distinguishes two files.
fn sha(document: &StudyDocument) -> &str {
    document.definition.sha256.get(..12).unwrap_or(&document.definition.sha256)
}

fn results(document: &StudyDocument) -> Table<'_, &StudyRow> {
    let mut lines = Vec::new();
    let mut block = None;
    for row in &document.results {
        let load = Some((&row.measure, row.users, row.rate));
        if block != load {
            lines.push(Row::across(Paint::Heading, format!("{}, {}", row.measure, load_name(row.users, row.rate))));
            block = load;
        }
        lines.push(Row::part(document.name_of(row.variant), row));
    }
    Table::new()
        .column(
            ColumnHead::new("mean", "Mean", Unit::Number, "").explained("mean of the repetitions"),
            |row: &&StudyRow| Value::Number(row.mean, value(row.mean, &row.unit)),
        )
        .column(
            ColumnHead::new("spread", "Spread", Unit::Percent, "")
                .explained("standard deviation of the repetitions in percent of Mean"),
            |row| {
                let spread = row.stddev.filter(|_| row.mean > 0.0);
                spread.map(|stddev| {
                    let percent = 100.0 * stddev / row.mean;
                    Value::Number(percent, format!("{percent:.1}%"))
                })
            },
        )
        .column(ColumnHead::new("ratio", "×", Unit::Ratio, "ratio to the baseline"), |row| {
            let factor = row.factor.as_ref().and_then(|factor| factor.ratio);
            factor.map(|factor| Value::Number(factor, ratio(factor)))
        })
        .column(
            ColumnHead::new("interval", "95% interval", Unit::Text, "interval of the ratio").right_aligned().set_off(),
            |row| row.factor.as_ref().and_then(interval),
        )
        .column(ColumnHead::new("answer", "Answer", Unit::Text, "verdict on the difference").set_off(), |row| {
            row.answer()
        })
        .section("", lines)
}

/// Formats the confidence interval of a ratio, or in brackets the range of three or four repetitions.
fn interval(factor: &BaselineRatio) -> Option<String> {
    let range = factor.range.map(|(low, high)| format!("[{} to {}]", ratio(low), ratio(high)));
    factor.interval.map(|(low, high)| format!("{} to {}", ratio(low), ratio(high))).or(range)
}

fn value(value: f64, unit: &str) -> String {
    match unit {
        "s" => Nanos((value * 1e9).round() as i64).to_string(),
        "B/s" => format!("{}/s", bytes(value.round() as u64)),
        "percent" => format!("{value:.0}%"),
        "1/s" => format!("{}/s", rate(value)),
        _ => rate(value),
    }
}

//! `smbscope analyze`: turns arguments into options, and results into a report or a table; and results of `--fail-if`:
//! warnings, JUnit XML (`--junit`) for CI systems, and the exit status.

use crate::BadArguments;
use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::terminal::{self, ReadProgressBar};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_report::csv::CellStyle;
use smbscope_report::text::ReportTextOptions;
use smbscope_report::{Judged, Judgement, Report, classic, clean, csv, html, json, parquet, text};
use smbscope_run::analysis::{
    self, AnalysisObserver, AnalyzedCaptures, CaptureSetAnalysis, ExchangeExport, ExchangeExportResult,
    PreparedAnalysis,
};
use smbscope_run::files::Sources;
use smbscope_run::options::{AnalysisOptions, AnalyzeFormat, AnalyzeOptions, TerminalOptions};
use smbscope_stats::sides::PointSightings;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(arguments: &AnalyzeOptions) -> anyhow::Result<()> {
    output::refuse_ending::<AnalyzeFormat>(arguments.format.is_some(), arguments.output.as_deref())?;
    let given = arguments.inputs()?;
    let mut watcher = Watcher::new(arguments.terminal.progress.quiet);
    let sources = sources(arguments, &given);
    // Captures of several points, and of an episode, are read twice: an unwritable output fails before that.
    let is_read_twice = given.len() > 1 || arguments.analysis.episode.is_some();
    let early = is_read_twice.then(|| Output::open(arguments.output.as_deref(), &sources)).transpose()?;
    let prepared = PreparedAnalysis::new(&given, &arguments.analysis, &mut watcher).map_err(error)?;
    let open = |early: Option<Output>| early.map_or_else(|| Output::open(arguments.output.as_deref(), &sources), Ok);
    if arguments.writes_table() {
        let exchanges = ExchangeExport::open(&prepared).map_err(error)?;
        return write_table(arguments, &prepared.options, exchanges, open(early)?, &mut watcher);
    }
    let reading = prepared.open().map_err(error)?;
    let mut output = open(early)?;
    let junit = JunitFile::open(arguments.junit.as_deref(), &sources, &output)?;
    if arguments.format() == AnalyzeFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let analysis = reading.run(&mut watcher).map_err(error)?;
    let AnalysisOutcome { report, notes, interrupted, .. } = done(analysis, &prepared.options, arguments.format())?;
    let result = match arguments.format() {
        AnalyzeFormat::Csv => csv::write_slices(&report, cell_style(arguments, &output), output.writer()),
        _ if arguments.classic => output.writer().write_all(classic::render(&report).as_bytes()),
        format => {
            let options = text_options(&arguments.terminal, arguments.top as usize, arguments.full, &output);
            write_report(&report, format, &options, &mut output)
        }
    };
    output.settle(result)?;
    terminal::warn(&notes);
    if interrupted {
        // Limits may hold in half a capture and fail in the whole.
        return Err(InterruptedError::said().into());
    }
    settle_conditions("analyze", arguments.fail_if.iter().map(|condition| condition.judge(&report)).collect(), junit)
}

/// Returns the input files, which must not be overwritten.
fn sources(arguments: &AnalyzeOptions, inputs: &[CaptureInput]) -> Sources {
    let mut sources = Sources::of_inputs(inputs);
    let keys = arguments.analysis.reading.decryption.files();
    arguments.analysis.thresholds.iter().chain(keys).for_each(|file| sources.add(file));
    sources
}

pub(crate) struct AnalysisOutcome {
    pub(crate) report: Report,
    pub(crate) notes: Vec<String>,
    pub(crate) interrupted: bool,
    pub(crate) sightings: Option<PointSightings>,
}

/// Returns the report on captures for further processing.
pub(crate) fn report_on(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
    quiet: bool,
) -> anyhow::Result<AnalysisOutcome> {
    let analysis = CaptureSetAnalysis::run(inputs, options, &mut Watcher::new(quiet)).map_err(error)?;
    done(analysis, options, AnalyzeFormat::Text)
}

fn done(
    mut analysis: CaptureSetAnalysis,
    options: &AnalysisOptions,
    format: AnalyzeFormat,
) -> anyhow::Result<AnalysisOutcome> {
    let (notes, interrupted) = (notes(&analysis.found, format), analysis.found.interrupted);
    let sightings = analysis.take_sightings();
    Ok(AnalysisOutcome { report: analysis.into_report(options).map_err(error)?, notes, interrupted, sightings })
}

fn notes(found: &AnalyzedCaptures, format: AnalyzeFormat) -> Vec<String> {
    let shows_warnings = matches!(format, AnalyzeFormat::Text | AnalyzeFormat::Markdown);
    let truncations = found.truncations().filter(|_| !shows_warnings);
    truncations.chain(found.notes()).collect()
}

fn cell_style(arguments: &AnalyzeOptions, output: &Output) -> CellStyle {
    CellStyle { raw: arguments.csv_raw, terminal: output.is_terminal() }
}

fn write_table(
    arguments: &AnalyzeOptions,
    options: &AnalysisOptions,
    exchanges: ExchangeExport<'_>,
    mut output: Output,
    watcher: &mut Watcher,
) -> anyhow::Result<()> {
    let written = if arguments.format() == AnalyzeFormat::Parquet {
        output.refuse_terminal("Parquet")?;
        exchanges.write(parquet::ParquetExchangeWriter::new(output.writer()), watcher)
    } else {
        let style = cell_style(arguments, &output);
        exchanges.write(csv::CsvExchangeWriter::with_style(output.writer(), style), watcher)
    };
    let ExchangeExportResult { result, found } = written.map_err(error)?;
    if result.is_err() {
        return output.settle(result);
    }
    terminal::warn(&notes(&found, arguments.format()));
    found.refuse_without_smb(options).map_err(error)?;
    output.settle(result)?;
    if found.interrupted { Err(InterruptedError::said().into()) } else { Ok(()) }
}

pub(crate) struct Watcher {
    quiet: bool,
    progress: Option<ReadProgressBar>,
}

impl Watcher {
    pub(crate) fn new(quiet: bool) -> Watcher {
        Watcher { quiet, progress: None }
    }
}

impl AnalysisObserver for Watcher {
    fn begins(&mut self, stop: &Arc<AtomicBool>) {
        interrupt::sets(stop);
        self.progress = Some(ReadProgressBar::new(self.quiet));
    }

    fn reads(&mut self, set: &CaptureSet) {
        if let Some(progress) = &mut self.progress {
            progress.show(|| set.progress());
        }
    }

    fn ended(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
    }
}

/// Converts an error of the analysis. Interruptions get an exit status of their own.
pub(crate) fn error(error: analysis::AnalysisError) -> anyhow::Error {
    match error {
        analysis::AnalysisError::Interrupted(_) => InterruptedError::with(error.to_string()).into(),
        error => error.into(),
    }
}

/// Writes a report; formats of tables become text.
pub(crate) fn write_report(
    report: &Report,
    format: AnalyzeFormat,
    options: &ReportTextOptions,
    output: &mut Output,
) -> io::Result<()> {
    match format {
        AnalyzeFormat::Json => json::write(report, output.writer()),
        AnalyzeFormat::Html => html::write_report(report, output.writer()),
        AnalyzeFormat::Markdown => output.writer().write_all(text::markdown(report, options).as_bytes()),
        _ => output.writer().write_all(text::render(report, options).as_bytes()),
    }
}

/// Returns the options of a text that lists `top` groups and, if `full`, all tables.
pub(crate) fn text_options(terminal: &TerminalOptions, top: usize, full: bool, output: &Output) -> ReportTextOptions {
    ReportTextOptions { width: output.width(terminal.width), color: output.takes_color(terminal.color), top, full }
}

/// Messages of `--fail-if` conditions that hold.
#[derive(Debug)]
pub struct LimitExceeded(Vec<String>);

impl LimitExceeded {
    pub fn status(&self) -> u8 {
        3
    }

    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl std::fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for LimitExceeded {}

/// Writes the JUnit file, warns of undecided conditions, and fails if any condition holds.
pub(crate) fn settle_conditions(command: &str, judged: Vec<Judgement>, junit: Option<JunitFile>) -> anyhow::Result<()> {
    if let Some(junit) = junit {
        junit.write(command, &judged)?;
    }
    let texts = |wanted| judged.iter().filter(move |found| found.judged == wanted).map(|found| found.text.clone());
    terminal::warn(&texts(Judged::Undecided).collect::<Vec<_>>());
    let lines: Vec<String> = texts(Judged::Holds).collect();
    if lines.is_empty() { Ok(()) } else { Err(LimitExceeded(lines).into()) }
}

pub(crate) struct JunitFile(Output);

impl JunitFile {
    /// Opens the file if one was requested. It must be neither an input nor the file of `other`.
    pub(crate) fn open(path: Option<&Path>, sources: &Sources, other: &Output) -> anyhow::Result<Option<JunitFile>> {
        let Some(path) = path else { return Ok(None) };
        let output = Output::open(Some(path), sources)?;
        if output.is_same_as(other) {
            let text = format!("--junit {} is also the file of the report: name another file", path.display());
            return Err(BadArguments(text).into());
        }
        Ok(Some(JunitFile(output)))
    }

    pub(crate) fn write(mut self, command: &str, judged: &[Judgement]) -> anyhow::Result<()> {
        let text = junit_report(command, judged).to_string().map_err(io::Error::other);
        let result = text.and_then(|text| self.0.writer().write_all(text.as_bytes()));
        self.0.settle(result)
    }
}

/// Builds a suite per capture or side with a test per condition. Undecided ones are skipped: they neither passed nor
/// failed.
fn junit_report(command: &str, judged: &[Judgement]) -> quick_junit::Report {
    let mut report = quick_junit::Report::new(format!("smbscope {command}"));
    let mut suites: Vec<TestSuite> = Vec::new();
    for judgement in judged {
        let mut status = match judgement.judged {
            Judged::Holds => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Judged::Undecided => TestCaseStatus::skipped(),
            Judged::DoesNotHold => TestCaseStatus::success(),
        };
        // CI systems display them verbatim.
        let [text, condition, name] = [&judgement.text, &judgement.condition, &judgement.name].map(|text| clean(text));
        status.set_message(text.as_str());
        let mut test = TestCase::new(condition.as_str(), status);
        test.set_classname(name.as_str());
        test.set_system_out(text.as_str());
        match suites.iter_mut().find(|suite| suite.name.as_str() == name) {
            Some(suite) => suite.add_test_case(test),
            None => {
                let mut suite = TestSuite::new(name.as_str());
                suite.add_test_case(test);
                suites.push(suite);
                continue;
            }
        };
    }
    report.add_test_suites(suites);
    report
}

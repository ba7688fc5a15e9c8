//! `smbscope analyze`: turns arguments into options, and results into a report or a table.

use crate::fail_if::{self, JunitFile};
use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::terminal::{self, ReadProgressBar};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_report::csv::CellStyle;
use smbscope_report::text::ReportTextOptions;
use smbscope_report::{Report, classic, csv, html, json, parquet, text};
use smbscope_run::analysis::{
    self, AnalysisObserver, AnalyzedCaptures, CaptureSetAnalysis, ExchangeExport, ExchangeExportResult,
    PreparedAnalysis,
};
use smbscope_run::files::Sources;
use smbscope_run::options::{AnalysisOptions, AnalyzeFormat, AnalyzeOptions, TerminalOptions};
use smbscope_stats::sides::PointSightings;
use std::io;
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
    fail_if::settle("analyze", arguments.fail_if.iter().map(|condition| condition.judge(&report)).collect(), junit)
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

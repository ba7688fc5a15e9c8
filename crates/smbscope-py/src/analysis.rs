//! Analyses captures and renders the report.

use crate::document::{PyDocument, ending, write};
use crate::exchanges::{self, PyExchanges};
use crate::table::PyTable;
use crate::work::{ArgumentError, of_analysis, of_writing};
use crate::work::{Stopper, interruptible};
use pyo3::prelude::*;
use smbscope_report::text::ReportTextOptions;
use smbscope_report::{Report, html, json, text};
use smbscope_run::analysis::{self, AnalysisOptions, CaptureInput, PreparedAnalysis};
use smbscope_run::files::Sources;
use smbscope_run::options::{AnalyzeOptions, CommandOptions, GivenOptions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The report of `smbscope analyze`, with its tables.
#[pyclass(name = "Analysis", frozen, extends = PyDocument, module = "smbscope")]
pub(crate) struct PyAnalysis {
    report: Report,
    notes: Vec<String>,
    /// Captures as given, which no output may replace.
    inputs: Vec<CaptureInput>,
    prepared: Arc<PreparedAnalysis>,
}

/// Options by name, each with its values as text.
pub(crate) type OptionDict = BTreeMap<String, Vec<OsString>>;

/// Parses options of `smbscope analyze`.
pub(crate) fn parsed<O: CommandOptions + Send>(
    py: Python<'_>,
    options: &OptionDict,
    files: Vec<OsString>,
) -> PyResult<O> {
    let mut given = GivenOptions::default();
    options.iter().for_each(|(name, values)| given.set(name, values));
    if !files.is_empty() {
        given.set("files", files);
    }
    py.detach(|| given.parse()).map_err(ArgumentError::new_err)
}

/// Parses options of `smbscope analyze` with captures.
pub(crate) fn parsed_with_files(
    py: Python<'_>,
    options: &OptionDict,
    files: Vec<OsString>,
) -> PyResult<(Vec<CaptureInput>, AnalysisOptions)> {
    let options: AnalyzeOptions = parsed(py, options, files)?;
    let inputs = options.inputs().map_err(|error| of_analysis(&error.into()))?;
    Ok((inputs, options.analysis))
}

/// Analyses captures with the options of `smbscope analyze`.
#[pyfunction]
pub(crate) fn analyze(py: Python<'_>, options: OptionDict, files: Vec<OsString>) -> PyResult<Py<PyAnalysis>> {
    let (inputs, options) = parsed_with_files(py, &options, files)?;
    let done = interruptible(py, |stopper| run(&inputs, options, stopper))?;
    PyAnalysis::new(py, inputs, done.map_err(|error| of_analysis(&error))?)
}

/// A finished analysis with its report.
pub(crate) struct RenderedAnalysis {
    report: Report,
    notes: Vec<String>,
    /// The report as JSON.
    text: String,
    prepared: PreparedAnalysis,
}

fn run(
    inputs: &[CaptureInput],
    options: AnalysisOptions,
    mut stopper: Stopper,
) -> Result<RenderedAnalysis, analysis::AnalysisError> {
    let prepared = PreparedAnalysis::new(inputs, &options, &mut stopper)?;
    let analysis = prepared.open()?.run(&mut stopper)?;
    RenderedAnalysis::from_analysis(analysis, prepared)
}

impl RenderedAnalysis {
    /// Builds the report of an analysis.
    pub(crate) fn from_analysis(
        analysis: analysis::CaptureSetAnalysis,
        prepared: PreparedAnalysis,
    ) -> Result<RenderedAnalysis, analysis::AnalysisError> {
        let notes = analysis.found.truncations().chain(analysis.found.notes()).collect();
        let report = analysis.into_report(&prepared.options)?;
        let mut text = Vec::new();
        json::write(&report, &mut text).expect("memory takes all");
        Ok(RenderedAnalysis { report, notes, text: String::from_utf8(text).expect("JSON is UTF-8"), prepared })
    }
}

impl PyAnalysis {
    /// Creates the Python object.
    pub(crate) fn new(py: Python<'_>, inputs: Vec<CaptureInput>, done: RenderedAnalysis) -> PyResult<Py<PyAnalysis>> {
        let RenderedAnalysis { report, notes, text, prepared } = done;
        let prepared = Arc::new(prepared);
        let analysis = PyClassInitializer::from(PyDocument::own(text)).add_subclass(PyAnalysis {
            report,
            notes,
            inputs,
            prepared,
        });
        Py::new(py, analysis)
    }

    fn page(&self) -> String {
        let mut page = Vec::new();
        html::write_report(&self.report, &mut page).expect("memory takes all");
        String::from_utf8(page).expect("a page is UTF-8")
    }
}

/// Defines a property for each table of the report, and the other methods.
macro_rules! tables {
    ($($(#[doc = $doc:literal])* $name:ident)*) => {
        #[pymethods]
        impl PyAnalysis {
            $($(#[doc = $doc])*
            #[getter]
            fn $name(this: &Bound<'_, PyAnalysis>) -> PyResult<PyTable> {
                this.as_super().get().table_of(this.py(), stringify!($name))
            })*

            /// Warnings to read before the figures, such as damaged captures or encryption.
            #[getter]
            fn notes(&self) -> Vec<String> {
                self.notes.clone()
            }

            /// The exchange table, read from the captures again, one batch at a time.
            fn exchanges(&self) -> PyExchanges {
                PyExchanges::new(Arc::clone(&self.prepared))
            }

            /// Returns the report as text for a terminal.
            #[pyo3(signature = (*, width = 100, full = false, top = 20))]
            fn to_text(&self, py: Python<'_>, width: usize, full: bool, top: usize) -> String {
                let options = ReportTextOptions { width, full, top, color: false };
                py.detach(|| text::render(&self.report, &options))
            }

            /// Returns the report as a self-contained HTML page with charts.
            fn to_html(&self, py: Python<'_>) -> String {
                py.detach(|| self.page())
            }

            /// Writes a file in the format of its extension: the report as .json, .html or .txt, the exchange table as
            /// .parquet or .csv. The file is written completely or not at all, and never over one of the captures.
            fn save(this: &Bound<'_, PyAnalysis>, path: PathBuf) -> PyResult<()> {
                save(this, &path)
            }

            fn __repr__(&self) -> String {
                format!("<smbscope.Analysis: {}>", self.report.explanation.answer.headline.replace('\u{a0}', " "))
            }
        }
    };
}

tables! {
    /// Statistics by command.
    commands
    /// Statistics by operation group.
    groups
    /// Statistics by file.
    files
    /// Statistics by client.
    clients
    /// Statistics by server.
    servers
    /// Statistics by share.
    shares
    /// Statistics by user.
    users
    /// TCP connections that carried SMB.
    connections
    /// Bursts of work of single clients, in order of time.
    episodes
    /// The reason why users wait and who can fix it, in one row.
    answer
    /// Causes of noticeable waits, worst first.
    causes
    /// Limits of the captures, in one row.
    quality
    /// The slowest exchanges.
    slowest
}

fn save(this: &Bound<'_, PyAnalysis>, path: &Path) -> PyResult<()> {
    let (py, analysis) = (this.py(), this.get());
    refuse_input(path, &analysis.inputs)?;
    match ending(path) {
        "json" => write(py, path, this.as_super().get().text()),
        "html" | "htm" => write(py, path, &py.detach(|| analysis.page())),
        "md" => write(py, path, &py.detach(|| text::markdown(&analysis.report, &ReportTextOptions::default()))),
        "txt" => write(py, path, &py.detach(|| text::render(&analysis.report, &ReportTextOptions::default()))),
        "parquet" | "csv" => exchanges::save(py, &analysis.prepared, path),
        other => Err(ArgumentError::new_err(format!(
            "{}: {other:?} is not .json, .html, .txt, .md, .parquet or .csv",
            path.display()
        ))),
    }
}

/// Fails if the path is one of the captures.
fn refuse_input(path: &Path, inputs: &[CaptureInput]) -> PyResult<()> {
    match Sources::of_inputs(inputs).name_at(path) {
        Some(input) => {
            let same = std::io::Error::other(format!("it is the input {input}; choose another name for the output"));
            Err(of_writing(path, &same))
        }
        None => Ok(()),
    }
}

//! Analyses captures and renders the report; and the tasks of `smbscope.cluster`: parts of an analysis, and the load
//! generators of a distributed benchmark. Python transports their messages, which are bytes.

use crate::exchanges::{self, PyExchanges};
use crate::table::{PyDocument, PyTable, ending, write};
use crate::work::{ArgumentError, SmbscopeError, Stopper, interruptible, of_analysis, of_writing};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smbscope_report::parquet::ParquetExchangeWriter;
use smbscope_report::text::ReportTextOptions;
use smbscope_report::{Report, html, json, text};
use smbscope_run::Host;
use smbscope_run::analysis::parts::{AnalysisPlan, FilePart, HostPairPart, Pieces, SerializedParts};
use smbscope_run::analysis::{self, AnalysisOptions, CaptureInput, PreparedAnalysis, parts};
use smbscope_run::files::Sources;
use smbscope_run::options::{AnalyzeOptions, CommandOptions, GivenOptions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
type OptionDict = BTreeMap<String, Vec<OsString>>;

/// Parses options of `smbscope analyze`.
fn parsed<O: CommandOptions + Send>(py: Python<'_>, options: &OptionDict, files: Vec<OsString>) -> PyResult<O> {
    let mut given = GivenOptions::default();
    options.iter().for_each(|(name, values)| given.set(name, values));
    if !files.is_empty() {
        given.set("files", files);
    }
    py.detach(|| given.parse()).map_err(ArgumentError::new_err)
}

/// Parses options of `smbscope analyze` with captures.
fn parsed_with_files(
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
struct RenderedAnalysis {
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
    fn from_analysis(
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
    fn new(py: Python<'_>, inputs: Vec<CaptureInput>, done: RenderedAnalysis) -> PyResult<Py<PyAnalysis>> {
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

/// Divides a file by host pairs into pieces, given the options of `smbscope analyze`.
#[pyfunction]
pub(crate) fn divide<'py>(
    py: Python<'py>,
    options: OptionDict,
    file: OsString,
    name: &str,
    pieces: Vec<PathBuf>,
    times: PathBuf,
) -> PyResult<Bound<'py, PyBytes>> {
    let (inputs, options) = parsed_with_files(py, &options, vec![file])?;
    let [input] = &inputs[..] else { return Err(ArgumentError::new_err("one file is divided at a time")) };
    let bytes = py.detach(|| Ok(parts::to_bytes(&parts::divide(input, name, &options, &pieces, &times)?)));
    Ok(PyBytes::new(py, &bytes.map_err(|error| of_analysis(&error))?))
}

/// Determines the order of the divided files.
#[pyfunction]
pub(crate) fn plan<'py>(py: Python<'py>, files: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    let plan = parts::received_all(&files, "file", |files: Vec<FilePart>| AnalysisPlan::new(&files));
    let plan = plan.and_then(|plan| plan).map_err(|error| of_analysis(&error))?;
    Ok(PyBytes::new(py, &parts::to_bytes(&plan)))
}

/// Follows some host pairs through all files, given the times file and the pieces of each.
#[pyfunction]
pub(crate) fn follow<'py>(
    py: Python<'py>,
    options: OptionDict,
    plan: &[u8],
    files: Vec<(PathBuf, Vec<PathBuf>)>,
    exchanges: Option<PathBuf>,
    first_id: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan: AnalysisPlan = parts::received(plan, || "the plan".to_owned()).map_err(|error| of_analysis(&error))?;
    let options: AnalysisOptions = parsed(py, &options, Vec::new())?;
    let files: Vec<Pieces> = files.into_iter().map(|(times, pieces)| Pieces { times, pieces }).collect();
    let bytes = py.detach(|| followed(&plan, &files, &options, exchanges.as_deref(), first_id));
    Ok(PyBytes::new(py, &bytes.map_err(|error| of_analysis(&error))?))
}

fn followed(
    plan: &AnalysisPlan,
    files: &[Pieces],
    options: &AnalysisOptions,
    exchanges: Option<&Path>,
    first_id: u64,
) -> Result<Vec<u8>, smbscope_run::analysis::AnalysisError> {
    let table = || match exchanges {
        Some(path) => ParquetExchangeWriter::new(BufWriter::new(File::create(path)?)).map(Some),
        None => Ok(None),
    };
    Ok(parts::to_bytes(&parts::follow(plan, files, options, first_id, table)?))
}

/// Groups the indices of parts that share sessions. Each part is in one group.
#[pyfunction]
pub(crate) fn shared_sessions(parts: Vec<Vec<u8>>) -> PyResult<Vec<Vec<usize>>> {
    let groups = parts::received_all(&parts, "part", |parts: Vec<HostPairPart>| parts::shared_sessions(&parts));
    groups.map_err(|error| of_analysis(&error))
}

/// Merges the plan, the divided files and the parts into an analysis, given the options of `smbscope analyze`.
#[pyfunction]
#[pyo3(signature = (options, files, pieces, unread))]
pub(crate) fn merge(
    py: Python<'_>,
    options: OptionDict,
    files: Vec<OsString>,
    pieces: (Vec<u8>, Vec<Vec<u8>>, Vec<Vec<u8>>),
    unread: Vec<String>,
) -> PyResult<Py<PyAnalysis>> {
    let (inputs, options) = parsed_with_files(py, &options, files)?;
    let (plan, divided, parts) = pieces;
    let arrived = SerializedParts { plan: &plan, files: &divided, parts: &parts };
    let done = py.detach(|| {
        arrived.merged(&unread, &options, |analysis| {
            let prepared = PreparedAnalysis::as_given(inputs.clone(), options.clone());
            RenderedAnalysis::from_analysis(analysis, prepared)
        })
    });
    PyAnalysis::new(py, inputs, done.map_err(|error| of_analysis(&error))?)
}

/// Load generator of a host, which answers its driver's requests.
#[pyclass(name = "LoadHost", frozen, module = "smbscope")]
pub(crate) struct PyLoadHost(Mutex<smbscope_run::LoadHost>);

#[pymethods]
impl PyLoadHost {
    #[new]
    fn new() -> PyLoadHost {
        PyLoadHost(Mutex::new(smbscope_run::LoadHost::new()))
    }

    /// Returns the answer to a request.
    fn answer<'py>(&self, py: Python<'py>, request: &[u8]) -> Bound<'py, PyBytes> {
        let answer = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).answer(request));
        PyBytes::new(py, &answer)
    }
}

/// Host name, whether it is this machine, and a function that sends a request and returns the answer.
type PyHost = (String, bool, Py<PyAny>);

/// Wraps a Python function that starts the load hosts.
pub(crate) fn host_source(start: Py<PyAny>) -> Box<smbscope_cli::HostSource> {
    Box::new(move |address, slots| {
        Python::attach(|py| {
            let started = start.call1(py, (address, slots)).and_then(|hosts| hosts.extract::<Vec<PyHost>>(py));
            let hosts = started.map_err(|error| said(py, &error))?;
            Ok(hosts.into_iter().map(|(name, is_here, call)| host(name, is_here, call)).collect())
        })
    })
}

fn host(name: String, is_here: bool, call: Py<PyAny>) -> Host {
    Host::new(name, is_here, move |request| {
        Python::attach(|py| {
            let answer = call.call1(py, (PyBytes::new(py, request),));
            answer.and_then(|answer| answer.extract::<Vec<u8>>(py)).map_err(|error| said(py, &error))
        })
    })
}

/// Formats an exception in one line, with its type unless it belongs to this package.
fn said(py: Python<'_>, error: &PyErr) -> String {
    let text = match error.is_instance_of::<SmbscopeError>(py) {
        true => error.value(py).to_string(),
        false => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! The tasks of `smbscope.cluster`: parts of an analysis, and the load generators of a distributed benchmark. Python
//! transports their messages, which are bytes.

use crate::analysis::{OptionDict, PyAnalysis, RenderedAnalysis, parsed, parsed_with_files};
use crate::work::{ArgumentError, SmbscopeError, of_analysis};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smbscope_report::parquet::ParquetExchangeWriter;
use smbscope_run::Host;
use smbscope_run::analysis::parts::{self, AnalysisPlan, FilePart, HostPairPart, Pieces, SerializedParts};
use smbscope_run::analysis::{AnalysisOptions, PreparedAnalysis};
use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
pub(crate) fn source(start: Py<PyAny>) -> Box<smbscope_cli::HostSource> {
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

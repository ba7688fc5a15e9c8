//! Distributed load for `smbscope.cluster`: the load generator of a host, and the driver's connection to it. Python
//! transports the messages, which are bytes.

use crate::errors::SmbscopeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smbscope_run::Host;
use std::sync::{Mutex, PoisonError};

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

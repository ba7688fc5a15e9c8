//! The exceptions, and which of them an error of the libraries becomes: the only place that decides it.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::{PyErr, create_exception};
use smbscope_report::arrow::TableError;
use smbscope_run::analysis;
use std::io;

create_exception!(smbscope, SmbscopeError, PyException, "The base of all exceptions of this package.");
create_exception!(smbscope, ArgumentError, SmbscopeError, "It was asked for what cannot be.");
create_exception!(smbscope, CaptureError, SmbscopeError, "A capture cannot be used, or has no SMB in it.");
create_exception!(smbscope, RunError, SmbscopeError, "A run of the command failed.");
create_exception!(smbscope, LimitError, RunError, "A limit of fail_if is exceeded.");

/// An analysis that failed.
pub(crate) fn of_analysis(error: &analysis::AnalysisError) -> PyErr {
    use analysis::AnalysisError;
    let text = smbscope_run::one_line(error);
    match error {
        AnalysisError::Capture(_) | AnalysisError::NoSmb(_) => CaptureError::new_err(text),
        AnalysisError::ThresholdsFile { .. } | AnalysisError::Thresholds { .. } | AnalysisError::Episode(_) => {
            ArgumentError::new_err(text)
        }
        AnalysisError::EpisodeFilter { .. } | AnalysisError::WhatIf(_) => ArgumentError::new_err(text),
        AnalysisError::Interrupted(_) => PyKeyboardInterrupt::new_err(text),
        AnalysisError::InParts(_) => ArgumentError::new_err(text),
        AnalysisError::Piece { .. }
        | AnalysisError::Received { .. }
        | AnalysisError::Table(_)
        | AnalysisError::Failed(_) => SmbscopeError::new_err(text),
    }
}

/// A table that there is not.
pub(crate) fn of_table(error: &TableError) -> PyErr {
    ArgumentError::new_err(smbscope_run::one_line(error))
}

/// A file that could not be written.
pub(crate) fn of_writing(path: &std::path::Path, error: &io::Error) -> PyErr {
    SmbscopeError::new_err(format!("cannot write {}: {error}", path.display()))
}

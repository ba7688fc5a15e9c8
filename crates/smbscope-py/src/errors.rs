//! The exceptions of the package, and the mapping of library errors to them.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::{PyErr, create_exception};
use smbscope_report::arrow::TableError;
use smbscope_run::analysis;
use std::io;

create_exception!(smbscope, SmbscopeError, PyException, "Base class of all exceptions of this package.");
create_exception!(smbscope, ArgumentError, SmbscopeError, "The request is invalid or impossible.");
create_exception!(smbscope, CaptureError, SmbscopeError, "A capture is unusable or contains no SMB.");
create_exception!(smbscope, RunError, SmbscopeError, "The command failed.");
create_exception!(smbscope, LimitError, RunError, "A limit in fail_if was exceeded.");

/// Maps an analysis error.
pub(crate) fn of_analysis(error: &analysis::AnalysisError) -> PyErr {
    use analysis::AnalysisError;
    let text = smbscope_run::one_line(error);
    match error {
        AnalysisError::Capture(_) | AnalysisError::NoSmb(_) => CaptureError::new_err(text),
        AnalysisError::ThresholdsFile { .. } | AnalysisError::Thresholds { .. } | AnalysisError::Episode(_) => {
            ArgumentError::new_err(text)
        }
        AnalysisError::EpisodeFilter { .. } | AnalysisError::WhatIf(_) | AnalysisError::Keys(_) => {
            ArgumentError::new_err(text)
        }
        AnalysisError::Interrupted(_) => PyKeyboardInterrupt::new_err(text),
        AnalysisError::InParts(_) => ArgumentError::new_err(text),
        AnalysisError::Piece { .. }
        | AnalysisError::Received { .. }
        | AnalysisError::Table(_)
        | AnalysisError::Failed(_) => SmbscopeError::new_err(text),
    }
}

/// Maps a table error.
pub(crate) fn of_table(error: &TableError) -> PyErr {
    ArgumentError::new_err(smbscope_run::one_line(error))
}

/// Maps an error of writing a file.
pub(crate) fn of_writing(path: &std::path::Path, error: &io::Error) -> PyErr {
    SmbscopeError::new_err(format!("cannot write {}: {error}", path.display()))
}

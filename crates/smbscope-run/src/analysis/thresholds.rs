//! Loads the catalogue of findings.

use super::AnalysisError;
use smbscope_diagnose::Catalogue;
use smbscope_load::bounded;
use std::io;
use std::path::Path;

const THRESHOLDS_MAX: u64 = 1 << 20;

pub fn catalogue(thresholds: Option<&Path>) -> Result<Catalogue, AnalysisError> {
    let Some(path) = thresholds else { return Ok(Catalogue::default()) };
    let unreadable = |error| AnalysisError::ThresholdsFile { path: path.to_owned(), error };
    let text = bounded::read(path, THRESHOLDS_MAX).map_err(unreadable)?;
    let text = String::from_utf8(text).map_err(|error| unreadable(io::Error::other(error)))?;
    Catalogue::with_thresholds(&text).map_err(|error| AnalysisError::Thresholds { path: path.to_owned(), error })
}

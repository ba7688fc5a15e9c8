//! Decodes data from other processes. Errors name the part at fault.

use super::super::{AnalysisError, AnalysisOptions, CaptureSetAnalysis};
use super::{AnalysisPlan, TravelError, from_bytes, merge};
use serde::de::DeserializeOwned;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug, Clone, Copy)]
pub struct SerializedParts<'a> {
    /// An [`AnalysisPlan`].
    pub plan: &'a [u8],
    /// One [`FilePart`](super::FilePart) each.
    pub files: &'a [Vec<u8>],
    /// One [`HostPairPart`](super::HostPairPart) each.
    pub parts: &'a [Vec<u8>],
}

impl SerializedParts<'_> {
    /// Merges all parts ([`merge`]) and passes the analysis to `make`. Values with a valid checksum may still
    /// contradict each other; the panic that causes becomes an error that names the value.
    pub fn merged<T>(
        &self,
        unread: &[String],
        options: &AnalysisOptions,
        make: impl Fn(CaptureSetAnalysis) -> Result<T, AnalysisError>,
    ) -> Result<T, AnalysisError> {
        let count = self.parts.len();
        let attempt = |without: Option<usize>| {
            let plan: AnalysisPlan = received(self.plan, || "the plan".to_owned())?;
            let parts = all(self.parts, "part", without)?;
            let files = all(self.files, "file", without.and_then(|place| place.checked_sub(count)))?;
            let merged = || merge(&plan, files, parts, unread.to_vec(), options).and_then(&make);
            Ok(catch_unwind(AssertUnwindSafe(merged)).ok())
        };
        let name = |place: usize| match place.checked_sub(count) {
            None => numbered("part", place, count),
            Some(file) => numbered("file", file, self.files.len()),
        };
        blaming(count + self.files.len(), name, attempt)?
    }
}

/// Decodes values and passes them to `make`. `what` names them in errors. Handles panics like
/// [`SerializedParts::merged`].
pub fn received_all<T: DeserializeOwned, R>(
    bytes: &[Vec<u8>],
    what: &str,
    make: impl Fn(Vec<T>) -> R,
) -> Result<R, AnalysisError> {
    let attempt = |without: Option<usize>| {
        let values = all(bytes, what, without)?;
        Ok(catch_unwind(AssertUnwindSafe(|| make(values))).ok())
    };
    blaming(bytes.len(), |place| numbered(what, place, bytes.len()), attempt)
}

/// Runs `attempt` on `count` values. If it fails, finds the value whose omission makes it succeed. `attempt` omits the
/// value at the given position and returns `None` if it panics.
fn blaming<R>(
    count: usize,
    name: impl Fn(usize) -> String,
    attempt: impl Fn(Option<usize>) -> Result<Option<R>, AnalysisError>,
) -> Result<R, AnalysisError> {
    if let Some(made) = attempt(None)? {
        return Ok(made);
    }
    let culprit = (0..count).find(|place| matches!(attempt(Some(*place)), Ok(Some(_))));
    let what = culprit.map_or_else(|| "the plan, or several of the parts".to_owned(), name);
    Err(AnalysisError::Received { what, error: TravelError::Damaged })
}

fn numbered(what: &str, place: usize, of: usize) -> String {
    format!("{what} {} of {of}", place + 1)
}

pub fn received<T: DeserializeOwned>(bytes: &[u8], what: impl FnOnce() -> String) -> Result<T, AnalysisError> {
    from_bytes(bytes).map_err(|error| AnalysisError::Received { what: what(), error })
}

fn all<T: DeserializeOwned>(several: &[Vec<u8>], what: &str, without: Option<usize>) -> Result<Vec<T>, AnalysisError> {
    let kept = several.iter().enumerate().filter(|(place, _)| Some(*place) != without);
    kept.map(|(place, bytes)| received(bytes, || numbered(what, place, several.len()))).collect()
}

//! One analysis by several processes, on one host or many.
//!
//! [`divide()`] reads one file and divides its TCP segments by host pairs into pieces, each in a file of its own.
//! [`follow()`] takes the pieces of some host pairs of all files, so that a connection can span a rotated set, and
//! returns a [`HostPairPart`]. [`merge`] combines all parts into the same [`CaptureSetAnalysis`] that a single process
//! would return, regardless of the number of parts and their order. Intermediate results travel between processes as
//! bytes ([`to_bytes`]).
//!
//! Two limits apply to each part separately: the memory for connection state, and the number of connections listed one
//! by one. A capture that exceeds them may get a more detailed report in parts. A datagram whose fragments are in two
//! files counts as incomplete. Options that depend on the order of exchanges are refused: groups by fields, and the
//! commands of an episode.

mod arrived;
mod divide;
mod follow;
mod ordinals;
mod plan;

pub use arrived::{SerializedParts, received, received_all};
pub use divide::{FilePart, divide};
pub use follow::{Pieces, follow};
pub use plan::AnalysisPlan;
pub use smbscope_model::travel::{TravelError, from_bytes, to_bytes};

use super::recorder::AggregatedExchanges;
use super::{AnalysisError, AnalysisOptions, AnalyzedCaptures, CaptureSetAnalysis};
use serde::{Deserialize, Serialize};
use smbscope_analyze::{Partial, coupled};

#[derive(Debug, Serialize, Deserialize)]
pub struct HostPairPart {
    partial: Partial,
    recorded: AggregatedExchanges,
}

/// Groups the indices of parts that share sessions and have to be followed together. Each part is in one group.
pub fn shared_sessions(parts: &[HostPairPart]) -> Vec<Vec<usize>> {
    let partials: Vec<&Partial> = parts.iter().map(|part| &part.partial).collect();
    coupled(&partials)
}

/// Combines all parts. `unread` lists the inputs that could not be read, with the reason, one per line.
pub fn merge(
    plan: &AnalysisPlan,
    files: Vec<FilePart>,
    parts: Vec<HostPairPart>,
    unread: Vec<String>,
    options: &AnalysisOptions,
) -> Result<CaptureSetAnalysis, AnalysisError> {
    let mut partial = Partial::default();
    files.into_iter().for_each(|file| partial.merge(file.partial));
    let mut recorded: Option<AggregatedExchanges> = None;
    for part in parts {
        partial.merge(part.partial);
        match &mut recorded {
            Some(all) => all.merge(part.recorded),
            None => recorded = Some(part.recorded),
        }
    }
    let recorded = recorded.ok_or(AnalysisError::InParts("there is no part to merge"))?;
    let found = AnalyzedCaptures { captures: plan.captures(), unread, analysis: partial.finish(), interrupted: false };
    found.refuse_without_smb(options)?;
    Ok(CaptureSetAnalysis { found, recorded })
}

fn refuse(options: &AnalysisOptions) -> Result<(), AnalysisError> {
    match options {
        AnalysisOptions { by, .. } if !by.is_empty() => {
            Err(AnalysisError::InParts("groups by fields depend on the order of exchanges: use one process for them"))
        }
        AnalysisOptions { episode: Some(_), .. } | AnalysisOptions { waterfall: true, .. } => {
            Err(AnalysisError::InParts("an episode is looked at by one process: choose it by a filter"))
        }
        _ => Ok(()),
    }
}

//! One analysis by several processes, on one host or many.
//!
//! [`divide()`] reads one file and divides its TCP segments by pairs of hosts into pieces, each in a file of its own. [`follow()`]
//! takes the pieces of some pairs of hosts of all files, so that a connection that lives through a rotated set is one, and
//! makes a [`Part`] of them. [`merge`] makes the [`Analysis`] of all parts, which is that of one process: in whatever number of
//! parts, whoever did them, in whatever order. What is divided, followed and merged travels between processes as bytes
//! ([`to_bytes`]).
//!
//! Two bounds are those of one process in each part: memory for connection state, and the connections that are listed one by
//! one; a capture that meets them may be told in more detail in parts. A datagram whose fragments lie in two files is taken
//! for incomplete. What depends on the order of exchanges is refused: groups by fields, and the commands of an episode.

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

/// What was found about some pairs of hosts.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostPairPart {
    partial: Partial,
    recorded: AggregatedExchanges,
}

/// Which parts share sessions, and have to be followed as one: groups of their indices, each part in one group.
pub fn shared_sessions(parts: &[HostPairPart]) -> Vec<Vec<usize>> {
    let partials: Vec<&Partial> = parts.iter().map(|part| &part.partial).collect();
    coupled(&partials)
}

/// The analysis of all parts. `unread` says which inputs could not be read, and why, a line each.
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

/// Refuses what can't be done in parts.
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

//! Errors of a capture analysis.

use smbscope_analyze::pipeline::RerunReason;
use smbscope_capture::reader::CaptureError;
use smbscope_diagnose::CatalogueError;
use smbscope_diagnose::whatif::Scenario;
use smbscope_model::travel::TravelError;
use smbscope_stats::filter::FilterError;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    #[error(transparent)]
    Capture(#[from] CaptureError),

    /// The inputs contain no SMB. The text describes the traffic they have instead.
    #[error("{0}")]
    NoSmb(String),

    /// Stopped before any SMB was read. Holds the names of the inputs.
    #[error("{0}: interrupted before any SMB was read")]
    Interrupted(String),

    #[error("cannot read {}: {error}", path.display())]
    ThresholdsFile {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("{}: {error}", path.display())]
    Thresholds {
        path: PathBuf,
        #[source]
        error: CatalogueError,
    },

    #[error("{0}")]
    Episode(String),

    #[error("--episode {number}: {error}")]
    EpisodeFilter {
        number: u32,
        #[source]
        error: FilterError,
    },

    #[error("--what-if {0}: the capture does not show the round trip of all connections of the episode")]
    WhatIf(Scenario),

    /// An intermediate file of an analysis in parts can't be written or read.
    #[error("{}: {error}", path.display())]
    Piece {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("cannot write the exchanges: {0}")]
    Table(#[source] io::Error),

    #[error("{what}: {error}")]
    Received {
        what: String,
        #[source]
        error: TravelError,
    },

    /// The options don't work in parts. The text says what to do instead.
    #[error("{0}")]
    InParts(&'static str),

    /// A bug: the most conservative pass failed as well.
    #[error("an analysis that takes nothing for granted failed: {0:?}")]
    Failed(RerunReason),
}

//! Why captures can't be analysed: what, where, what to do.

use smbscope_analyze::pipeline::RerunReason;
use smbscope_capture::reader::CaptureError;
use smbscope_diagnose::CatalogueError;
use smbscope_diagnose::whatif::Scenario;
use smbscope_model::travel::TravelError;
use smbscope_stats::filter::FilterError;
use std::io;
use std::path::PathBuf;

/// Why captures can't be analysed.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// An input can't be used.
    #[error(transparent)]
    Capture(#[from] CaptureError),

    /// There is no SMB in the inputs; it says what is.
    #[error("{0}")]
    NoSmb(String),

    /// It was ended before any SMB was read, of these inputs.
    #[error("{0}: interrupted before any SMB was read")]
    Interrupted(String),

    /// The file of thresholds can't be read.
    #[error("cannot read {}: {error}", path.display())]
    ThresholdsFile {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// The thresholds are none.
    #[error("{}: {error}", path.display())]
    Thresholds {
        /// The file that they are in.
        path: PathBuf,
        /// What is wrong with them.
        #[source]
        error: CatalogueError,
    },

    /// The episode can't be had; it says why.
    #[error("{0}")]
    Episode(String),

    /// The filter of an episode can't be made.
    #[error("--episode {number}: {error}")]
    EpisodeFilter {
        /// The episode.
        number: u32,
        /// What is wrong.
        #[source]
        error: FilterError,
    },

    /// The capture does not show what a prediction needs.
    #[error("--what-if {0}: the capture does not show the round trip of all connections of the episode")]
    WhatIf(Scenario),

    /// A file between two steps of an analysis in parts can't be written or read.
    #[error("{}: {error}", path.display())]
    Piece {
        /// Which one.
        path: PathBuf,
        /// What the system says, or what is wrong with it.
        #[source]
        error: io::Error,
    },

    /// A table of exchanges can't be written.
    #[error("cannot write the exchanges: {0}")]
    Table(#[source] io::Error),

    /// What another process sent is not what it should be.
    #[error("{what}: {error}")]
    Received {
        /// Which of the parts, by its place among them.
        what: String,
        /// What is wrong with it.
        #[source]
        error: TravelError,
    },

    /// It can't be done in parts; it says what to do instead.
    #[error("{0}")]
    InParts(&'static str),

    /// A bug: nothing was taken for granted, and yet it was wrong.
    #[error("an analysis that takes nothing for granted failed: {0:?}")]
    Failed(RerunReason),
}

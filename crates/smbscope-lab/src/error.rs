//! Why a server can't be had: what, where, what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a server could not be started, found or stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine can't run Samba, or not as it was asked for.
    #[error("{0}")]
    Unavailable(String),

    /// Settings that make no sense.
    #[error("{0}")]
    Settings(String),

    /// A server of this name runs already.
    #[error("a server named {0} runs already: choose another name, or stop that one with `smbscope lab down {0}`")]
    Taken(String),

    /// No server of this name runs.
    #[error("no server named {name} runs; {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Which there are, in words.
        known: String,
    },

    /// A server that ends with a process, and not by itself.
    #[error("the server {name} belongs to process {pid} and ends with it: end that process instead")]
    Owned {
        /// Its name.
        name: String,
        /// The process.
        pid: u32,
    },

    /// The process that a record names does not take care of that server.
    #[error(
        "process {pid} is not the one that takes care of the server {name}, and is left alone: remove {} if nothing of it runs any more",
        folder.display()
    )]
    Foreign {
        /// The server's name.
        name: String,
        /// The process.
        pid: u32,
        /// The server's folder.
        folder: PathBuf,
    },

    /// A file or folder could not be used.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried: `make`, `read`, `write`, `remove`.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// What went wrong in the process that takes care of the server.
    #[error("{0}")]
    Keeper(String),

    /// A program of Samba's failed, or said something that it should not.
    #[error("{program}: {said}")]
    Program {
        /// Which one.
        program: String,
        /// The line of its output that matters.
        said: String,
    },

    /// The server does not answer.
    #[error("the server does not answer after {seconds} s: {said}")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
        /// The last line of its log.
        said: String,
    },
}

impl LabError {
    /// For `map_err` after an operation on a path.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError {
        let path = path.to_owned();
        move |error| LabError::File { what, path, error }
    }
}

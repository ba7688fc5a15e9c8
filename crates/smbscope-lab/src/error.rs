//! Errors of starting, finding and stopping servers.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("{0}")]
    Unavailable(String),

    #[error("{0}")]
    Settings(String),

    #[error("a server named {0} runs already: choose another name, or stop that one with `smbscope lab down {0}`")]
    Taken(String),

    #[error("no server named {name} runs; {known}")]
    Unknown { name: String, known: String },

    #[error("the server {name} belongs to process {pid} and ends with it: end that process instead")]
    Owned { name: String, pid: u32 },

    #[error(
        "process {pid} does not own the server {name} and was not ended: remove {} if none of its processes are \
         running",
        folder.display()
    )]
    Foreign { name: String, pid: u32, folder: PathBuf },

    /// Failed file operation. `what` is a verb: `make`, `read`, `write`, `remove`.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("{0}")]
    Keeper(String),

    #[error("{program}: {said}")]
    Program { program: String, said: String },

    #[error("the server does not answer after {seconds} s: {said}")]
    Silent { seconds: u64, said: String },
}

impl LabError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError {
        let path = path.to_owned();
        move |error| LabError::File { what, path, error }
    }
}

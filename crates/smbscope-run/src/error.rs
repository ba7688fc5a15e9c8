//! Why a measurement can't be made or kept: what, where, what to do.

use smbscope_client::Foreign;
use smbscope_load::{engine, prepare};
use std::io;
use std::path::{Path, PathBuf};

/// Why a measurement can't be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// It was asked for what can't be had.
    #[error("{0}")]
    Unavailable(String),

    /// The name of the server leads nowhere.
    #[error("cannot find the server {host}: check its name, or use its address: {error}")]
    Host {
        /// What the target names.
        host: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// The private server.
    #[error("the private server did not start: {0}")]
    Lab(#[source] smbscope_lab::LabError),

    /// Whoever was to tell the password can't.
    #[error(transparent)]
    Password(Box<dyn std::error::Error + Send + Sync>),

    /// The first connection.
    #[error("cannot connect to {host}: {error}")]
    Connect {
        /// The server.
        host: String,
        /// Why not.
        #[source]
        error: smbscope_client::ClientError,
    },

    /// What listens there is no SMB server; it says where.
    #[error(transparent)]
    Foreign(Foreign),

    /// The files on the share.
    #[error(transparent)]
    Prepare(#[from] prepare::PrepareError),

    /// The user ended a run before its first load point: there is nothing to tell.
    #[error("interrupted while the files of the workload were made: what is there serves the next run")]
    Interrupted,

    /// The load generator.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),

    /// A thread of the load generator panicked.
    #[error("the load generator broke down; please report this")]
    Broken,

    /// A file of the results.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried: `write`, `remove` …
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// An earlier run is not given for nothing.
    #[error("nothing was measured: the earlier run in {} was kept", .0.display())]
    NothingMeasured(PathBuf),

    /// What the system has not enough of.
    #[error("no {what}: {error}")]
    System {
        /// `temporary directory`, `thread for the load generator` …
        what: &'static str,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

impl BenchError {
    /// For `map_err` after an operation on a path.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BenchError {
        let path = path.to_owned();
        move |error| BenchError::File { what, path, error }
    }

    /// For `map_err` where the system has not enough of something.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> BenchError {
        move |error| BenchError::System { what, error }
    }
}

/// An error with its causes in one line. What a cause repeats is said once.
pub fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let causes = std::iter::successors(Some(error), |error| error.source());
    for cause in causes.map(ToString::to_string) {
        match text.as_str() {
            "" => text = cause,
            said if said.contains(&cause) => {}
            _ => text += &format!(": {cause}"),
        }
    }
    text.replace("\r\n", " ").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_without_repetition() {
        let error = BenchError::Lab(smbscope_lab::LabError::File {
            what: "read",
            path: "x".into(),
            error: io::Error::other("no such\nfile"),
        });
        assert_eq!(one_line(&error), "the private server did not start: cannot read x: no such file");
    }
}

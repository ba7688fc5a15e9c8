//! Errors of a benchmark run.

use smbscope_client::Foreign;
use smbscope_load::{engine, prepare};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The request can't be met: the text says why and what to do instead.
    #[error("{0}")]
    Unavailable(String),

    #[error("cannot find the server {host}: check its name, or use its address: {error}")]
    Host {
        host: String,
        #[source]
        error: io::Error,
    },

    #[error("the private server did not start: {0}")]
    Lab(#[source] smbscope_lab::LabError),

    #[error(transparent)]
    Password(Box<dyn std::error::Error + Send + Sync>),

    #[error("cannot connect to {host}: {error}")]
    Connect {
        host: String,
        #[source]
        error: smbscope_client::ClientError,
    },

    /// The port is open, but the peer doesn't speak SMB.
    #[error(transparent)]
    Foreign(Foreign),

    #[error(transparent)]
    Prepare(#[from] prepare::PrepareError),

    /// Interrupted before the first load point, so there are no results.
    #[error("interrupted while the files of the workload were made: the next run continues from there")]
    Interrupted,

    #[error(transparent)]
    Engine(#[from] engine::EngineError),

    #[error("the load generator broke down; please report this")]
    Broken,

    #[error("cannot {what} {}: {error}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    /// The new run completed no operation, so it doesn't replace the earlier one.
    #[error("nothing was measured: the earlier run in {} was kept", .0.display())]
    NothingMeasured(PathBuf),

    #[error("no {what}: {error}")]
    System {
        what: &'static str,
        #[source]
        error: io::Error,
    },
}

impl BenchError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BenchError {
        let path = path.to_owned();
        move |error| BenchError::File { what, path, error }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> BenchError {
        move |error| BenchError::System { what, error }
    }
}

/// Formats an error and its causes in one line. Skips a cause that an earlier part already contains.
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

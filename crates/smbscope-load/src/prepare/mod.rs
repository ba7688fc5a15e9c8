//! Puts the files of a workload on the share, and removes them.
//!
//! Everything is below one directory that smbscope made itself, which a marker file in it proves: [`prepare`] takes
//! over no directory that holds anything else, and [`clean`] removes none without the marker. What is there already
//! and fits is kept, so a preparation that was interrupted, or that needs more users than the last one, goes on where
//! that one ended.
//!
//! A server may follow links and show what is behind them as directories, so only names are removed, and only
//! directories looked at, that smbscope made: numbered ones, and those that the marker lists. What else is there stays,
//! and with it the directory and its marker, so that cleaning can be repeated.

mod job;
mod marker;
mod share;
#[cfg(test)]
mod tests;

use crate::workload::NAMES_MAX;
use crate::workload::{CreatedPaths, FileSet};
use share::SessionConnector;
use smbscope_client::SessionOptions;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

/// What the directory is called where nobody says otherwise.
pub const DEFAULT_DIRECTORY: &str = "smbscope-bench";

/// What is to be there.
#[derive(Debug, Clone)]
pub struct PrepareRequest<'a> {
    /// The directory on the share, without a backslash at either end: see [`directory_below`].
    pub directory: &'a str,
    /// The name of the workload: for whoever reads the marker.
    pub workload: &'a str,
    /// The files.
    pub files: &'a FileSet,
    /// What the workload makes below the directories of users, beside them.
    pub made: &'a CreatedPaths,
    /// How many users are to have theirs.
    pub users: u32,
    /// Sessions to work with at the same time.
    pub sessions: u32,
    /// How long all of it may take.
    pub within: Duration,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareProgress {
    /// Files that are there, those found included.
    pub files: u64,
    /// Files that must be there in the end; 0 where nobody knows.
    pub of_files: u64,
    /// Bytes that are there.
    pub bytes: u64,
    /// Bytes that must be there in the end.
    pub of_bytes: u64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    /// Files that were there already.
    pub found: u64,
    /// Files that were made.
    pub made: u64,
    /// Their bytes.
    pub bytes_written: u64,
    /// Files and directories of another workload that were removed first.
    pub removed: u64,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanupResult {
    /// Files and directories; 0 where there was nothing.
    pub removed: u64,
    /// What smbscope did not make, and left with the directories that hold it. A server may hide some of it.
    pub left: ForeignEntries,
}

/// What is in the directory and not smbscope's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForeignEntries {
    /// Files, directories and links.
    pub count: u64,
    /// Paths of the first of them.
    pub paths: Vec<String>,
}

impl ForeignEntries {
    fn add(&mut self, path: String) {
        self.count += 1;
        if self.paths.len() < LEFT_NAMED_MAX {
            self.paths.push(path);
        }
    }
}

/// Paths that are named of what is left.
const LEFT_NAMED_MAX: usize = 5;

/// Why the share cannot be prepared or cleaned.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The server refused, or the session broke.
    #[error("cannot {what}: {error}{}", advice(.error))]
    Client {
        /// What was being done, with the path.
        what: String,
        /// Why it failed.
        #[source]
        error: smbscope_client::ClientError,
    },

    /// The directory is somebody else's.
    #[error(
        "{directory} on the share was not made by smbscope: it {why}; give another directory, or remove it yourself"
    )]
    NotOurs {
        /// The directory.
        directory: String,
        /// What shows it.
        why: &'static str,
    },

    /// What is behind it may be anywhere.
    #[error("{path} on the share is a reparse point, which smbscope neither follows nor removes; remove it yourself")]
    ReparsePoint {
        /// The path.
        path: String,
    },

    /// The server answers, and it takes too long.
    #[error("{what} took longer than {} s: what is there serves the next run; allow more with --prepare-timeout", .within.as_secs_f64())]
    TooLong {
        /// `preparing the files`, `cleaning`
        what: &'static str,
        /// The limit.
        within: Duration,
    },

    /// A workload with more names than a marker can hold.
    #[error("the workload makes files with more than {NAMES_MAX} bytes of names: use a smaller loadfile")]
    Names,

    /// The directory cannot be one.
    #[error("{what}; give a directory below the root of the share, such as {DEFAULT_DIRECTORY}")]
    Directory {
        /// What is wrong.
        what: String,
    },
}

/// What to do where the server refused.
fn advice(error: &smbscope_client::ClientError) -> &'static str {
    match error.status() {
        Some(NtStatus::ACCESS_DENIED | NtStatus::MEDIA_WRITE_PROTECTED) => {
            "; this user may not write there, or nobody may: choose another user or directory"
        }
        Some(NtStatus::DISK_FULL) => {
            "; make room on the share, or use fewer users or a workload with smaller files; `smbscope bench clean` removes \
             what was made"
        }
        Some(NtStatus::DIRECTORY_NOT_EMPTY) => "; somebody still has files in it open: try again when they are closed",
        Some(NtStatus::OBJECT_PATH_NOT_FOUND) => "; make the directory that the target names first",
        _ => "",
    }
}

/// The directory to work in: [`DEFAULT_DIRECTORY`] below one that the user named, or below the root.
pub fn directory_below(base: &str) -> Result<String, PrepareError> {
    let base = crate::workload::relative_path(base).map_err(|what| PrepareError::Directory { what })?;
    Ok(if base.is_empty() { DEFAULT_DIRECTORY.to_owned() } else { format!("{base}\\{DEFAULT_DIRECTORY}") })
}

/// Puts there what is missing, in several sessions at the same time; `progress` hears of every file.
pub async fn prepare(
    options: &SessionOptions,
    request: &PrepareRequest<'_>,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<Prepared, PrepareError> {
    let what = "preparing the files";
    within(request.within, what, job::prepare(&SessionConnector(options), request, progress)).await
}

/// Removes what smbscope made in the directory, and with it the directory, if nothing else is in it.
pub async fn clean(
    options: &SessionOptions,
    directory: &str,
    sessions: u32,
    limit: Duration,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<CleanupResult, PrepareError> {
    within(limit, "cleaning", job::clean(&SessionConnector(options), directory, sessions, progress)).await
}

/// What is done within a time, or an error that says what took too long.
async fn within<T>(
    limit: Duration,
    what: &'static str,
    job: impl Future<Output = Result<T, PrepareError>>,
) -> Result<T, PrepareError> {
    tokio::time::timeout(limit, job).await.unwrap_or(Err(PrepareError::TooLong { what, within: limit }))
}

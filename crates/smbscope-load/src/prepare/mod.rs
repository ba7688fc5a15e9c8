//! Creates the files of a workload on the share, and removes them again.
//!
//! All files are below one directory that smbscope created itself, as a marker file in it proves: [`prepare`] never
//! takes over a non-empty directory without the marker, and [`clean`] never removes one. Files that match are kept, so
//! a preparation that was interrupted, or that now needs more users, continues from there.
//!
//! A server may follow links and show their targets as directories. Therefore only names that smbscope itself creates
//! are listed or removed: numbered names and those in the marker. Everything else stays, along with the directory and
//! its marker, so that cleanup can be repeated. Start reading at `job.rs`.

mod job;
mod share;
#[cfg(test)]
mod tests;

use crate::workload::NAMES_MAX;
use crate::workload::{CreatedPaths, FileSet};
use share::SessionConnector;
use smbscope_client::SessionOptions;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

pub const DEFAULT_DIRECTORY: &str = "smbscope-bench";

#[derive(Debug, Clone)]
pub struct PrepareRequest<'a> {
    /// Directory on the share without a leading or trailing backslash: see [`directory_below`].
    pub directory: &'a str,
    pub workload: &'a str,
    pub files: &'a FileSet,
    /// Names that the workload creates in the users' directories, in addition to the file set.
    pub made: &'a CreatedPaths,
    pub users: u32,
    pub sessions: u32,
    pub within: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareProgress {
    /// Files done, including those found.
    pub files: u64,
    /// Files in total, or 0 if the total is unknown.
    pub of_files: u64,
    pub bytes: u64,
    pub of_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    pub found: u64,
    pub made: u64,
    pub bytes_written: u64,
    /// Files and directories of another workload that were removed first.
    pub removed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanupResult {
    pub removed: u64,
    /// Entries that smbscope did not create. They stay, with the directories that hold them. A server may hide some.
    pub left: ForeignEntries,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForeignEntries {
    pub count: u64,
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

/// Names that `clean` lists as kept.
const LEFT_NAMED_MAX: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("cannot {what}: {error}{}", advice(.error))]
    Client {
        what: String,
        #[source]
        error: smbscope_client::ClientError,
    },

    #[error(
        "{directory} on the share was not made by smbscope: it {why}; give another directory, or remove it yourself"
    )]
    NotOurs {
        directory: String,
        /// Evidence, as a predicate of the message.
        why: &'static str,
    },

    /// Its target may be anywhere.
    #[error("{path} on the share is a reparse point, which smbscope neither follows nor removes; remove it yourself")]
    ReparsePoint { path: String },

    #[error("{what} took longer than {} s: the next run continues from there; allow more with --prepare-timeout", .within.as_secs_f64())]
    TooLong { what: &'static str, within: Duration },

    #[error("the workload makes files with more than {NAMES_MAX} bytes of names: use a smaller loadfile")]
    Names,

    #[error("{what}; give a directory below the root of the share, such as {DEFAULT_DIRECTORY}")]
    Directory { what: String },
}

fn advice(error: &smbscope_client::ClientError) -> &'static str {
    match error.status() {
        Some(NtStatus::ACCESS_DENIED | NtStatus::MEDIA_WRITE_PROTECTED) => {
            "; the share is read-only, at least for this user: choose another user or directory"
        }
        Some(NtStatus::DISK_FULL) => {
            "; make room on the share, or use fewer users or a workload with smaller files; `smbscope bench clean` \
             removes the files"
        }
        Some(NtStatus::DIRECTORY_NOT_EMPTY) => "; files in it are still open: try again when they are closed",
        Some(NtStatus::OBJECT_PATH_NOT_FOUND) => "; make the directory that the target names first",
        _ => "",
    }
}

/// Returns [`DEFAULT_DIRECTORY`] below a directory, or below the root if `base` is empty.
pub fn directory_below(base: &str) -> Result<String, PrepareError> {
    let base = crate::workload::relative_path(base).map_err(|what| PrepareError::Directory { what })?;
    Ok(if base.is_empty() { DEFAULT_DIRECTORY.to_owned() } else { format!("{base}\\{DEFAULT_DIRECTORY}") })
}

/// Creates the missing files over several concurrent sessions. Calls `progress` after every file.
pub async fn prepare(
    options: &SessionOptions,
    request: &PrepareRequest<'_>,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<Prepared, PrepareError> {
    let what = "preparing the files";
    within(request.within, what, job::prepare(&SessionConnector(options), request, progress)).await
}

/// Removes everything that smbscope created in the directory, then the directory itself if it is empty.
pub async fn clean(
    options: &SessionOptions,
    directory: &str,
    sessions: u32,
    limit: Duration,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<CleanupResult, PrepareError> {
    within(limit, "cleaning", job::clean(&SessionConnector(options), directory, sessions, progress)).await
}

/// Runs `job` with a time limit. `what` names the activity in the timeout error.
async fn within<T>(
    limit: Duration,
    what: &'static str,
    job: impl Future<Output = Result<T, PrepareError>>,
) -> Result<T, PrepareError> {
    tokio::time::timeout(limit, job).await.unwrap_or(Err(PrepareError::TooLong { what, within: limit }))
}

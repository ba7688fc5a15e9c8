//! Creates the files of a workload on the share, and removes them again. The share is a trait of a few operations, so
//! that tests need no server.
//!
//! All files are below one directory that smbscope created itself, as a marker file in it proves: [`prepare`] never
//! takes over a non-empty directory without the marker, and [`clean`] never removes one. Files that match are kept, so
//! a preparation that was interrupted, or that now needs more users, continues from there.
//!
//! A server may follow links and show their targets as directories. Therefore only names that smbscope itself creates
//! are listed or removed: numbered names and those in the marker. Everything else stays, along with the directory and
//! its marker, so that cleanup can be repeated. Start reading at `job.rs`.

mod job;
#[cfg(test)]
mod tests;

use crate::workload::{CreatedPaths, FileSet, NAMES_MAX};
use serde::{Deserialize, Serialize};
use smbscope_client::{
    ClientSession, CreateDisposition, Info, ListingEntry, OpenParameters, SessionOptions, access, create_options,
};
use smbscope_stats::Random;
use smbscope_wire::status::NtStatus;
use std::time::{Duration, Instant};

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

const BLOCK: u64 = 256 * 1024;
const SHARE_ALL: u32 = 0x7;
/// Total time to wait until removed files are closed by all their users, and the interval between attempts.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

trait ShareAccess {
    /// Lists a directory without `.` and `..`. Returns `None` if it does not exist.
    async fn list(&mut self, directory: &str) -> Result<Option<Vec<ListingEntry>>, smbscope_client::ClientError>;

    /// Creates a directory. Succeeds if it already exists.
    async fn make_directory(&mut self, path: &str) -> Result<(), smbscope_client::ClientError>;

    async fn read(&mut self, path: &str, most: u32) -> Result<Option<Vec<u8>>, smbscope_client::ClientError>;

    /// Writes a new file, replacing one of the same name, so that nothing is ever written through a link.
    async fn write(&mut self, path: &str, content: FileContent<'_>) -> Result<(), smbscope_client::ClientError>;

    async fn rename(&mut self, from: &str, to: &str) -> Result<(), smbscope_client::ClientError>;

    async fn remove_file(&mut self, path: &str) -> Result<(), smbscope_client::ClientError>;

    async fn remove_directory(&mut self, path: &str) -> Result<(), smbscope_client::ClientError>;

    async fn disconnect(&mut self);
}

enum FileContent<'a> {
    Bytes(&'a [u8]),
    Random(u64, Random),
}

trait ShareConnector {
    type Share: ShareAccess;

    async fn connect(&self) -> Result<Self::Share, smbscope_client::ClientError>;
}

struct SessionConnector<'a>(&'a SessionOptions);

impl ShareConnector for SessionConnector<'_> {
    type Share = SessionShare;

    async fn connect(&self) -> Result<SessionShare, smbscope_client::ClientError> {
        let session = ClientSession::connect(self.0).await?;
        Ok(SessionShare { session, block: Vec::new(), patience: CLOSED_WITHIN })
    }
}

struct SessionShare {
    session: ClientSession,
    block: Vec<u8>,
    patience: Duration,
}

impl ShareAccess for SessionShare {
    async fn list(&mut self, directory: &str) -> Result<Option<Vec<ListingEntry>>, smbscope_client::ClientError> {
        let mut entries = Vec::new();
        let pattern = format!("{directory}\\*");
        let listed = self.session.list(&pattern, Info::FILE_BOTH_DIRECTORY_INFORMATION, 0, Some(&mut entries)).await;
        self.session.samples().clear();
        match listed {
            Ok(_) => {
                entries.retain(|entry| entry.name != "." && entry.name != "..");
                Ok(Some(entries))
            }
            Err(error) if error.status() == Some(NtStatus::NO_SUCH_FILE) => Ok(Some(Vec::new())),
            Err(error) => absent(error),
        }
    }

    async fn make_directory(&mut self, path: &str) -> Result<(), smbscope_client::ClientError> {
        let made = self.session.make_directory(path).await;
        self.session.samples().clear();
        match made {
            Err(error) if error.status() != Some(NtStatus::OBJECT_NAME_COLLISION) => Err(error),
            _ => Ok(()),
        }
    }

    async fn read(&mut self, path: &str, most: u32) -> Result<Option<Vec<u8>>, smbscope_client::ClientError> {
        let open = OpenParameters {
            path,
            access: access::READ_DATA | access::READ_ATTRIBUTES,
            share: SHARE_ALL,
            disposition: CreateDisposition::Open,
            options: create_options::NON_DIRECTORY,
            attributes: 0,
        };
        let opened = match self.session.open(&open).await {
            Ok(opened) => opened,
            Err(error) => return absent(error),
        };
        let bytes = match self.session.read(opened.handle, 0, most).await {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(error) if error.status() == Some(NtStatus::END_OF_FILE) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let bytes = bytes?;
        self.session.close(opened.handle).await?;
        self.session.samples().clear();
        Ok(Some(bytes))
    }

    async fn write(&mut self, path: &str, content: FileContent<'_>) -> Result<(), smbscope_client::ClientError> {
        let open = OpenParameters {
            path,
            access: access::WRITE_DATA | access::READ_ATTRIBUTES,
            share: SHARE_ALL,
            disposition: CreateDisposition::Create,
            options: create_options::NON_DIRECTORY,
            attributes: 0,
        };
        let handle = match self.session.open(&open).await {
            Err(error) if error.status() == Some(NtStatus::OBJECT_NAME_COLLISION) => {
                self.session.remove_file(path).await?;
                self.session.open(&open).await?.handle
            }
            opened => opened?.handle,
        };
        match content {
            FileContent::Bytes(bytes) => self.session.write(handle, 0, bytes).await?,
            FileContent::Random(size, mut random) => {
                for offset in (0..size).step_by(BLOCK as usize) {
                    self.block.resize((size - offset).min(BLOCK) as usize, 0);
                    random.fill(&mut self.block);
                    self.session.write(handle, offset, &self.block).await?;
                }
            }
        }
        let closed = self.session.close(handle).await;
        self.session.samples().clear();
        closed
    }

    async fn rename(&mut self, from: &str, to: &str) -> Result<(), smbscope_client::ClientError> {
        let renamed = self.session.rename(from, to).await;
        self.session.samples().clear();
        renamed
    }

    async fn remove_file(&mut self, path: &str) -> Result<(), smbscope_client::ClientError> {
        let removed = self.session.remove_file(path).await;
        self.session.samples().clear();
        removed
    }

    async fn remove_directory(&mut self, path: &str) -> Result<(), smbscope_client::ClientError> {
        loop {
            let begun = Instant::now();
            let removed = self.session.remove_directory(path).await;
            self.session.samples().clear();
            // A removed file lingers until its last handle is closed, for example by a session that was cut off and
            // that the server has not yet noticed.
            let is_pending = removed.as_ref().is_err_and(|e| e.status() == Some(NtStatus::DIRECTORY_NOT_EMPTY));
            if !is_pending || self.patience.is_zero() {
                return removed;
            }
            tokio::time::sleep(PAUSE).await;
            self.patience = self.patience.saturating_sub(begun.elapsed());
        }
    }

    async fn disconnect(&mut self) {
        // The result is irrelevant: every operation was answered before.
        let _ = self.session.disconnect().await;
    }
}

fn absent<T>(error: smbscope_client::ClientError) -> Result<Option<T>, smbscope_client::ClientError> {
    match error.status() {
        Some(NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::OBJECT_PATH_NOT_FOUND | NtStatus::NO_SUCH_FILE) => Ok(None),
        _ => Err(error),
    }
}

const MARKER_NAME: &str = "smbscope-bench.toml";
/// Name while the marker is being written. An interrupted preparation leaves it there.
const MARKER_NEW_NAME: &str = "smbscope-bench.toml.new";
/// Size limit in bytes. A larger file is not a marker.
const MARKER_LARGEST: u32 = 16 << 20;

const MARKER_KIND: &str = "smbscope.bench-directory/1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    made_by: String,
    workload: String,
    /// Number of users that have all their files. Written once they do.
    users: u32,
    /// Names that workloads create in the users' directories, apart from numbered ones.
    #[serde(default)]
    names: Vec<String>,
    files: FileSet,
}

impl Marker {
    fn new(workload: &str, users: u32, files: &FileSet, made: &CreatedPaths) -> Marker {
        let names = made.names().map(str::to_owned).collect();
        Marker { made_by: MARKER_KIND.to_owned(), workload: workload.to_owned(), users, names, files: files.clone() }
    }

    fn made(&self) -> CreatedPaths {
        CreatedPaths::new(self.names.iter().map(String::as_str))
    }

    fn is_name(name: &str) -> bool {
        name.eq_ignore_ascii_case(MARKER_NAME) || name.eq_ignore_ascii_case(MARKER_NEW_NAME)
    }

    fn to_text(&self) -> String {
        let about =
            "# This directory belongs to `smbscope bench`, which removes what it made in it: put nothing here.\n";
        // Numbers, strings and lists of them always serialise to TOML.
        format!("{about}{}", toml::to_string(self).unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Option<Marker> {
        let marker: Marker = toml::from_str(str::from_utf8(text).ok()?).ok()?;
        (marker.made_by == MARKER_KIND).then_some(marker)
    }
}

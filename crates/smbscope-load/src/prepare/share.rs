//! The share during preparation: a few operations, as a trait so that tests need no server, and the marker file that
//! proves that a directory is smbscope's and records its content.

use crate::workload::{CreatedPaths, FileSet};
use serde::{Deserialize, Serialize};
use smbscope_client::{
    ClientSession, CreateDisposition, Info, ListingEntry, OpenParameters, SessionOptions, access, create_options,
};
use smbscope_stats::Random;
use smbscope_wire::status::NtStatus;
use std::time::{Duration, Instant};

const BLOCK: u64 = 256 * 1024;
const SHARE_ALL: u32 = 0x7;
/// Total time to wait until removed files are closed by all their users, and the interval between attempts.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

pub(super) trait ShareAccess {
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

pub(super) enum FileContent<'a> {
    Bytes(&'a [u8]),
    Random(u64, Random),
}

pub(super) trait ShareConnector {
    type Share: ShareAccess;

    async fn connect(&self) -> Result<Self::Share, smbscope_client::ClientError>;
}

pub(super) struct SessionConnector<'a>(pub(super) &'a SessionOptions);

impl ShareConnector for SessionConnector<'_> {
    type Share = SessionShare;

    async fn connect(&self) -> Result<SessionShare, smbscope_client::ClientError> {
        let session = ClientSession::connect(self.0).await?;
        Ok(SessionShare { session, block: Vec::new(), patience: CLOSED_WITHIN })
    }
}

pub(super) struct SessionShare {
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

pub(super) const MARKER_NAME: &str = "smbscope-bench.toml";
/// Name while the marker is being written. An interrupted preparation leaves it there.
pub(super) const MARKER_NEW_NAME: &str = "smbscope-bench.toml.new";
/// Size limit in bytes. A larger file is not a marker.
pub(super) const MARKER_LARGEST: u32 = 16 << 20;

const MARKER_KIND: &str = "smbscope.bench-directory/1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    made_by: String,
    pub(super) workload: String,
    /// Number of users that have all their files. Written once they do.
    pub(super) users: u32,
    /// Names that workloads create in the users' directories, apart from numbered ones.
    #[serde(default)]
    names: Vec<String>,
    pub(super) files: FileSet,
}

impl Marker {
    pub(super) fn new(workload: &str, users: u32, files: &FileSet, made: &CreatedPaths) -> Marker {
        let names = made.names().map(str::to_owned).collect();
        Marker { made_by: MARKER_KIND.to_owned(), workload: workload.to_owned(), users, names, files: files.clone() }
    }

    pub(super) fn made(&self) -> CreatedPaths {
        CreatedPaths::new(self.names.iter().map(String::as_str))
    }

    pub(super) fn is_name(name: &str) -> bool {
        name.eq_ignore_ascii_case(MARKER_NAME) || name.eq_ignore_ascii_case(MARKER_NEW_NAME)
    }

    pub(super) fn to_text(&self) -> String {
        let about =
            "# This directory belongs to `smbscope bench`, which removes what it made in it: put nothing here.\n";
        // Numbers, strings and lists of them always serialise to TOML.
        format!("{about}{}", toml::to_string(self).unwrap_or_default())
    }

    pub(super) fn parse(text: &[u8]) -> Option<Marker> {
        let marker: Marker = toml::from_str(str::from_utf8(text).ok()?).ok()?;
        (marker.made_by == MARKER_KIND).then_some(marker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::SizeDistribution;

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let sizes = [
            SizeDistribution::Fixed(4096),
            SizeDistribution::Uniform(1, 9),
            SizeDistribution::Weighted(vec![(1, 2), (u64::from(u32::MAX) + 1, 4)]),
        ];
        for sizes in sizes {
            let files =
                FileSet { own_directories: true, shared: false, directories: 2, nested: 0, files: 3, sizes, seed: 4 };
            let made = CreatedPaths::new(["a\"b\\c"].into_iter());
            let marker = Marker::new("a \"name\"", 5, &files, &made);
            assert_eq!(marker.made(), made);
            assert_eq!(Marker::parse(marker.to_text().as_bytes()), Some(marker));
        }
    }

    #[test]
    fn another_file_of_the_same_name_is_no_marker() {
        assert_eq!(Marker::parse(b""), None);
        assert_eq!(Marker::parse(b"\xff\xfe"), None);
        let other =
            Marker { made_by: "x".to_owned(), ..Marker::new("w", 0, &FileSet::none(), &CreatedPaths::default()) };
        assert_eq!(Marker::parse(other.to_text().as_bytes()), None);
    }
}

//! Operations on paths of a local folder, each made of an open, the operation and a close, as in an SMB2 client.

use super::LocalSession;
use super::files::local;
use crate::ClientError;
use crate::file::{Info, ListingEntry, OpenParameters, access, options};
use crate::limits::Listing;
use crate::local::{LocalCallDetails, LocalRefusal};
use cap_std::fs::DirEntry;
use smbscope_model::Subcommand;
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::status::NtStatus;
use std::io;

/// FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL and FILE_ATTRIBUTE_REPARSE_POINT (MS-FSCC 2.6).
const DIRECTORY: u32 = 0x10;
const NORMAL: u32 = 0x80;
const REPARSE_POINT: u32 = 0x400;

impl LocalSession {
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        let handle = self.open(&OpenParameters::existing(path, access::READ_ATTRIBUTES, 0)).await?.handle;
        let queried = self.query_file(handle, info).await.map(drop);
        let closed = self.close(handle).await;
        queried.and(closed).map(|()| [].as_slice())
    }

    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        self.query_path("", info).await
    }

    /// Lists the entries that match the last part of the path, at most `most` of them unless it is 0.
    pub async fn list(
        &mut self,
        pattern: &str,
        info: Info,
        most: usize,
        mut entries: Option<&mut Vec<ListingEntry>>,
    ) -> Result<usize, ClientError> {
        if let Some(entries) = &mut entries {
            entries.clear();
        }
        let (path, pattern) = pattern.rsplit_once('\\').unwrap_or(("", pattern));
        let open = OpenParameters::existing(path, access::READ_DATA | access::READ_ATTRIBUTES, options::DIRECTORY);
        let handle = self.open(&open).await?.handle;
        let about = LocalCallDetails { subcommand: Some(Subcommand::Info(info)), ..LocalCallDetails::file(handle) };
        let path = local(path);
        let mut found = Vec::new();
        let listed = self.call(Smb2Command::QUERY_DIRECTORY, about, |session| {
            for entry in session.root.read_dir(&path)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if matches(pattern, &name) {
                    found.push(read(&entry, name)?);
                    if found.len() == most {
                        break;
                    }
                }
            }
            // A server's answer to a pattern without matches. "." matches every other pattern (MS-SMB2 3.3.5.18).
            if found.is_empty() && !matches(pattern, ".") {
                Err(LocalRefusal(NtStatus::NO_SUCH_FILE))
            } else {
                Ok(found.len())
            }
        });
        let listed = listed.await;
        let mut limit = Listing::new(0, None, self.timeout);
        let listed = listed.and_then(|count| {
            found.iter().try_for_each(|entry| limit.entry(entry.name.len()))?;
            if let Some(entries) = entries {
                *entries = found;
            }
            Ok(count)
        });
        let closed = self.close(handle).await;
        listed.and_then(|count| closed.map(|()| count))
    }
}

/// Reads an entry's metadata. An entry removed in the meantime has size 0.
fn read(entry: &DirEntry, name: String) -> io::Result<ListingEntry> {
    let metadata = match entry.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ListingEntry { name, size: 0, attributes: NORMAL });
        }
        metadata => metadata?,
    };
    let attributes = match (metadata.is_dir(), metadata.is_symlink()) {
        (_, true) => REPARSE_POINT,
        (true, false) => DIRECTORY,
        (false, false) => NORMAL,
    };
    Ok(ListingEntry { name, size: metadata.len(), attributes })
}

/// Matches `*` and `?`; `*.*` matches every name (MS-FSA 2.1.4.4). Case-sensitive, like the file system.
fn matches(pattern: &str, name: &str) -> bool {
    pattern == "*.*" || wildmatch::WildMatch::new(pattern).matches(name)
}

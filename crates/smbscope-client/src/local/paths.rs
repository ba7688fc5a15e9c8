//! Operations on paths of a local folder, each made of an open, the operation and a close, as in an SMB2 client.

use super::LocalSession;
use super::files::local;
use crate::file::{CreateDisposition, FileHandle, Info, ListingEntry, OpenParameters, SetInfo, access, options};
use crate::limits::Listing;
use crate::local::{LocalCallDetails, LocalRefusal};
use crate::{ClientError, create_options};
use cap_std::fs::DirEntry;
use smbscope_model::Subcommand;
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::status::NtStatus;
use std::io;

/// FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL and FILE_ATTRIBUTE_REPARSE_POINT (MS-FSCC 2.6).
const DIRECTORY: u32 = 0x10;
const NORMAL: u32 = 0x80;
const REPARSE_POINT: u32 = 0x400;

fn existing(path: &str, access: u32, options: u32) -> OpenParameters<'_> {
    OpenParameters { path, access, share: 7, disposition: CreateDisposition::Open, options, attributes: 0 }
}

impl LocalSession {
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        let handle = self.open(&existing(path, access::READ_ATTRIBUTES, 0)).await?.handle;
        let result = self.query_file(handle, info).await.map(drop);
        self.close_after(handle, result).await?;
        Ok(&[])
    }

    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        self.query_path("", info).await
    }

    pub async fn remove_file(&mut self, path: &str) -> Result<(), ClientError> {
        let options = create_options::NON_DIRECTORY | create_options::DELETE_ON_CLOSE;
        let handle = self.open(&existing(path, access::DELETE, options)).await?.handle;
        self.close(handle).await
    }

    pub async fn rename(&mut self, from: &str, to: &str) -> Result<(), ClientError> {
        let handle = self.open(&existing(from, access::DELETE | access::READ_ATTRIBUTES, 0)).await?.handle;
        let result = self.set_file(handle, SetInfo::Rename { path: to, replace: false }).await;
        self.close_after(handle, result).await
    }

    pub async fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let wanted = existing(path, access::READ_ATTRIBUTES, options::DIRECTORY);
        let handle = self.open(&OpenParameters { disposition: CreateDisposition::Create, ..wanted }).await?.handle;
        self.close(handle).await
    }

    pub async fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let handle = self.open(&existing(path, access::DELETE, options::DIRECTORY)).await?.handle;
        let result = self.set_file(handle, SetInfo::Delete(true)).await;
        self.close_after(handle, result).await
    }

    pub async fn open_read_close(&mut self, path: &str, offset: u64, length: u32) -> Result<u64, ClientError> {
        let open = existing(path, access::READ_DATA | access::READ_ATTRIBUTES, create_options::NON_DIRECTORY);
        let handle = self.open(&open).await?.handle;
        let result = self.skim(handle, offset, length).await;
        self.close_after(handle, result).await
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
        let open = existing(path, access::READ_DATA | access::READ_ATTRIBUTES, options::DIRECTORY);
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
        self.close_after(handle, listed).await
    }

    async fn close_after<T>(&mut self, handle: FileHandle, result: Result<T, ClientError>) -> Result<T, ClientError> {
        let closed = self.close(handle).await;
        let value = result?;
        closed.map(|()| value)
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

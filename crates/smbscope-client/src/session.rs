//! A user's session on a share in any dialect, used by workloads and the load engine.
//!
//! Each operation sends the commands that a client of the dialect would send, and keeps a sample of each in
//! [`ClientSession::samples`]. A refusal returns [`ClientError::Status`], and the session stays usable.

use super::file::{
    ByteRangeLock, CreateDisposition, FileHandle, FileRange, FsctlProfile, Info, ListingEntry, Moved, OpenParameters,
    OpenResult, SetInfo, TransferDirection, TreeConnectTarget, WholeFile, access, options,
};
use super::limits::CONNECT_TIMEOUTS;
use super::options::SessionOptions;
use super::sample::Samples;
use super::{ClientError, SessionParameters, local, smb1, smb2};
use smbscope_model::Dialect;
use std::time::Instant;

#[derive(Debug)]
pub enum ClientSession {
    /// NT LM 0.12
    Smb1(Box<smb1::Smb1ClientSession>),
    /// 2.0.2 to 3.1.1
    Smb2(Box<smb2::Smb2ClientSession>),
    Local(Box<local::LocalSession>),
}

macro_rules! either {
    ($self:expr, $session:ident => $call:expr) => {
        match $self {
            ClientSession::Smb1($session) => $call,
            ClientSession::Smb2($session) => $call,
            ClientSession::Local($session) => $call,
        }
    };
}

impl ClientSession {
    pub async fn connect(options: &SessionOptions) -> Result<ClientSession, ClientError> {
        if let Some(folder) = &options.folder {
            return Ok(ClientSession::Local(Box::new(local::LocalSession::open_folder(folder, options)?)));
        }
        let connecting = async {
            match options.dialect {
                Dialect::Smb2(_) => Ok(ClientSession::Smb2(Box::new(smb2::Smb2ClientSession::connect(options).await?))),
                _ => Ok(ClientSession::Smb1(Box::new(smb1::Smb1ClientSession::connect(options).await?))),
            }
        };
        let limit = options.timeout.saturating_mul(CONNECT_TIMEOUTS);
        let connected = tokio::time::timeout(limit, connecting).await;
        connected.unwrap_or(Err(ClientError::TooLong { what: "connecting", limit }))
    }

    pub fn facts(&self) -> &SessionParameters {
        either!(self, session => session.facts())
    }

    pub fn samples(&mut self) -> &mut Samples {
        either!(self, session => session.samples())
    }

    pub async fn open(&mut self, open: &OpenParameters<'_>) -> Result<OpenResult, ClientError> {
        either!(self, session => session.open(open).await)
    }

    pub async fn close(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        either!(self, session => session.close(handle).await)
    }

    /// Reads up to `length` bytes; fewer at the end of the file, and [`ClientError::Status`] with STATUS_END_OF_FILE
    /// past it. A read larger than the server allows takes several commands.
    pub async fn read(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<&[u8], ClientError> {
        either!(self, session => session.read(handle, offset, length).await)
    }

    /// Returns the number of bytes and discards the data, so memory use doesn't grow with `length`.
    pub async fn skim(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<u64, ClientError> {
        either!(self, session => session.skim(handle, offset, length).await)
    }

    /// Writes all of `data`, in several commands if the server limits the size.
    pub async fn write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<(), ClientError> {
        either!(self, session => session.write(handle, offset, data).await)
    }

    /// Reads or writes all ranges with up to `depth` commands outstanding, as far as credits (SMB2) or MaxMpxCount
    /// (SMB1) allow. SMB1's raw mode and local folders perform them one after the other.
    pub async fn transfer_many(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        direction: TransferDirection<'_>,
    ) -> Result<Moved, ClientError> {
        match self {
            ClientSession::Smb2(session) => return session.transfer_many(handle, ranges, depth, direction).await,
            ClientSession::Smb1(session) => {
                if let Some(depth) = session.queue_depth(depth) {
                    return session.transfer_many(handle, ranges, depth, direction).await;
                }
            }
            ClientSession::Local(_) => {}
        }
        let mut moved = Moved { bytes: 0, outstanding: 1 };
        for range in ranges {
            moved.bytes += match direction {
                TransferDirection::Read => self.skim(handle, range.offset, range.length).await?,
                TransferDirection::Write(data) => {
                    for part in range.cut(u32::try_from(data.len()).unwrap_or(u32::MAX)) {
                        let data = data.get(..part.length as usize).unwrap_or_default();
                        self.write(handle, part.offset, data).await?;
                    }
                    range.length.into()
                }
            };
        }
        Ok(moved)
    }

    /// Opens, reads and closes files, up to `at_once` at a time as credits allow; SMB1 and local folders one by one.
    pub async fn read_whole_files(
        &mut self,
        files: &[WholeFile],
        block: u32,
        at_once: u32,
    ) -> Result<Moved, ClientError> {
        if let ClientSession::Smb2(session) = self {
            return session.read_whole_files(files, block, at_once).await;
        }
        let mut moved = Moved { bytes: 0, outstanding: 1 };
        for file in files {
            let handle = self.open(&OpenParameters::reading(&file.path)).await?.handle;
            let read = self.read_whole(handle, file.size, block, &mut moved).await;
            self.close_after(handle, read).await?;
        }
        Ok(moved)
    }

    async fn read_whole(
        &mut self,
        handle: FileHandle,
        size: u64,
        block: u32,
        moved: &mut Moved,
    ) -> Result<(), ClientError> {
        let mut done = 0;
        while done < size {
            let length = u32::try_from(size - done).unwrap_or(u32::MAX).min(block.max(1));
            let bytes = self.skim(handle, done, length).await?;
            (done, moved.bytes) = (done + bytes, moved.bytes + bytes);
            if bytes < u64::from(length) {
                break;
            }
        }
        Ok(())
    }

    pub async fn flush(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        either!(self, session => session.flush(handle).await)
    }

    pub async fn lock(&mut self, handle: FileHandle, range: ByteRangeLock) -> Result<(), ClientError> {
        either!(self, session => session.lock(handle, range).await)
    }

    pub async fn unlock(&mut self, handle: FileHandle, offset: u64, length: u64) -> Result<(), ClientError> {
        either!(self, session => session.unlock(handle, offset, length).await)
    }

    pub async fn query_file(&mut self, handle: FileHandle, info: Info) -> Result<&[u8], ClientError> {
        either!(self, session => session.query_file(handle, info).await)
    }

    /// Returns information about a path. With SMB2 this takes an open, a query and a close.
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        either!(self, session => session.query_path(path, info).await)
    }

    /// Returns information about the file system. SMB2 uses an open of the root, which the session keeps.
    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        either!(self, session => session.query_file_system(info).await)
    }

    pub async fn set_file(&mut self, handle: FileHandle, set: SetInfo<'_>) -> Result<(), ClientError> {
        either!(self, session => session.set_file(handle, set).await)
    }

    /// Lists the entries that match the last part of the path (`dir\*.txt`), at most `most` of them unless it is 0,
    /// into `entries`, which is cleared first. Returns their number.
    pub async fn list(
        &mut self,
        pattern: &str,
        info: Info,
        most: usize,
        entries: Option<&mut Vec<ListingEntry>>,
    ) -> Result<usize, ClientError> {
        either!(self, session => session.list(pattern, info, most, entries).await)
    }

    /// Lists the next entries of an open directory with a single command (MS-SMB2 2.2.33). Discards them.
    pub async fn list_open(
        &mut self,
        handle: FileHandle,
        pattern: &str,
        class: u8,
        flags: u8,
    ) -> Result<(), ClientError> {
        match self {
            ClientSession::Smb2(session) => session.list_open(handle, pattern, class, flags).await,
            ClientSession::Smb1(_) | ClientSession::Local(_) => {
                Err(ClientError::Unsupported("only SMB2 and SMB 3 list by an open directory".to_owned()))
            }
        }
    }

    /// Removes a file. SMB2 opens it for deletion and closes it, in one compound if [`SessionOptions::compound`] is set.
    pub async fn remove_file(&mut self, path: &str) -> Result<(), ClientError> {
        match self {
            ClientSession::Smb1(session) => return session.remove_file(path).await,
            ClientSession::Smb2(session) => {
                if let Some(removed) = session.compound_remove(path).await {
                    return removed;
                }
            }
            ClientSession::Local(_) => {}
        }
        let handle = self.open(&OpenParameters::deleting(path)).await?.handle;
        self.close(handle).await
    }

    /// Renames a file or directory. Fails if the new name exists.
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<(), ClientError> {
        if let ClientSession::Smb1(session) = self {
            return session.rename(from, to).await;
        }
        let open = OpenParameters::existing(from, access::DELETE | access::READ_ATTRIBUTES, 0);
        let handle = self.open(&open).await?.handle;
        let renamed = self.set_file(handle, SetInfo::Rename { path: to, replace: false }).await;
        self.close_after(handle, renamed).await
    }

    pub async fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        if let ClientSession::Smb1(session) = self {
            return session.make_directory(path).await;
        }
        let open = OpenParameters {
            disposition: CreateDisposition::Create,
            attributes: 0x10, // FILE_ATTRIBUTE_DIRECTORY
            ..OpenParameters::existing(path, access::READ_ATTRIBUTES, options::DIRECTORY)
        };
        let handle = self.open(&open).await?.handle;
        self.close(handle).await
    }

    /// Removes an empty directory. SMB2 sets the disposition: with delete-on-close, servers don't report that a
    /// directory isn't empty.
    pub async fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        if let ClientSession::Smb1(session) = self {
            return session.remove_directory(path).await;
        }
        let open = OpenParameters::existing(path, access::DELETE, options::DIRECTORY);
        let handle = self.open(&open).await?.handle;
        let marked = self.set_file(handle, SetInfo::Delete(true)).await;
        self.close_after(handle, marked).await
    }

    /// Opens, reads and closes a file. SMB2 uses one compound if [`SessionOptions::compound`] is set.
    pub async fn open_read_close(&mut self, path: &str, offset: u64, length: u32) -> Result<u64, ClientError> {
        if let ClientSession::Smb2(session) = self
            && let Some(read) = session.compound_read(path, offset, length).await
        {
            return read;
        }
        let handle = self.open(&OpenParameters::reading(path)).await?.handle;
        let read = self.skim(handle, offset, length).await;
        self.close_after(handle, read).await
    }

    /// Closes the file after an operation, unless the session is broken. The operation's error takes precedence.
    async fn close_after<T>(&mut self, handle: FileHandle, result: Result<T, ClientError>) -> Result<T, ClientError> {
        if result.as_ref().is_err_and(ClientError::is_fatal) {
            return result;
        }
        let closed = self.close(handle).await;
        let value = result?;
        closed.map(|()| value)
    }

    /// Sleeps until `until`. Acknowledges oplock and lease breaks at once rather than with the next command.
    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        either!(self, session => session.rest(until).await)
    }

    /// Waits until [`ClientSession::rest`] has something to do or the connection ends. May wake up spuriously.
    pub async fn disturbed(&self) -> Result<(), ClientError> {
        let result = either!(self, session => session.disturbed().await);
        result.map_err(|error| ClientError::Connection { what: "resting", error })
    }

    /// Opens another connection to the same session (SMB 3 multichannel, MS-SMB2 3.2.4.20.6), with samples of its own.
    pub async fn bind(&mut self, options: &SessionOptions) -> Result<ClientSession, ClientError> {
        match self {
            ClientSession::Smb1(_) | ClientSession::Local(_) => {
                Err(ClientError::Unsupported("several connections a session need SMB 3".to_owned()))
            }
            ClientSession::Smb2(session) => Ok(ClientSession::Smb2(Box::new(session.bind(options).await?))),
        }
    }

    /// Sends a control code, for an open file or without one for the server. Discards the output.
    pub async fn control(&mut self, control: &FsctlProfile, handle: Option<FileHandle>) -> Result<(), ClientError> {
        either!(self, session => session.control(control, handle).await)
    }

    /// Authenticates again on the same session. The share, open files and keys stay.
    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        either!(self, session => session.reauthenticate().await)
    }

    /// Adds another tree connect and removes it again. Open files belong to the first one.
    pub async fn connect_again(&mut self, tree: TreeConnectTarget) -> Result<(), ClientError> {
        either!(self, session => session.connect_again(tree).await)
    }

    pub async fn echo(&mut self) -> Result<(), ClientError> {
        either!(self, session => session.echo().await)
    }

    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        either!(self, session => session.disconnect().await)
    }
}

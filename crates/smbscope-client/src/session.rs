//! A user's session on a share, whatever the dialect: what workloads and the engine work with.
//!
//! Each operation is the commands that a client of the dialect would send for it, one after the other; a sample of each
//! is kept in [`Session::samples`]. A refusal by the server is [`Error::Status`], and the session goes on.

use super::control::{FsctlProfile, TreeConnectTarget};
use super::file::{
    ByteRangeLock, FileHandle, FileRange, Info, ListingEntry, Moved, OpenParameters, OpenResult, SetInfo,
    TransferDirection, WholeFile,
};
use super::limits::CONNECT_TIMEOUTS;
use super::options::SessionOptions;
use super::sample::Samples;
use super::{ClientError, SessionParameters, local, smb1, smb2};
use smbscope_model::Dialect;
use std::time::Instant;

/// A connection, a session on it and a tree connect.
#[derive(Debug)]
pub enum ClientSession {
    /// NT LM 0.12
    Smb1(Box<smb1::Smb1ClientSession>),
    /// 2.0.2 to 3.1.1
    Smb2(Box<smb2::Smb2ClientSession>),
    /// A folder of this machine
    Local(Box<local::LocalSession>),
}

/// The same call on each of them.
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
    /// Connects, negotiates, authenticates, and connects to the share.
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

    /// What was negotiated.
    pub fn facts(&self) -> &SessionParameters {
        either!(self, session => session.facts())
    }

    /// The commands since the caller last emptied it.
    pub fn samples(&mut self) -> &mut Samples {
        either!(self, session => session.samples())
    }

    /// Opens or creates a file or directory.
    pub async fn open(&mut self, open: &OpenParameters<'_>) -> Result<OpenResult, ClientError> {
        either!(self, session => session.open(open).await)
    }

    /// Closes it.
    pub async fn close(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        either!(self, session => session.close(handle).await)
    }

    /// Reads; fewer bytes than asked for at the end of the file, [`Error::Status`] STATUS_END_OF_FILE behind it. A read
    /// larger than the server allows is several commands.
    pub async fn read(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<&[u8], ClientError> {
        either!(self, session => session.read(handle, offset, length).await)
    }

    /// Reads as [`Session::read`] does and returns the number of bytes. Keeps none of them, so memory does not grow with
    /// `length`.
    pub async fn skim(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<u64, ClientError> {
        either!(self, session => session.skim(handle, offset, length).await)
    }

    /// Writes all of it, in several commands where the server allows less at once.
    pub async fn write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<(), ClientError> {
        either!(self, session => session.write(handle, offset, data).await)
    }

    /// Reads or writes all of these ranges with so many commands outstanding, as long as the server grants credits for
    /// them; with SMB1 one after the other.
    pub async fn transfer_many(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        direction: TransferDirection<'_>,
    ) -> Result<Moved, ClientError> {
        either!(self, session => session.transfer_many(handle, ranges, depth, direction).await)
    }

    /// Opens, reads in blocks and closes each of these files, so many at once as long as the server grants credits for them;
    /// with SMB1 and in a local folder one after the other.
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
            let handle = self.open(&file.open()).await?.handle;
            let read = self.read_whole(handle, file.size, block, &mut moved).await;
            if read.as_ref().is_err_and(ClientError::is_fatal) {
                return read.map(|()| moved);
            }
            let closed = self.close(handle).await;
            read.and(closed)?;
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
            // The file may have less than its caller knows.
            if bytes < u64::from(length) {
                break;
            }
        }
        Ok(())
    }

    /// Asks for what was written to be on disk.
    pub async fn flush(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        either!(self, session => session.flush(handle).await)
    }

    /// Locks a range.
    pub async fn lock(&mut self, handle: FileHandle, range: ByteRangeLock) -> Result<(), ClientError> {
        either!(self, session => session.lock(handle, range).await)
    }

    /// Unlocks a range.
    pub async fn unlock(&mut self, handle: FileHandle, offset: u64, length: u64) -> Result<(), ClientError> {
        either!(self, session => session.unlock(handle, offset, length).await)
    }

    /// Information about an open file; the bytes of the class.
    pub async fn query_file(&mut self, handle: FileHandle, info: Info) -> Result<&[u8], ClientError> {
        either!(self, session => session.query_file(handle, info).await)
    }

    /// Information about a path: open, query and close with SMB2.
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        either!(self, session => session.query_path(path, info).await)
    }

    /// Information about the file system: with SMB2 by an open of the root, which the session keeps.
    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        either!(self, session => session.query_file_system(info).await)
    }

    /// Changes an open file.
    pub async fn set_file(&mut self, handle: FileHandle, set: SetInfo<'_>) -> Result<(), ClientError> {
        either!(self, session => session.set_file(handle, set).await)
    }

    /// Lists what matches the last part of the path (`dir\*.txt`), up to `most` entries (0: all), into `entries`, which
    /// is emptied first; how many there were.
    pub async fn list(
        &mut self,
        pattern: &str,
        info: Info,
        most: usize,
        entries: Option<&mut Vec<ListingEntry>>,
    ) -> Result<usize, ClientError> {
        either!(self, session => session.list(pattern, info, most, entries).await)
    }

    /// Lists what is next of an open directory, with a single command (MS-SMB2 2.2.33); its entries are not kept.
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

    /// Removes a file.
    pub async fn remove_file(&mut self, path: &str) -> Result<(), ClientError> {
        either!(self, session => session.remove_file(path).await)
    }

    /// Renames a file or directory; one that has the new name already is in the way.
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<(), ClientError> {
        either!(self, session => session.rename(from, to).await)
    }

    /// Makes a directory.
    pub async fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        either!(self, session => session.make_directory(path).await)
    }

    /// Removes an empty directory.
    pub async fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        either!(self, session => session.remove_directory(path).await)
    }

    /// Open, read and close: with SMB2 one compound where [`Options::compound`] says so.
    pub async fn open_read_close(&mut self, path: &str, offset: u64, length: u32) -> Result<u64, ClientError> {
        either!(self, session => session.open_read_close(path, offset, length).await)
    }

    /// Waits until a point in time. Oplocks and leases that are taken back in the meantime are given back at once, and not
    /// only with the next command.
    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        either!(self, session => session.rest(until).await)
    }

    /// Waits until there is something for [`Session::rest`] to do, or the connection ends; may be dropped at any time. It
    /// may also end without cause.
    pub async fn disturbed(&self) -> Result<(), ClientError> {
        let result = either!(self, session => session.disturbed().await);
        result.map_err(|error| ClientError::Connection { what: "resting", error })
    }

    /// Opens another connection to the same session (SMB 3 multichannel, MS-SMB2 3.2.4.20.6): it works on the same share
    /// with the same handles, and has samples of its own.
    pub async fn bind(&mut self, options: &SessionOptions) -> Result<ClientSession, ClientError> {
        match self {
            ClientSession::Smb1(_) | ClientSession::Local(_) => {
                Err(ClientError::Unsupported("several connections a session need SMB 3".to_owned()))
            }
            ClientSession::Smb2(session) => Ok(ClientSession::Smb2(Box::new(session.bind(options).await?))),
        }
    }

    /// Sends a control code, about an open file or, without one, about the server; its output is not kept.
    pub async fn control(&mut self, control: &FsctlProfile, handle: Option<FileHandle>) -> Result<(), ClientError> {
        either!(self, session => session.control(control, handle).await)
    }

    /// Authenticates again on the session: its share, its open files and its keys stay.
    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        either!(self, session => session.reauthenticate().await)
    }

    /// Connects to a share once more and disconnects from it; open files stay with the first tree connect.
    pub async fn connect_again(&mut self, tree: TreeConnectTarget) -> Result<(), ClientError> {
        either!(self, session => session.connect_again(tree).await)
    }

    /// Nothing but a round trip.
    pub async fn echo(&mut self) -> Result<(), ClientError> {
        either!(self, session => session.echo().await)
    }

    /// Disconnects from the share, logs off and closes the connection.
    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        either!(self, session => session.disconnect().await)
    }
}

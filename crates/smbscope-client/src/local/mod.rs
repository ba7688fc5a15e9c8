//! A local folder in place of a share: the baseline of a measurement, with the same operations and no server.
//!
//! Each operation makes the file system calls that correspond to an SMB2 client's commands, and each call has a sample
//! under that command's name. Calls block their thread, so users who should work in parallel need a worker each. Names
//! can't reach anything outside the folder, and on Unix links that lead outside are not followed. There are no
//! share modes, leases or oplocks; of the caching flags only write-through has an effect.

mod files;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use crate::sample::Samples;
use crate::{ClientError, FileHandle, FsctlProfile, Sample, SessionOptions, SessionParameters, TreeConnectTarget};
use files::LocalOpenFile;
use smbscope_model::{Command, Dialect, ExchangeOutcome, Subcommand, groups};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use system::Root;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Bytes per call on a local folder. SMB 3 servers allow this size per command.
const TRANSFER_MAX: u32 = 8 << 20;

#[derive(Debug)]
pub struct LocalSession {
    root: Root,
    open: HashMap<u64, LocalOpenFile>,
    next: u64,
    calls: u64,
    data: Vec<u8>,
    samples: Samples,
    facts: SessionParameters,
    timeout: Duration,
}

impl LocalSession {
    pub(super) fn open_folder(folder: &Path, options: &SessionOptions) -> Result<LocalSession, ClientError> {
        let root = system::root(folder).map_err(|error| ClientError::Folder { folder: folder.to_owned(), error })?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(LocalSession {
            root,
            open: HashMap::new(),
            next: 1,
            calls: 0,
            data: Vec::new(),
            samples: Vec::with_capacity(16),
            facts: SessionParameters {
                local: here,
                peer: here,
                dialect: Dialect::Local,
                signing: None,
                cipher: None,
                max_read: TRANSFER_MAX,
                max_write: TRANSFER_MAX,
                max_transact: TRANSFER_MAX,
                guest: false,
            },
            timeout: options.timeout,
        })
    }

    pub fn facts(&self) -> &SessionParameters {
        &self.facts
    }

    pub fn samples(&mut self) -> &mut Samples {
        &mut self.samples
    }

    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        tokio::time::sleep_until(until.into()).await;
        Ok(())
    }

    /// Never returns: a folder sends no messages.
    pub(super) async fn disturbed(&self) -> std::io::Result<()> {
        std::future::pending().await
    }

    pub async fn echo(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn control(&mut self, _control: &FsctlProfile, _handle: Option<FileHandle>) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn connect_again(&mut self, _tree: TreeConnectTarget) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.open.clear();
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LocalCallDetails<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) file: Option<FileHandle>,
    pub(super) subcommand: Option<Subcommand>,
    pub(super) offset: Option<u64>,
    pub(super) length: Option<u32>,
    pub(super) written: u32,
}

impl LocalCallDetails<'_> {
    pub(super) fn file(handle: FileHandle) -> Self {
        LocalCallDetails { file: Some(handle), ..LocalCallDetails::default() }
    }
}

impl LocalSession {
    pub(super) async fn call<T, E: Into<LocalRefusal>>(
        &mut self,
        command: smb2::Smb2Command,
        about: LocalCallDetails<'_>,
        work: impl FnOnce(&mut LocalSession) -> Result<T, E>,
    ) -> Result<T, ClientError> {
        // Local calls never wait, so this lets other tasks of the thread run.
        tokio::task::yield_now().await;
        let before = self.data.len();
        let begun = Instant::now();
        let result = work(self);
        let ended = Instant::now();
        let result = result.map_err(|refusal| self.distinguish_missing(refusal.into(), about.path));
        let status = result.as_ref().map_or_else(|refusal| refusal.0, |_| NtStatus::SUCCESS);
        let came = if command == smb2::Smb2Command::READ && result.is_ok() { self.data.len() - before } else { 0 };
        self.note(command, about, status, [begun, ended], came);
        result.map_err(|LocalRefusal(status)| ClientError::Status { command: Command::Smb2(command), status })
    }

    /// Distinguishes a missing directory from a missing file, as servers do (MS-FSA 2.1.5.1).
    fn distinguish_missing(&self, refusal: LocalRefusal, path: Option<&str>) -> LocalRefusal {
        let directory = path.and_then(|path| path.rsplit_once('/')).map(|(directory, _)| directory);
        match (refusal.0, directory) {
            (NtStatus::OBJECT_NAME_NOT_FOUND, Some(directory)) if !self.root.is_dir(directory) => {
                LocalRefusal(NtStatus::OBJECT_PATH_NOT_FOUND)
            }
            _ => refusal,
        }
    }

    fn note(
        &mut self,
        command: smb2::Smb2Command,
        about: LocalCallDetails<'_>,
        status: NtStatus,
        times: [Instant; 2],
        came: usize,
    ) {
        let [begun, ended] = times;
        self.calls += 1;
        self.samples.push(Sample {
            command: Command::Smb2(command),
            subcommand: about.subcommand,
            group: groups::smb2(command, about.subcommand, false),
            message_id: self.calls,
            session_id: 0,
            tree_id: 0,
            file_id: about.file.map(|handle| handle.0),
            status: Some(status),
            request_first: begun,
            request_last: begun,
            interim: None,
            response_first: ended,
            response_last: ended,
            request_bytes: about.written,
            response_bytes: came as u32,
            offset: about.offset,
            length: about.length,
            compounded: false,
            signed: false,
            encrypted: false,
            outcome: ExchangeOutcome::Complete,
        });
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LocalRefusal(pub(super) NtStatus);

impl From<io::Error> for LocalRefusal {
    fn from(error: io::Error) -> LocalRefusal {
        LocalRefusal(status_of(&error))
    }
}

fn status_of(error: &io::Error) -> NtStatus {
    match error.kind() {
        ErrorKind::NotFound => NtStatus::OBJECT_NAME_NOT_FOUND,
        ErrorKind::AlreadyExists => NtStatus::OBJECT_NAME_COLLISION,
        ErrorKind::PermissionDenied => NtStatus::ACCESS_DENIED,
        ErrorKind::ReadOnlyFilesystem => NtStatus::MEDIA_WRITE_PROTECTED,
        ErrorKind::DirectoryNotEmpty => NtStatus::DIRECTORY_NOT_EMPTY,
        ErrorKind::IsADirectory => NtStatus::FILE_IS_A_DIRECTORY,
        ErrorKind::NotADirectory => NtStatus::NOT_A_DIRECTORY,
        ErrorKind::StorageFull | ErrorKind::FileTooLarge => NtStatus::DISK_FULL,
        ErrorKind::QuotaExceeded => NtStatus::QUOTA_EXCEEDED,
        ErrorKind::InvalidFilename => NtStatus::OBJECT_NAME_INVALID,
        ErrorKind::CrossesDevices => NtStatus::NOT_SAME_DEVICE,
        ErrorKind::UnexpectedEof => NtStatus::END_OF_FILE,
        ErrorKind::WouldBlock => NtStatus::LOCK_NOT_GRANTED,
        ErrorKind::Unsupported => NtStatus::NOT_SUPPORTED,
        _ => NtStatus::UNEXPECTED_IO_ERROR,
    }
}

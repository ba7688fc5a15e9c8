//! Times the calls on a local folder, keeps a sample of each, and maps system errors to the NTSTATUS that an SMB server
//! would return.

use crate::local::LocalSession;
use crate::{ClientError, FileHandle, Sample};
use smbscope_model::{Command, ExchangeOutcome, Subcommand, groups};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::io::{self, ErrorKind};
use std::time::Instant;

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
        let result = result.map_err(|refusal| self.told_apart(refusal.into(), about.path));
        let status = result.as_ref().map_or_else(|refusal| refusal.0, |_| NtStatus::SUCCESS);
        let came = if command == smb2::Smb2Command::READ && result.is_ok() { self.data.len() - before } else { 0 };
        self.note(command, about, status, [begun, ended], came);
        result.map_err(|LocalRefusal(status)| ClientError::Status { command: Command::Smb2(command), status })
    }

    /// Distinguishes a missing directory from a missing file, as servers do (MS-FSA 2.1.5.1).
    fn told_apart(&self, refusal: LocalRefusal, path: Option<&str>) -> LocalRefusal {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Errno values of Linux (errno(3)).
    #[test]
    fn errors_of_the_system_are_answers_of_a_server() {
        for (errno, status) in [
            (2, NtStatus::OBJECT_NAME_NOT_FOUND),
            (13, NtStatus::ACCESS_DENIED),
            (17, NtStatus::OBJECT_NAME_COLLISION),
            (20, NtStatus::NOT_A_DIRECTORY),
            (21, NtStatus::FILE_IS_A_DIRECTORY),
            (28, NtStatus::DISK_FULL),
            (30, NtStatus::MEDIA_WRITE_PROTECTED),
            (39, NtStatus::DIRECTORY_NOT_EMPTY),
            (5, NtStatus::UNEXPECTED_IO_ERROR),
        ] {
            assert_eq!(status_of(&io::Error::from_raw_os_error(errno)), status, "errno {errno}");
        }
    }
}

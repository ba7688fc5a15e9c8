//! Times the calls on a local folder and keeps a sample of each.

use super::LocalSession;
use super::answer::LocalRefusal;
use crate::{ClientError, FileHandle, Sample};
use smbscope_model::{Command, ExchangeOutcome, Subcommand, groups};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
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

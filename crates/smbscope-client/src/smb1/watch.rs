//! Directory watches (MS-CIFS 2.2.7.4), which wait while the session sends other commands, and their cancellation
//! (2.2.4.65).

use super::super::transport::ReceiveTimes;
use super::super::{ClientError, FileHandle};
use super::connection::{Smb1OutstandingRequest, Smb1RequestDetails, malformed};
use super::{Smb1ClientSession, fid_of};
use smbscope_model::Subcommand;
use smbscope_wire::fscc::{self, FileNotifyInformation};
use smbscope_wire::names::NtTransact;
use smbscope_wire::smb1::Smb1Header;
use smbscope_wire::smb1::messages::{NtCancel, NtTransactNotifyChange, NtTransactResponse};
use smbscope_wire::status::NtStatus;

/// Maximum size of a response, enough for some hundred changes.
const MOST: u32 = 0x8000;

/// A watch, with its response if that arrived during another wait.
#[derive(Debug)]
pub(super) struct Smb1ChangeNotify {
    pub(super) pending: Smb1OutstandingRequest,
    answer: Option<(Smb1Header, ReceiveTimes, Vec<u8>)>,
}

impl Smb1ChangeNotify {
    pub(super) fn keep(&mut self, header: Smb1Header, arrived: ReceiveTimes, message: &[u8]) {
        self.answer = Some((header, arrived, message.to_vec()));
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answer.is_some()
    }
}

impl Smb1ClientSession {
    /// Starts a watch on an open directory. `completion_filter` has FILE_NOTIFY_CHANGE_* flags; `tree` includes
    /// subdirectories. Only one watch at a time.
    pub async fn watch(&mut self, handle: FileHandle, completion_filter: u32, tree: bool) -> Result<(), ClientError> {
        if self.connection.watch.is_some() {
            return Err(ClientError::Unsupported("SMB1: one watch at a time".to_owned()));
        }
        if self.server.max_mpx_count < 2 {
            return Err(ClientError::Unsupported("the server takes one request at a time: it cannot watch".to_owned()));
        }
        let fid = fid_of(handle);
        let request = NtTransactNotifyChange { fid, completion_filter, watch_tree: tree, max_parameter_count: MOST };
        let about = Smb1RequestDetails {
            subcommand: Some(Subcommand::NtTransact(NtTransact::NOTIFY_CHANGE)),
            waits: true,
            ..Smb1RequestDetails::file(fid)
        };
        let pending = self.connection.send(&request, about).await?;
        self.connection.leave_waiting();
        self.connection.watch = Some(Smb1ChangeNotify { pending, answer: None });
        Ok(())
    }

    /// Returns true if the response has arrived already, so [`Self::changes`] won't wait.
    pub fn has_changes(&self) -> bool {
        self.connection.watch.as_ref().is_some_and(Smb1ChangeNotify::is_answered)
    }

    pub async fn changes(&mut self) -> Result<Vec<FileNotifyInformation>, ClientError> {
        let Some(watch) = self.connection.watch.take() else {
            return Err(ClientError::Unsupported("nothing is watched".to_owned()));
        };
        let pending = watch.pending;
        let (header, arrived, message) = match watch.answer {
            Some(answer) => answer,
            None => {
                let (header, arrived) = self.connection.receive(&pending).await?;
                (header, arrived, self.connection.message().to_vec())
            }
        };
        self.connection.complete(&pending, &header, arrived, message.len());
        match NtStatus(header.status) {
            // Too many changes for the response, so none are listed.
            NtStatus::NOTIFY_ENUM_DIR => return Ok(Vec::new()),
            status if status.is_error() => {
                let command = smbscope_model::Command::Smb1(pending.command);
                return Err(ClientError::Status { command, status });
            }
            _ => {}
        }
        let answer = NtTransactResponse::parse(&message).map_err(malformed)?;
        Ok(fscc::changes(answer.0.parameters).collect())
    }

    /// Cancels the watch. [`Self::changes`] then returns STATUS_CANCELLED, or earlier changes.
    pub async fn cancel_watch(&mut self) -> Result<(), ClientError> {
        match &self.connection.watch {
            Some(watch) if !watch.is_answered() => {
                let mid = watch.pending.mid;
                self.connection.send_one_way(&NtCancel {}, mid, true).await
            }
            _ => Ok(()),
        }
    }
}

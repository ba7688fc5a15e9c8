//! CHANGE_NOTIFY (MS-SMB2 3.2.4.18): waits for changes in a directory while other commands go on.

use super::Smb2ClientSession;
use super::connection::{Smb2RequestDetails, Whose};
use super::files::reference;
use crate::{ClientError, FileHandle};
use smbscope_model::Command;
use smbscope_wire::fscc::FileNotifyInformation;
use smbscope_wire::smb2::messages::change_notify;
use smbscope_wire::status::NtStatus;

/// Room for changes: as much as one credit pays for.
const CHANGES: u32 = 64 * 1024;

impl Smb2ClientSession {
    /// Starts a watch on a directory; `tree` includes subdirectories. Only one watch at a time.
    pub async fn watch(&mut self, handle: FileHandle, completion_filter: u32, tree: bool) -> Result<(), ClientError> {
        if self.watch.is_some() {
            return Err(ClientError::Unsupported("one watch at a time".to_owned()));
        }
        let file = reference(handle)?;
        let output_buffer_length = CHANGES.min(self.facts.max_transact);
        let flags = if tree { change_notify::Request::WATCH_TREE } else { 0 };
        let request = change_notify::Request { flags, output_buffer_length, file, completion_filter };
        let about = Smb2RequestDetails { whose: Whose::Later, ..Smb2RequestDetails::file(file) };
        self.watch = Some(self.connection.post(&request, about).await?);
        Ok(())
    }

    /// Waits for changes, without a time limit. Returns an empty list if there were too many for the response.
    pub async fn changes(&mut self) -> Result<Vec<FileNotifyInformation>, ClientError> {
        let Some(id) = self.watch else {
            return Err(ClientError::Unsupported("nothing is watched".to_owned()));
        };
        let Some((header, message)) = self.connection.kept_reply(id, None).await? else { return Ok(Vec::new()) };
        self.watch = None;
        match header.status {
            NtStatus::NOTIFY_ENUM_DIR => Ok(Vec::new()),
            status if status.is_error() => Err(ClientError::Status { command: Command::Smb2(header.command), status }),
            _ => {
                let response = change_notify::Response::parse(&message);
                let malformed = || ClientError::Protocol("its answer to CHANGE_NOTIFY is cut off".to_owned());
                Ok(response.ok_or_else(malformed)?.changes().collect())
            }
        }
    }

    /// Cancels the watch. [`Self::changes`] then returns STATUS_CANCELLED, or earlier changes.
    pub async fn cancel_watch(&mut self) -> Result<(), ClientError> {
        match self.watch {
            Some(id) => self.connection.cancel(id).await,
            None => Ok(()),
        }
    }
}

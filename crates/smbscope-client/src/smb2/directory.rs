//! Directories: listings (MS-SMB2 3.2.4.17), and CHANGE_NOTIFY, which waits while other commands proceed (3.2.4.18).

use crate::connection::ResponseConsumer;
use crate::file::{Info, ListingEntry, OpenParameters, access, options};
use crate::limits::Listing;
use crate::sample::RequestDetails;
use crate::smb2::Smb2ClientSession;
use crate::smb2::connection::Smb2Connection;
use crate::smb2::files::reference;
use crate::{ClientError, FileHandle};
use smbscope_model::Subcommand;
use smbscope_wire::fscc::FileNotifyInformation;
use smbscope_wire::smb2::messages::change_notify;
use smbscope_wire::smb2::messages::query_directory::{self, flags};
use smbscope_wire::status::NtStatus;

const LIST_BUFFER: u32 = 64 * 1024;

impl Smb2ClientSession {
    pub async fn list(
        &mut self,
        pattern: &str,
        info: Info,
        most: usize,
        entries: Option<&mut Vec<ListingEntry>>,
    ) -> Result<usize, ClientError> {
        let listing = Listing::new(most, entries, self.connection.timeout);
        let (path, pattern) = pattern.rsplit_once('\\').unwrap_or(("", pattern));
        // FILE_LIST_DIRECTORY is the bit of READ_DATA.
        let open = OpenParameters::existing(path, access::READ_DATA | access::READ_ATTRIBUTES, options::DIRECTORY);
        let handle = self.open(&open).await?.handle;
        let request = query_directory::Request {
            file: reference(handle)?,
            class: info.to_wire().1,
            flags: if most == 1 { flags::RETURN_SINGLE_ENTRY } else { 0 },
            pattern: pattern.into(),
            output_buffer_length: LIST_BUFFER.min(self.facts.max_transact),
        };
        let result = list(&mut self.connection, request, listing).await;
        self.close_after(handle, result).await
    }
}

impl Smb2ClientSession {
    pub async fn list_open(
        &mut self,
        handle: FileHandle,
        pattern: &str,
        class: u8,
        flags: u8,
    ) -> Result<(), ClientError> {
        let output_buffer_length = LIST_BUFFER.min(self.facts.max_transact);
        let (file, pattern) = (reference(handle)?, pattern.into());
        let request = query_directory::Request { file, class, flags, pattern, output_buffer_length };
        self.connection.run(&request, RequestDetails::file(file).with(Subcommand::Info(request.level()))).await
    }
}

async fn list(
    connection: &mut Smb2Connection,
    request: query_directory::Request<'_>,
    mut listing: Listing<'_>,
) -> Result<usize, ClientError> {
    let about = RequestDetails::file(request.file).with(Subcommand::Info(request.level()));
    while listing.wanted > 0 {
        let reply = connection.call(&request, about).await?.ok()?;
        if reply.status == NtStatus::NO_MORE_FILES {
            break;
        }
        let response = query_directory::Response::parse(connection.message(&reply));
        let entries = response.ok_or_else(|| reply.malformed())?.entries(request.level()).ok_or_else(|| {
            let level = request.level();
            ClientError::Unsupported(format!("{level} is not a class of directory entries that can be read"))
        })?;
        if listing.take(entries)? == 0 {
            return Err(reply.malformed());
        }
    }
    Ok(listing.found)
}

const CHANGES: u32 = 64 * 1024;

impl Smb2ClientSession {
    pub async fn watch(&mut self, handle: FileHandle, completion_filter: u32, tree: bool) -> Result<(), ClientError> {
        if self.watch.is_some() {
            return Err(ClientError::Unsupported("one watch at a time".to_owned()));
        }
        let file = reference(handle)?;
        let output_buffer_length = CHANGES.min(self.facts.max_transact);
        let flags = if tree { change_notify::Request::WATCH_TREE } else { 0 };
        let request = change_notify::Request { flags, output_buffer_length, file, completion_filter };
        let about = RequestDetails::file(file);
        self.watch = Some(self.connection.post_for(&request, about, ResponseConsumer::Later).await?);
        Ok(())
    }

    /// Waits for changes, without a time limit. Returns an empty list if there were too many for the response.
    pub async fn changes(&mut self) -> Result<Vec<FileNotifyInformation>, ClientError> {
        let Some(id) = self.watch else {
            return Err(ClientError::Unsupported("nothing is watched".to_owned()));
        };
        let (reply, message) = self.connection.kept_reply(id).await?;
        self.watch = None;
        if reply.status == NtStatus::NOTIFY_ENUM_DIR {
            return Ok(Vec::new());
        }
        let reply = reply.ok()?;
        let response = change_notify::Response::parse(&message).ok_or_else(|| reply.malformed())?;
        Ok(response.changes().collect())
    }

    /// Cancels the watch. [`Self::changes`] then returns STATUS_CANCELLED, or earlier changes.
    pub async fn cancel_watch(&mut self) -> Result<(), ClientError> {
        match self.watch {
            Some(id) => self.connection.cancel(id).await,
            None => Ok(()),
        }
    }
}

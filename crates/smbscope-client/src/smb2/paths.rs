//! Operations on paths, as a compound or not (MS-SMB2 3.2.4.1.4); listings (3.2.4.17), and CHANGE_NOTIFY, which waits
//! while other commands proceed (3.2.4.18).

use super::Smb2ClientSession;
use super::connection::{Chain, Smb2Connection, Smb2Reply};
use super::files::reference;
use crate::ClientError;
use crate::connection::{ResponseConsumer, TransferCommands};
use crate::file::{FileHandle, Info, ListingEntry, OpenParameters, access, options};
use crate::limits::Listing;
use crate::sample::RequestDetails;
use smbscope_model::Subcommand;
use smbscope_wire::fscc::FileNotifyInformation;
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::query_directory::{self, flags};
use smbscope_wire::smb2::messages::{Smb2RequestMessage, change_notify, close, query_info, read};
use smbscope_wire::status::NtStatus;

impl Smb2ClientSession {
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        let open = OpenParameters::existing(path, access::READ_ATTRIBUTES, 0);
        let about = RequestDetails::subcommand(Subcommand::Info(info));
        let query = self.query_request(FileReference::RELATED, info);
        if self.compounds(&query) {
            self.in_compound(&open, &query, about, |session, reply| {
                let message = session.connection.message(reply);
                let output = query_info::Response::parse(message).ok_or_else(|| reply.malformed())?.output;
                session.data.clear();
                session.data.extend_from_slice(output);
                Ok(())
            })
            .await?;
            return Ok(&self.data);
        }
        let handle = self.open(&open).await?.handle;
        let mut data = std::mem::take(&mut self.data);
        let result = self.query_file(handle, info).await.map(|output| {
            data.clear();
            data.extend_from_slice(output);
        });
        self.data = data;
        self.close_after(handle, result).await?;
        Ok(&self.data)
    }

    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        let root = match self.root {
            Some(root) => root,
            None => {
                let handle =
                    self.open(&OpenParameters::existing("", access::READ_ATTRIBUTES, options::DIRECTORY)).await?.handle;
                *self.root.insert(reference(handle)?)
            }
        };
        self.query(root, info).await
    }

    /// Removes a file in one compound. Returns `None` if compounds are off or credits too few.
    pub(crate) async fn compound_remove(&mut self, path: &str) -> Option<Result<(), ClientError>> {
        if !self.compound || !self.connection.dialect.credits.affords(2) {
            return None;
        }
        Some(self.open_close(&OpenParameters::deleting(path)).await)
    }

    /// Opens, reads and closes a file in one compound. Returns `None` if that takes more than the session can.
    pub(crate) async fn compound_read(
        &mut self,
        path: &str,
        offset: u64,
        length: u32,
    ) -> Option<Result<u64, ClientError>> {
        let request = read::Request::new(FileReference::RELATED, offset, length);
        if length > self.facts.max_read || !self.compounds(&request) {
            return None;
        }
        let about = RequestDetails { offset: Some(offset), length: Some(length), ..RequestDetails::default() };
        let open = OpenParameters::reading(path);
        let read = self.in_compound(&open, &request, about, |session, reply| {
            session.data_read(reply, length).map(|data| data.len() as u64)
        });
        Some(read.await)
    }

    /// Closes the file after an operation, unless the session is broken. The operation's error takes precedence.
    pub(super) async fn close_after<T>(
        &mut self,
        handle: FileHandle,
        result: Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        if result.as_ref().is_err_and(ClientError::is_fatal) {
            return result;
        }
        let closed = self.close(handle).await;
        let value = result?;
        closed.map(|()| value)
    }

    fn compounds<B: Smb2RequestMessage>(&self, request: &B) -> bool {
        let credits = &self.connection.dialect.credits;
        let charge = credits.charge(request.payload().max(request.expected()));
        self.compound && credits.affords(2 + u32::from(charge))
    }

    /// `take` reads the response to the request while its bytes are available.
    async fn in_compound<B: Smb2RequestMessage, T>(
        &mut self,
        open: &OpenParameters<'_>,
        request: &B,
        about: RequestDetails,
        take: impl FnOnce(&mut Smb2ClientSession, &Smb2Reply) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let lease = self.caching(open).context(open.path);
        let create = self.create_request(open, lease.as_slice());
        self.connection.begin();
        let first = self.connection.add(&create, RequestDetails::default(), Chain::Own);
        let second = self.connection.add(request, about, Chain::Related);
        let close = close::Request { flags: 0, file: FileReference::RELATED };
        let third = self.connection.add(&close, RequestDetails::default(), Chain::Related);
        self.connection.flush().await?;
        let opened = self.connection.reply(first).await?;
        let answer = self.connection.reply(second).await?;
        // The responses may come in one frame or several, and the bytes only stay until the next frame.
        let result = opened.ok().and_then(|_| answer.ok()).and_then(|answer| take(self, &answer));
        let closed = self.connection.reply(third).await?;
        let value = result?;
        closed.ok()?;
        Ok(value)
    }

    async fn open_close(&mut self, open: &OpenParameters<'_>) -> Result<(), ClientError> {
        let request = self.create_request(open, &[]);
        self.connection.begin();
        let first = self.connection.add(&request, RequestDetails::default(), Chain::Own);
        let close = close::Request { flags: 0, file: FileReference::RELATED };
        let second = self.connection.add(&close, RequestDetails::default(), Chain::Related);
        self.connection.flush().await?;
        let opened = self.connection.reply(first).await?;
        let closed = self.connection.reply(second).await?;
        opened.ok()?;
        closed.ok()?;
        Ok(())
    }
}

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

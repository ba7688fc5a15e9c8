//! A user's session: the traits that the engine works with, and their implementation on the SMB client.
//!
//! [`ServerSession`] performs [`Action`]s and is a mock with simulated time in tests. [`UserSession`] keeps the table
//! of open files and uses one connection, or several in turn (SMB 3 multichannel).

use crate::workload::{Action, HandleSlot, Own};
use serde::{Deserialize, Serialize};
use smbscope_client::{
    ClientError, ClientSession, FileHandle, FileRange, Info, ListingEntry, OpenParameters, Samples, SessionOptions,
    SetInfo, TransferDirection, WholeFile,
};
use smbscope_model::{Dialect, Endpoints};
use smbscope_stats::Random;
use smbscope_wire::status::NtStatus;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Performed {
    /// Final status of the server, or STATUS_INVALID_HANDLE if an action needs an open file that is missing.
    pub(crate) status: NtStatus,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Number of files opened, without directories.
    pub(crate) files_opened: u32,
    /// Zero if the action needed only one command at a time.
    pub(crate) queue: CommandQueueDepth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandQueueDepth {
    pub asked: u32,
    pub reached: u32,
}

impl CommandQueueDepth {
    pub(crate) fn add(&mut self, other: CommandQueueDepth) {
        *self = CommandQueueDepth { asked: self.asked.max(other.asked), reached: self.reached.max(other.reached) };
    }
}

impl Performed {
    pub(crate) fn with_status(status: NtStatus) -> Performed {
        Performed { status, ..Performed::DONE }
    }

    pub(crate) const DONE: Performed = Performed {
        status: NtStatus::SUCCESS,
        bytes_read: 0,
        bytes_written: 0,
        files_opened: 0,
        queue: CommandQueueDepth { asked: 0, reached: 0 },
    };
}

#[derive(Debug, Clone)]
pub(crate) struct SessionIdentity {
    pub(crate) endpoints: Endpoints,
    pub(crate) dialect: Dialect,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) share: Option<Arc<str>>,
}

pub(crate) trait SessionFactory: Sync {
    type Session: ServerSession;

    async fn connect(&self) -> Result<Self::Session, ClientError>;
}

pub(crate) trait ServerSession {
    /// Performs an action other than thinking. No status is an error here; an error means that the session is unusable.
    async fn perform(&mut self, action: &Action<'_>) -> Result<Performed, ClientError>;

    fn connection(&self) -> usize;

    /// Commands of a connection since the caller last emptied the list.
    fn samples(&mut self, connection: usize) -> &mut Samples;

    fn connections(&self) -> usize;

    fn identity(&self, connection: usize) -> SessionIdentity;

    /// Waits for a request from the server or the end of a connection. Cancel-safe.
    async fn disturbed(&self) -> Result<(), ClientError>;

    /// Handles the server's requests: acknowledges oplock and lease breaks.
    async fn attend(&mut self) -> Result<(), ClientError>;

    async fn close_all(&mut self) -> Result<(), ClientError>;

    async fn disconnect(&mut self) -> Result<(), ClientError>;
}

/// Bytes of data for writes: random, from the seed, the same for all users.
const PAYLOAD: usize = 4 << 20;
const WRITE_MAX: usize = PAYLOAD - SHIFT_MAX;
/// Writes at different offsets start at different places in the payload, up to this many bytes in.
const SHIFT_MAX: usize = 64 << 10;
/// Directory levels removed; more is an error.
const DEPTH_MAX: usize = 128;
/// Every server supports this class, and SMB1 an equivalent (MS-FSCC 2.4.8).
const LISTED: Info = Info::FILE_BOTH_DIRECTORY_INFORMATION;
const REPARSE_POINT: u32 = 0x400;
const UNCHANGED: SetInfo<'static> =
    SetInfo::Basic { creation: 0, last_access: 0, last_write: 0, change: 0, attributes: 0 };

pub(crate) struct ServerConnector {
    options: SessionOptions,
    connections: u32,
    payload: Arc<[u8]>,
    user: Option<Arc<str>>,
    share: Arc<str>,
}

impl ServerConnector {
    pub(crate) fn new(options: &SessionOptions, connections: u32, seed: u64) -> ServerConnector {
        let mut random = Random::of_stream(seed, u64::from_le_bytes(*b"payload\0"));
        let payload = (0..PAYLOAD / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        let user = match &options.credentials {
            smbscope_client::Credentials::Ntlm { domain, user, .. } if domain.is_empty() => Some(user.as_str().into()),
            smbscope_client::Credentials::Ntlm { domain, user, .. } => Some(format!("{domain}\\{user}").into()),
            _ => None,
        };
        ServerConnector { options: options.clone(), connections, payload, user, share: options.share.as_str().into() }
    }
}

impl SessionFactory for ServerConnector {
    type Session = UserSession;

    async fn connect(&self) -> Result<UserSession, ClientError> {
        Ok(UserSession {
            connections: RoundRobinChannels::make(&self.options, self.connections).await?,
            open: Vec::new(),
            payload: self.payload.clone(),
            user: self.user.clone(),
            share: self.share.clone(),
        })
    }
}

pub(crate) struct UserSession {
    connections: RoundRobinChannels,
    /// Only a handful of entries, for which a linear search is faster than hashing.
    open: Vec<(HandleSlot, FileHandle)>,
    payload: Arc<[u8]>,
    user: Option<Arc<str>>,
    share: Arc<str>,
}

impl UserSession {
    fn forget(&mut self, slot: HandleSlot) {
        self.open.retain(|(open, _)| *open != slot);
    }

    async fn open(&mut self, slot: HandleSlot, open: &OpenParameters<'_>) -> Result<Performed, ClientError> {
        if let Some(handle) = handle_of(&self.open, slot) {
            match self.close(slot, handle).await {
                Err(error) if error.is_fatal() => return Err(error),
                _ => {}
            }
        }
        let opened = self.connections.current().open(open).await?;
        self.open.push((slot, opened.handle));
        let is_file = open.options & smbscope_client::create_options::DIRECTORY == 0;
        Ok(Performed { files_opened: is_file.into(), ..Performed::DONE })
    }

    async fn close(&mut self, slot: HandleSlot, handle: FileHandle) -> Result<Performed, ClientError> {
        // The handle is useless afterwards, regardless of the response.
        self.forget(slot);
        self.connections.current().close(handle).await?;
        Ok(Performed::DONE)
    }

    async fn write(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<Performed, ClientError> {
        let (mut at, end) = (offset, offset.saturating_add(length.into()));
        if length == 0 {
            self.connections.current().write(handle, offset, &[]).await?;
        }
        while at < end {
            let part = (end - at).min(WRITE_MAX as u64);
            let shift = (at / 512 % (SHIFT_MAX as u64)) as usize;
            let data = &self.payload[shift..shift + part as usize];
            self.connections.current().write(handle, at, data).await?;
            at += part;
        }
        Ok(Performed { bytes_written: length.into(), ..Performed::DONE })
    }

    /// Removes everything that smbscope creates below a path, then the directory itself, which fails if anything else
    /// is left. Missing entries are not an error. Only paths that smbscope creates are listed, because an apparent
    /// directory may be a link to another place.
    async fn remove_tree(&mut self, path: &str, own: &Own<'_>) -> Result<Performed, ClientError> {
        let mut entries: Vec<ListingEntry> = Vec::new();
        let mut pending: Vec<(String, Vec<String>)> = Vec::new();
        let mut next = Some(path.to_owned());
        loop {
            if let Some(directory) = next.take() {
                if pending.len() == DEPTH_MAX {
                    return Ok(Performed::with_status(NtStatus::NAME_TOO_LONG));
                }
                let listed =
                    self.connections.current().list(&format!("{directory}\\*"), LISTED, 0, Some(&mut entries)).await;
                match ignore_missing(listed.map(|_| ())) {
                    Ok(true) => {}
                    Ok(false) => entries.clear(),
                    Err(error) => return Err(error),
                }
                let mut subdirectories = Vec::new();
                for entry in entries.drain(..).filter(|entry| entry.name != "." && entry.name != "..") {
                    let path = format!("{directory}\\{}", entry.name);
                    if entry.attributes & REPARSE_POINT != 0 || !own.has(&path) {
                        continue;
                    }
                    if entry.is_directory() {
                        subdirectories.push(path);
                    } else {
                        ignore_missing(self.connections.current().remove_file(&path).await)?;
                    }
                }
                pending.push((directory, subdirectories));
            }
            let Some((_, subdirectories)) = pending.last_mut() else { return Ok(Performed::DONE) };
            next = subdirectories.pop();
            if next.is_none()
                && let Some((directory, _)) = pending.pop()
            {
                ignore_missing(self.connections.current().remove_directory(&directory).await)?;
            }
        }
    }

    async fn read(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<Performed, ClientError> {
        let bytes_read = self.connections.current().skim(handle, offset, length).await?;
        Ok(Performed { bytes_read, ..Performed::DONE })
    }

    async fn queue(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        writes: bool,
    ) -> Result<Performed, ClientError> {
        let data = &self.payload[..WRITE_MAX];
        let direction = if writes { TransferDirection::Write(data) } else { TransferDirection::Read };
        let moved = self.connections.current().transfer_many(handle, ranges, depth, direction).await?;
        let (bytes_read, bytes_written) = if writes { (0, moved.bytes) } else { (moved.bytes, 0) };
        // The file may have fewer blocks.
        let asked = depth.min(u32::try_from(ranges.len()).unwrap_or(u32::MAX));
        let queue = CommandQueueDepth { asked, reached: moved.outstanding };
        Ok(Performed { bytes_read, bytes_written, queue, ..Performed::DONE })
    }

    async fn read_files(&mut self, files: &[WholeFile], block: u32, at_once: u32) -> Result<Performed, ClientError> {
        let moved = self.connections.current().read_whole_files(files, block, at_once).await?;
        let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let queue = CommandQueueDepth { asked: at_once.min(count), reached: moved.outstanding };
        Ok(Performed { bytes_read: moved.bytes, files_opened: count, queue, ..Performed::DONE })
    }

    async fn open_read_close(&mut self, path: &str, offset: u64, length: u32) -> Result<Performed, ClientError> {
        let bytes_read = self.connections.current().open_read_close(path, offset, length).await?;
        Ok(Performed { bytes_read, files_opened: 1, ..Performed::DONE })
    }

    async fn attempt(&mut self, action: &Action<'_>) -> Result<Performed, ClientError> {
        /// Returns the open file in a slot, or the status that a server would return without one.
        macro_rules! handle {
            ($slot:expr) => {
                match handle_of(&self.open, $slot) {
                    Some(handle) => handle,
                    None => return Ok(Performed::with_status(NtStatus::INVALID_HANDLE)),
                }
            };
        }
        let client = self.connections.current();
        match *action {
            Action::Open { slot, path, access, share, disposition, options, attributes } => {
                let open = OpenParameters { path, access, share, disposition, options, attributes };
                return self.open(slot, &open).await;
            }
            Action::Close(slot) => return self.close(slot, handle!(slot)).await,
            Action::Read { slot, offset, length } => return self.read(handle!(slot), offset, length).await,
            Action::Write { slot, offset, length } => return self.write(handle!(slot), offset, length).await,
            Action::Queue { slot, ranges, depth, writes } => {
                return self.queue(handle!(slot), ranges, depth, writes).await;
            }
            Action::ReadFiles { files, block, at_once } => return self.read_files(files, block, at_once).await,
            Action::RemoveTree(path, own) => return self.remove_tree(path, &own).await,
            Action::OpenReadClose { path, offset, length } => return self.open_read_close(path, offset, length).await,
            Action::Flush(slot) => client.flush(handle!(slot)).await?,
            Action::Lock(slot, range) => client.lock(handle!(slot), range).await?,
            Action::Unlock { slot, offset, length } => client.unlock(handle!(slot), offset, length).await?,
            Action::QueryFile(slot, info) => client.query_file(handle!(slot), info).await.map(drop)?,
            Action::QueryPath(path, info) => client.query_path(path, info).await.map(drop)?,
            Action::QueryFileSystem(info) => client.query_file_system(info).await.map(drop)?,
            Action::SetBasic(slot) => client.set_file(handle!(slot), UNCHANGED).await?,
            Action::SetEnd(slot, end) => client.set_file(handle!(slot), SetInfo::EndOfFile(end)).await?,
            Action::SetDelete(slot, delete) => client.set_file(handle!(slot), SetInfo::Delete(delete)).await?,
            Action::List { pattern, info, most } => client.list(pattern, info, most, None).await.map(drop)?,
            Action::RenameOpen { slot, to, replace } => {
                client.set_file(handle!(slot), SetInfo::Rename { path: to, replace }).await?
            }
            Action::ListOpen { slot, pattern, class, flags } => {
                client.list_open(handle!(slot), pattern, class, flags).await?
            }
            Action::RemoveFile(path) => client.remove_file(path).await?,
            Action::Rename { from, to } => client.rename(from, to).await?,
            Action::MakeDirectory(path) => client.make_directory(path).await?,
            Action::RemoveDirectory(path) => client.remove_directory(path).await?,
            Action::Control { control, slot: Some(slot) } => client.control(control, Some(handle!(slot))).await?,
            Action::Control { control, slot: None } => client.control(control, None).await?,
            Action::SessionSetup => client.reauthenticate().await?,
            Action::TreeConnect(tree) => client.connect_again(tree).await?,
            Action::Echo => client.echo().await?,
            Action::Think(_) | Action::Await { .. } => {}
        }
        Ok(Performed::DONE)
    }
}

impl ServerSession for UserSession {
    async fn perform(&mut self, action: &Action<'_>) -> Result<Performed, ClientError> {
        let result = self.attempt(action).await;
        self.connections.next();
        match result {
            Err(ClientError::Status { status, .. }) => Ok(Performed::with_status(status)),
            other => other,
        }
    }

    fn connection(&self) -> usize {
        self.connections.turn()
    }

    fn samples(&mut self, connection: usize) -> &mut Samples {
        self.connections.get_mut(connection).samples()
    }

    fn connections(&self) -> usize {
        self.connections.count()
    }

    fn identity(&self, connection: usize) -> SessionIdentity {
        let facts = self.connections.get(connection).facts();
        SessionIdentity {
            endpoints: Endpoints { client: facts.local, server: facts.peer },
            dialect: facts.dialect,
            user: self.user.clone(),
            share: Some(self.share.clone()),
        }
    }

    async fn disturbed(&self) -> Result<(), ClientError> {
        self.connections.disturbed().await
    }

    async fn attend(&mut self) -> Result<(), ClientError> {
        self.connections.attend().await
    }

    async fn close_all(&mut self) -> Result<(), ClientError> {
        while let Some((_, handle)) = self.open.pop() {
            match self.connections.current().close(handle).await {
                Err(error) if error.is_fatal() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.connections.disconnect().await
    }
}

fn handle_of(open: &[(HandleSlot, FileHandle)], slot: HandleSlot) -> Option<FileHandle> {
    open.iter().find(|(open, _)| *open == slot).map(|(_, handle)| *handle)
}

fn ignore_missing(result: Result<(), ClientError>) -> Result<bool, ClientError> {
    match result {
        Ok(()) => Ok(true),
        Err(error) => match error.status() {
            Some(
                NtStatus::NO_SUCH_FILE
                | NtStatus::OBJECT_NAME_NOT_FOUND
                | NtStatus::OBJECT_PATH_NOT_FOUND
                | NtStatus::NO_MORE_FILES,
            ) if !error.is_fatal() => Ok(false),
            _ => Err(error),
        },
    }
}

/// The first connection established the session; the others are bound to it.
pub(crate) struct RoundRobinChannels {
    all: Vec<ClientSession>,
    turn: usize,
}

impl RoundRobinChannels {
    pub(crate) async fn make(options: &SessionOptions, count: u32) -> Result<RoundRobinChannels, ClientError> {
        let mut all = vec![ClientSession::connect(options).await?];
        for _ in 1..count {
            let further = all[0].bind(options).await?;
            all.push(further);
        }
        Ok(RoundRobinChannels { all, turn: 0 })
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn turn(&self) -> usize {
        self.turn
    }

    pub(crate) fn current(&mut self) -> &mut ClientSession {
        &mut self.all[self.turn]
    }

    pub(crate) fn next(&mut self) {
        self.turn = (self.turn + 1) % self.all.len();
    }

    pub(crate) fn get(&self, connection: usize) -> &ClientSession {
        &self.all[connection]
    }

    pub(crate) fn get_mut(&mut self, connection: usize) -> &mut ClientSession {
        &mut self.all[connection]
    }

    /// Waits for a message on any connection, or for the end of one. Cancel-safe.
    pub(crate) async fn disturbed(&self) -> Result<(), ClientError> {
        if let [session] = self.all.as_slice() {
            return session.disturbed().await;
        }
        let mut waits: Vec<_> = self.all.iter().map(|session| Box::pin(session.disturbed())).collect();
        poll_fn(|context| {
            let ready = waits.iter_mut().find_map(|wait| match wait.as_mut().poll(context) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            });
            ready.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Handles the server's requests that have already arrived.
    pub(crate) async fn attend(&mut self) -> Result<(), ClientError> {
        for session in &mut self.all {
            session.rest(Instant::now()).await?;
        }
        Ok(())
    }

    /// Disconnects. The session ends with the first connection, so that is the last.
    pub(crate) async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.turn = 0;
        while let Some(further) = self.all.get_mut(1..).and_then(<[ClientSession]>::last_mut) {
            further.disconnect().await?;
            self.all.pop();
        }
        self.all[0].disconnect().await
    }
}

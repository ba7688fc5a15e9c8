//! Bulk transfers in any dialect: several reads or writes of a file outstanding, as far as the connection allows.

use crate::connection::{ClientConnection, DialectFamily, ReceivedResponse};
use crate::limits::Allowance;
use crate::{ClientError, FileHandle, FileRange, Moved, TransferDirection};

/// Reads and writes of a dialect, a command each.
pub(crate) trait TransferCommands {
    type Family: DialectFamily;

    fn connection(&mut self) -> &mut ClientConnection<Self::Family>;

    /// Returns true if a command of this length can be sent now, with others outstanding.
    fn has_room(&self, length: u32, outstanding: usize) -> bool;

    async fn post_read(&mut self, handle: FileHandle, part: FileRange) -> Result<u64, ClientError>;

    async fn post_write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<u64, ClientError>;

    /// Returns the data of a response. Fails if it exceeds the request, because it would count as throughput.
    fn data_read(&self, reply: &FamilyResponse<Self>, length: u32) -> Result<&[u8], ClientError>;

    /// Fails unless everything was written.
    fn check_written(&self, reply: &FamilyResponse<Self>, length: u32) -> Result<(), ClientError>;
}

type FamilyResponse<C> = ReceivedResponse<<<C as TransferCommands>::Family as DialectFamily>::Header>;

/// Data of the commands of a transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TransferData<'d> {
    Read,
    /// Each command writes the start of these bytes.
    Repeated(&'d [u8]),
    /// The bytes are written once, from this offset on.
    Whole(u64, &'d [u8]),
}

impl<'d> TransferData<'d> {
    /// Returns the data to write to a part, or `None` for a read.
    fn for_part(self, part: FileRange) -> Option<&'d [u8]> {
        let (data, start) = match self {
            TransferData::Read => return None,
            TransferData::Repeated(data) => (data, 0),
            TransferData::Whole(from, data) => (data, part.offset.wrapping_sub(from) as usize),
        };
        Some(data.get(start..start.saturating_add(part.length as usize)).unwrap_or_default())
    }
}

/// A transfer, with up to `depth` commands outstanding.
#[derive(Debug)]
pub(crate) struct Transfer<'d, P> {
    /// For error messages.
    pub(crate) what: &'static str,
    pub(crate) handle: FileHandle,
    pub(crate) data: TransferData<'d>,
    pub(crate) depth: usize,
    /// Ranges that a single command can transfer.
    pub(crate) parts: P,
}

impl<P: Iterator<Item = FileRange>> Transfer<'_, P> {
    /// Transfers the parts in order. `take` receives the data of each response, and returns the bytes that it counts.
    /// After a failure, no further part starts.
    pub(crate) async fn run<C: TransferCommands>(
        self,
        session: &mut C,
        mut take: impl FnMut(FileRange, Result<&[u8], ClientError>) -> Result<u64, ClientError>,
    ) -> Result<Moved, ClientError> {
        let Transfer { what, handle, data, depth, parts } = self;
        let mut parts = parts.peekable();
        let mut posted = std::mem::take(&mut session.connection().posted);
        posted.clear();
        let (mut moved, mut failed) = (Moved::default(), None);
        let allowance = Allowance::of_operation(what, session.connection().timeout);
        loop {
            allowance.check()?;
            while failed.is_none()
                && posted.len() < depth
                && let Some(part) = parts.next_if(|part| session.has_room(part.length, posted.len()))
            {
                let id = match data.for_part(part) {
                    None => session.post_read(handle, part).await?,
                    Some(data) => session.post_write(handle, part.offset, data).await?,
                };
                posted.push((id, part));
                moved.outstanding = moved.outstanding.max(posted.len() as u32);
            }
            if posted.is_empty() {
                session.connection().posted = posted;
                return failed.map_or(Ok(moved), Err);
            }
            let reply = session.connection().any_reply().await?;
            let Some(at) = posted.iter().position(|(id, _)| *id == reply.id) else { continue };
            let (_, part) = posted.swap_remove(at);
            let result = match data {
                TransferData::Read => session.data_read(&reply, part.length),
                _ => session.check_written(&reply, part.length).map(|()| [].as_slice()),
            };
            match take(part, result) {
                Ok(bytes) => moved.bytes += bytes,
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
    }
}

/// Reads or writes ranges, in commands of at most `max` bytes and up to `depth` at a time.
pub(crate) async fn transfer_ranges<C: TransferCommands>(
    session: &mut C,
    handle: FileHandle,
    ranges: &[FileRange],
    (max, depth): (u32, u32),
    direction: TransferDirection<'_>,
) -> Result<Moved, ClientError> {
    let parts = ranges.iter().flat_map(|range| range.cut(max));
    let data = match direction {
        TransferDirection::Read => TransferData::Read,
        TransferDirection::Write(data) => TransferData::Repeated(data),
    };
    let transfer = Transfer { what: "a transfer", handle, data, depth: depth as usize, parts };
    let is_read = matches!(direction, TransferDirection::Read);
    transfer
        .run(session, |part, data| data.map(|data| if is_read { data.len() as u64 } else { part.length.into() }))
        .await
}

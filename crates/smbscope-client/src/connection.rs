//! A connection in any dialect: the table of outstanding requests, the wait for their responses, and the samples; and
//! bulk transfers, which keep several reads or writes of a file outstanding, as far as the connection allows.
//!
//! A [`DialectFamily`] encodes requests, decodes what arrives, and protects both. While a caller waits for a response,
//! everything else that arrives is handled too: interim responses, oplock and lease breaks, and responses that are kept
//! for later or discarded.

use crate::limits::{Allowance, BREAKS_MAX};
use crate::transport::{FramedConnection, ReceiveTimes};
use crate::{ClientError, FileHandle, FileRange, Moved, Sample, Samples, SessionOptions, TransferDirection};
use smbscope_model::{Command, CommandGroup, ExchangeOutcome};
use smbscope_wire::status::NtStatus;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

pub(crate) trait DialectFamily: Debug + Sized {
    /// State of an outstanding request besides its sample.
    type Request: Debug;
    type Header: Debug;

    /// Opens a frame. Returns the range of its messages.
    fn open_frame(connection: &mut ClientConnection<Self>) -> Result<Range<usize>, ClientError> {
        Ok(0..connection.link.frame().len())
    }

    /// Takes a message from the rest of the frame. Returns it if it is a response that a caller may be waiting for.
    fn take_message(
        connection: &mut ClientConnection<Self>,
        arrived: ReceiveTimes,
    ) -> Result<Option<ReceivedResponse<Self::Header>>, ClientError>;

    /// Sends the acknowledgements of breaks that have arrived.
    async fn acknowledge(connection: &mut ClientConnection<Self>) -> Result<(), ClientError>;

    /// Withdraws a request that got no response in time, where the dialect has a command for it.
    async fn withdraw(_connection: &mut ClientConnection<Self>, _id: u64) -> Result<(), ClientError> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseConsumer {
    Caller,
    Discarded,
    Later,
}

#[derive(Debug)]
pub(crate) struct OutstandingRequest<R> {
    pub(crate) sample: Sample,
    pub(crate) consumer: ResponseConsumer,
    pub(crate) state: R,
}

/// A response. Its bytes are available until the next frame.
#[derive(Debug)]
pub(crate) struct ReceivedResponse<H> {
    pub(crate) id: u64,
    /// The request's command.
    pub(crate) command: Command,
    pub(crate) status: NtStatus,
    pub(crate) header: H,
    pub(crate) range: Range<usize>,
}

impl<H> ReceivedResponse<H> {
    /// Fails if the server answered with an error.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let ReceivedResponse { command, status, .. } = *self;
        if status.is_error() { Err(ClientError::Status { command, status }) } else { Ok(()) }
    }

    pub(crate) fn ok(self) -> Result<ReceivedResponse<H>, ClientError> {
        self.check().map(|()| self)
    }
}

#[derive(Debug)]
pub(crate) struct ClientConnection<D: DialectFamily> {
    pub(crate) link: FramedConnection,
    pub(crate) dialect: D,
    pub(crate) samples: Samples,
    pub(crate) timeout: Duration,
    /// In the order in which they were sent.
    pub(crate) outstanding: Vec<OutstandingRequest<D::Request>>,
    /// Messages of the last frame that are still to be handled.
    pub(crate) unread: Range<usize>,
    arrived: Option<ReceiveTimes>,
    /// Unsolicited messages since the last response.
    unsolicited: u32,
    kept: Vec<(ReceivedResponse<D::Header>, Vec<u8>)>,
    /// Outstanding parts of a transfer. Kept for its memory.
    pub(crate) posted: Vec<(u64, FileRange)>,
}

impl<D: DialectFamily> ClientConnection<D> {
    pub(crate) async fn connect(options: &SessionOptions, dialect: D) -> Result<ClientConnection<D>, ClientError> {
        Ok(ClientConnection {
            link: FramedConnection::connect(options).await?,
            dialect,
            samples: Samples::with_capacity(16),
            timeout: options.timeout,
            outstanding: Vec::with_capacity(8),
            unread: 0..0,
            arrived: None,
            unsolicited: 0,
            kept: Vec::new(),
            posted: Vec::new(),
        })
    }

    pub(crate) fn request(&self, id: u64) -> Option<&OutstandingRequest<D::Request>> {
        self.outstanding.iter().find(|request| request.sample.message_id == id)
    }

    pub(crate) fn message(&self, response: &ReceivedResponse<D::Header>) -> &[u8] {
        self.link.frame().get(response.range.clone()).unwrap_or_default()
    }

    /// Adds a request to the table, before it is sent.
    pub(crate) fn expect(&mut self, sample: Sample, state: D::Request) {
        self.outstanding.push(OutstandingRequest { sample, consumer: ResponseConsumer::Caller, state });
    }

    /// Sets the consumer of the response to the last request.
    pub(crate) fn answer_to(&mut self, consumer: ResponseConsumer) {
        if let Some(last) = self.outstanding.last_mut() {
            last.consumer = consumer;
        }
    }

    /// Sends the outgoing frame, which holds the requests of the table from index `first` on.
    pub(crate) async fn transmit(&mut self, first: usize) -> Result<(), ClientError> {
        let result = self.link.send(self.timeout).await;
        let sent_from = self.link.sent_from();
        let sent_until = result.as_ref().unwrap_or(&sent_from);
        for request in self.outstanding.iter_mut().skip(first) {
            (request.sample.request_first, request.sample.request_last) = (sent_from, *sent_until);
        }
        match result {
            Ok(_) => Ok(()),
            Err(error) if is_deadline(&error) => {
                let command = self.outstanding.get(first).map_or(Command::EncryptedFrame, |sent| sent.sample.command);
                Err(self.timed_out(command))
            }
            Err(error) => Err(self.lost("sending", error)),
        }
    }

    /// Sends the outgoing frame, which holds the last request of the table and gets no response.
    pub(crate) async fn transmit_one_way(&mut self) -> Result<(), ClientError> {
        let sent = self.transmit(self.outstanding.len().saturating_sub(1)).await;
        if let Some(OutstandingRequest { sample, .. }) = self.outstanding.pop() {
            let sample = sample.abandoned(sample.request_last);
            self.samples.push(Sample { outcome: ExchangeOutcome::NoResponseByDesign, ..sample });
        }
        sent
    }

    /// Waits for the response to a request, no longer than its time limit.
    pub(crate) async fn reply(&mut self, id: u64) -> Result<ReceivedResponse<D::Header>, ClientError> {
        let deadline = self.deadline(self.request(id));
        loop {
            match self.event(id, deadline).await? {
                Some(reply) if reply.id == id => return Ok(reply),
                _ => {}
            }
        }
    }

    /// Waits for the response to any request, no longer than the time limit of the oldest one.
    pub(crate) async fn any_reply(&mut self) -> Result<ReceivedResponse<D::Header>, ClientError> {
        loop {
            let oldest = self.outstanding.iter().find(|request| request.consumer == ResponseConsumer::Caller);
            let id = oldest.map_or(0, |request| request.sample.message_id);
            let deadline = self.deadline(oldest);
            if let Some(reply) = self.event(id, deadline).await? {
                return Ok(reply);
            }
        }
    }

    /// Waits for a response that is kept for later.
    pub(crate) async fn kept_reply(&mut self, id: u64) -> Result<(ReceivedResponse<D::Header>, Vec<u8>), ClientError> {
        loop {
            if let Some(index) = self.kept.iter().position(|(reply, _)| reply.id == id) {
                return Ok(self.kept.swap_remove(index));
            }
            self.serve_one(None).await?;
        }
    }

    pub(crate) fn has_kept(&self, id: u64) -> bool {
        self.kept.iter().any(|(reply, _)| reply.id == id)
    }

    /// Sleeps until `until`, and handles what arrives.
    pub(crate) async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        while self.serve_one(Some(until)).await? {}
        Ok(())
    }

    /// Waits until [`Self::rest`] has something to do or the connection ends. May wake up spuriously.
    pub(crate) async fn disturbed(&self) -> io::Result<()> {
        if self.unread.is_empty() { self.link.disturbed().await } else { Ok(()) }
    }

    /// Handles one message. Returns false once `until` has passed.
    async fn serve_one(&mut self, until: Option<Instant>) -> Result<bool, ClientError> {
        if self.unread.is_empty() {
            match self.link.receive(until).await {
                Ok(arrived) => self.open_frame(arrived)?,
                Err(error) if is_deadline(&error) => return Ok(false),
                Err(error) => return Err(self.lost("resting", error)),
            }
        }
        self.take_message()?;
        D::acknowledge(self).await?;
        // A server that sends without pause must not block the user.
        let is_over = until.is_some_and(|until| Instant::now() >= until);
        Ok(!is_over || !self.unread.is_empty() || self.link.has_frame())
    }

    /// Handles one message, for a caller who waits for the response to request `id` until the deadline. Returns it if
    /// it is a response that the caller may be waiting for.
    pub(crate) async fn event(
        &mut self,
        id: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<ReceivedResponse<D::Header>>, ClientError> {
        if self.unread.is_empty() {
            let arrived = self.receive(id, deadline).await?;
            self.open_frame(arrived)?;
        }
        let reply = self.take_message()?;
        D::acknowledge(self).await?;
        if reply.is_none() && self.link.is_past(deadline) {
            return Err(self.give_up(id).await);
        }
        Ok(reply)
    }

    pub(crate) async fn receive(&mut self, id: u64, deadline: Option<Instant>) -> Result<ReceiveTimes, ClientError> {
        match self.link.receive(deadline).await {
            Ok(arrived) => Ok(arrived),
            Err(error) if is_deadline(&error) => Err(self.give_up(id).await),
            Err(error) => Err(self.lost("waiting for an answer", error)),
        }
    }

    pub(crate) fn open_frame(&mut self, arrived: ReceiveTimes) -> Result<(), ClientError> {
        self.arrived = Some(arrived);
        let opened = D::open_frame(self);
        self.unread = self.checked(opened)?;
        Ok(())
    }

    pub(crate) fn take_message(&mut self) -> Result<Option<ReceivedResponse<D::Header>>, ClientError> {
        let Some(arrived) = self.arrived else { return Ok(None) };
        let taken = D::take_message(self, arrived);
        self.checked(taken)
    }

    /// Returns the end of the wait for a response, or `None` for an expected wait.
    pub(crate) fn deadline(&self, request: Option<&OutstandingRequest<D::Request>>) -> Option<Instant> {
        let limited = request.filter(|request| request.sample.group != CommandGroup::Waiting)?;
        limited.sample.request_first.checked_add(self.timeout)
    }

    /// Records the final response to the request at `index`. Returns it if the caller consumes it.
    pub(crate) fn complete(
        &mut self,
        index: usize,
        (status, header): (NtStatus, D::Header),
        range: Range<usize>,
        arrived: ReceiveTimes,
        bytes: usize,
    ) -> Option<ReceivedResponse<D::Header>> {
        let OutstandingRequest { sample, consumer, .. } = self.outstanding.remove(index);
        self.samples.push(Sample { status: Some(status), ..sample.completed(arrived, bytes) });
        if consumer != ResponseConsumer::Discarded {
            self.unsolicited = 0;
        }
        let reply = ReceivedResponse { id: sample.message_id, command: sample.command, status, header, range };
        match consumer {
            ResponseConsumer::Caller => return Some(reply),
            ResponseConsumer::Discarded => {}
            ResponseConsumer::Later => {
                let message = self.message(&reply).to_vec();
                self.kept.push((reply, message));
            }
        }
        None
    }

    pub(crate) fn count_unsolicited(&mut self) -> Result<(), ClientError> {
        self.unsolicited += 1;
        if self.unsolicited > BREAKS_MAX {
            let text = format!("more than {BREAKS_MAX} oplock or lease breaks without a response in between");
            return Err(ClientError::Protocol(text));
        }
        Ok(())
    }

    async fn give_up(&mut self, id: u64) -> ClientError {
        let command = self.command(id);
        match D::withdraw(self, id).await {
            Ok(()) => self.timed_out(command),
            Err(error) => error,
        }
    }

    fn timed_out(&mut self, command: Command) -> ClientError {
        self.abandon();
        ClientError::TimedOut { command, waited: self.timeout }
    }

    fn command(&self, id: u64) -> Command {
        let request = self.request(id).or(self.outstanding.first());
        request.map_or(Command::EncryptedFrame, |request| request.sample.command)
    }

    fn lost(&mut self, what: &'static str, error: io::Error) -> ClientError {
        self.abandon();
        ClientError::on_connection(what, error)
    }

    /// Abandons all requests after an error, which the server's messages can't follow.
    pub(crate) fn checked<T>(&mut self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        result.inspect_err(|_| self.abandon())
    }

    fn abandon(&mut self) {
        let now = Instant::now();
        self.samples.extend(self.outstanding.drain(..).map(|request| request.sample.abandoned(now)));
        self.unread = 0..0;
    }
}

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

/// Returns true if the wait ended by the client's own time limit. Errors of the system have a number.
fn is_deadline(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

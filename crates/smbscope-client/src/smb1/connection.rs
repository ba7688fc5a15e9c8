//! An SMB1 connection (MS-CIFS 3.2.4.1 and 3.2.5.1): sends a request, finds its response by MID, checks it, and keeps a
//! sample. One command is outstanding at a time, apart from a directory watch and the queue of a transfer.

use super::super::crypto::Smb1Signer;
use super::super::limits::BREAKS_MAX;
use super::super::transport::{FramedConnection, ReceiveTimes};
use super::super::{ClientError, FileHandle, Sample, Samples, SessionOptions};
use crate::sample::{HeaderIds, RequestDetails};
use crate::smb1::requests::{Mids, Smb1ChangeNotify, Smb1OutstandingRequest};
use smbscope_model::{Command, ExchangeOutcome, Subcommand};
use smbscope_wire::smb1::messages::trans2::Trans2Request;
use smbscope_wire::smb1::messages::{
    LockingAndx, LockingAndxRequest, Malformed, Smb1Message, Transaction2Response, TransactionReassembly, lock_type,
    parse_empty,
};
use smbscope_wire::smb1::{self, Smb1Header, flags, flags2};
use smbscope_wire::status::NtStatus;
use std::io;
use std::time::{Duration, Instant};

pub(super) const NO_TREE: u16 = 0xffff;
/// Process ID of all requests. Locks belong to it.
pub(super) const PID: u16 = 0x5353;
/// Maximum parameter and data bytes of a transaction: the range of its counts.
const MOST_OF_A_TRANSACTION: usize = u16::MAX as usize;

#[derive(Debug)]
pub(super) struct Smb1Connection {
    pub(super) link: FramedConnection,
    pub(super) header: Smb1Header,
    pub(super) signer: Option<Smb1Signer>,
    pub(super) samples: Samples,
    pub(super) assembly: TransactionReassembly,
    /// The one request that may stay outstanding while others are sent.
    pub(super) watch: Option<Smb1ChangeNotify>,
    unasked: u32,
    mids: Mids,
    /// Last request sent. Still set if its caller stopped waiting.
    under_way: Option<Smb1OutstandingRequest>,
    /// Outstanding requests of a queue, oldest first. Still there if the caller stopped waiting.
    queued: Vec<Smb1OutstandingRequest>,
    pub(super) timeout: Duration,
}

impl Smb1Connection {
    pub(super) fn new(link: FramedConnection, options: &SessionOptions) -> Smb1Connection {
        let flags2 = flags2::LONG_NAMES | flags2::IS_LONG_NAME | flags2::NT_STATUS | flags2::UNICODE;
        Smb1Connection {
            link,
            header: Smb1Header {
                command: smb1::Smb1Command::NEGOTIATE,
                status: 0,
                flags: flags::CASE_INSENSITIVE | flags::CANONICALIZED_PATHS,
                flags2: flags2 | flags2::EXTENDED_SECURITY,
                tid: NO_TREE,
                pid: PID,
                uid: 0,
                mid: 0,
            },
            signer: None,
            samples: Samples::new(),
            assembly: TransactionReassembly::default(),
            watch: None,
            unasked: 0,
            mids: Mids::default(),
            under_way: None,
            queued: Vec::new(),
            timeout: options.timeout,
        }
    }

    pub(super) fn message(&self) -> &[u8] {
        self.link.frame()
    }

    /// Returns the single message of a response in [`Smb1Connection::message`]. A refusal is an error.
    pub(super) async fn call<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<Smb1Header, ClientError> {
        let pending = self.send(request, about).await?;
        let header = self.answer(&pending, &[pending.command]).await?;
        // Parsed even if the caller needs nothing from it, to detect truncation.
        parse_empty(self.message(), pending.command).map_err(malformed)?;
        Ok(header)
    }

    pub(super) async fn call_in_tree<R: Smb1Message>(
        &mut self,
        tid: u16,
        request: &R,
    ) -> Result<Smb1Header, ClientError> {
        let own = std::mem::replace(&mut self.header.tid, tid);
        let sent = self.send(request, RequestDetails::default()).await;
        self.header.tid = own;
        let pending = sent?;
        let header = self.answer(&pending, &[pending.command]).await?;
        parse_empty(self.message(), pending.command).map_err(malformed)?;
        Ok(header)
    }

    /// Waits for the single-message response to a request, which may have one of these commands. A refusal is an error.
    pub(super) async fn answer(
        &mut self,
        pending: &Smb1OutstandingRequest,
        commands: &[smb1::Smb1Command],
    ) -> Result<Smb1Header, ClientError> {
        let (header, arrived) = self.receive_any(pending, commands).await?;
        let bytes = self.message().len();
        self.complete(pending, &header, arrived, bytes);
        self.accept(pending, &header)?;
        Ok(header)
    }

    /// Sends a TRANSACTION2 and collects its response in [`Smb1Connection::assembly`]. A refusal is an error.
    pub(super) async fn transact<R: Trans2Request>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<(), ClientError> {
        let pending = self.send(request, about.with(Subcommand::Trans2(const { R::SUBCOMMAND }))).await?;
        self.assembly.begin(MOST_OF_A_TRANSACTION);
        self.receive_parts(&pending).await
    }

    async fn receive_parts(&mut self, pending: &Smb1OutstandingRequest) -> Result<(), ClientError> {
        let (mut first, mut bytes) = (None, 0);
        loop {
            let (header, arrived) = self.receive(pending).await?;
            let arrived = ReceiveTimes { first: *first.get_or_insert(arrived.first), last: arrived.last };
            bytes += self.link.frame().len();
            let part = match refusal(&header, self.link.frame()) {
                Some(_) => Ok(true),
                None => Transaction2Response::parse(self.link.frame())
                    .and_then(|answer| self.assembly.add(pending.command, &answer.0)),
            };
            if matches!(part, Ok(false)) {
                self.under_way = Some(*pending);
                if self.link.is_past(pending.deadline(self.timeout)) {
                    return Err(self.broken(io::ErrorKind::TimedOut.into(), "waiting for an answer"));
                }
                continue;
            }
            self.complete(pending, &header, arrived, bytes);
            self.accept(pending, &header)?;
            return part.map(drop).map_err(malformed);
        }
    }

    pub(super) async fn send<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<Smb1OutstandingRequest, ClientError> {
        self.forget_abandoned();
        self.send_beside(request, about).await
    }

    pub(super) async fn post<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<u16, ClientError> {
        let pending = self.send_beside(request, about).await?;
        self.under_way = None;
        self.queued.push(pending);
        Ok(pending.mid)
    }

    /// Others of a queue may be outstanding.
    async fn send_beside<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<Smb1OutstandingRequest, ClientError> {
        let mid = self.next_mid();
        let header = Smb1Header { mid, ..self.header };
        request.emit(&header, self.link.begin());
        let sequence = match &mut self.signer {
            Some(signer) => Some(signer.sign(&mut self.link.outgoing()[FramedConnection::START..])),
            None => None,
        };
        let sample = self.sample(R::COMMAND, &header, about);
        self.transmit(Smb1OutstandingRequest { command: R::COMMAND, mid, sequence, sample }, "sending a request").await
    }

    /// Returns the sample of the message in the outgoing frame.
    fn sample(&mut self, command: smb1::Smb1Command, header: &Smb1Header, about: RequestDetails) -> Sample {
        Sample {
            request_bytes: (self.link.outgoing().len() - FramedConnection::START) as u32,
            signed: self.signer.is_some(),
            ..Sample::new(Command::Smb1(command), about, ids(header), Instant::now())
        }
    }

    /// Sends the outgoing frame, which is outstanding from then on.
    async fn transmit(
        &mut self,
        mut pending: Smb1OutstandingRequest,
        what: &'static str,
    ) -> Result<Smb1OutstandingRequest, ClientError> {
        self.under_way = Some(pending);
        match self.link.send(self.timeout).await {
            Ok(sent) => (pending.sample.request_first, pending.sample.request_last) = (self.link.sent_from(), sent),
            Err(error) => return Err(self.broken(error, what)),
        }
        self.under_way = Some(pending);
        Ok(pending)
    }

    /// Drops the requests whose callers stopped waiting. Late responses to them are discarded.
    fn forget_abandoned(&mut self) {
        for left in std::mem::take(&mut self.queued).into_iter().chain(self.under_way.take()) {
            self.unanswered(&left);
            self.mids.ignore(left.mid);
        }
    }

    fn next_mid(&mut self) -> u16 {
        let (watch, queued) = (self.watch.as_ref().map(|watch| watch.pending.mid), &self.queued);
        self.mids.next(|mid| watch == Some(mid) || queued.iter().any(|pending| pending.mid == mid))
    }

    pub(super) async fn send_one_way<R: Smb1Message>(
        &mut self,
        request: &R,
        mid: u16,
        takes_one_number: bool,
    ) -> Result<(), ClientError> {
        let header = Smb1Header { mid, ..self.header };
        request.emit(&header, self.link.begin());
        if let Some(signer) = &mut self.signer {
            let message = &mut self.link.outgoing()[FramedConnection::START..];
            if takes_one_number {
                signer.sign_without_response(message);
            } else {
                signer.sign(message);
            }
        }
        let waits = R::COMMAND == smb1::Smb1Command::LOCKING_ANDX;
        let sample = self.sample(R::COMMAND, &header, RequestDetails { waits, ..RequestDetails::default() });
        match self.link.send(self.timeout).await {
            Ok(sent) => self.samples.push(Sample {
                request_first: self.link.sent_from(),
                request_last: sent,
                outcome: ExchangeOutcome::NoResponseByDesign,
                ..sample.abandoned(sent)
            }),
            Err(error) => return Err(self.broken(error, "sending a request")),
        }
        Ok(())
    }

    pub(super) async fn send_raw(
        &mut self,
        pending: &Smb1OutstandingRequest,
        about: RequestDetails,
        data: &[u8],
    ) -> Result<Smb1OutstandingRequest, ClientError> {
        self.link.begin().extend_from_slice(data);
        let Sample { command, message_id: message, session_id: session, tree_id: tree, signed, .. } = pending.sample;
        let sample = Sample::new(command, about, HeaderIds { message, session, tree }, Instant::now());
        let sample = Sample { request_bytes: data.len() as u32, signed, ..sample };
        self.transmit(Smb1OutstandingRequest { sample, ..*pending }, "sending data").await
    }

    /// Waits for a frame without a header. It is the next one, because nothing else is outstanding.
    pub(super) async fn receive_raw(&mut self, pending: &Smb1OutstandingRequest) -> Result<ReceiveTimes, ClientError> {
        match self.link.receive(pending.deadline(self.timeout)).await {
            Ok(arrived) => {
                self.under_way = None;
                Ok(arrived)
            }
            Err(error) => Err(self.broken(error, "waiting for an answer")),
        }
    }

    /// Waits for a response to `pending`. Handles other messages that arrive first.
    pub(super) async fn receive(
        &mut self,
        pending: &Smb1OutstandingRequest,
    ) -> Result<(Smb1Header, ReceiveTimes), ClientError> {
        self.receive_any(pending, &[pending.command]).await
    }

    async fn receive_any(
        &mut self,
        pending: &Smb1OutstandingRequest,
        commands: &[smb1::Smb1Command],
    ) -> Result<(Smb1Header, ReceiveTimes), ClientError> {
        let deadline = pending.deadline(self.timeout);
        loop {
            let arrived = match self.link.receive(deadline).await {
                Ok(arrived) => arrived,
                Err(error) => return Err(self.broken(error, "waiting for an answer")),
            };
            let header = self.header_of_frame()?;
            // Samba's "go ahead" for a WRITE_RAW is the request's header without the reply flag.
            let is_reply = header.is_reply() || header.command == smb1::Smb1Command::WRITE_RAW;
            if is_reply && header.mid == pending.mid && commands.contains(&header.command) {
                self.verify(pending)?;
                self.under_way = None;
                self.unasked = 0;
                return Ok((header, arrived));
            }
            self.handle_unsolicited(&header, arrived).await?;
            if self.link.is_past(deadline) {
                return Err(self.broken(io::ErrorKind::TimedOut.into(), "waiting for an answer"));
            }
        }
    }

    pub(super) async fn any_answer(
        &mut self,
    ) -> Result<(Smb1OutstandingRequest, Smb1Header, ReceiveTimes), ClientError> {
        let deadline = self.queued.first().and_then(|oldest| oldest.deadline(self.timeout));
        loop {
            let arrived = match self.link.receive(deadline).await {
                Ok(arrived) => arrived,
                Err(error) => return Err(self.broken(error, "waiting for an answer")),
            };
            let header = self.header_of_frame()?;
            let answers = |pending: &Smb1OutstandingRequest| {
                header.is_reply() && (pending.mid, pending.command) == (header.mid, header.command)
            };
            if let Some(at) = self.queued.iter().position(answers) {
                let pending = self.queued[at];
                self.verify(&pending)?;
                self.queued.remove(at);
                self.unasked = 0;
                return Ok((pending, header, arrived));
            }
            self.handle_unsolicited(&header, arrived).await?;
            if self.link.is_past(deadline) {
                return Err(self.broken(io::ErrorKind::TimedOut.into(), "waiting for an answer"));
            }
        }
    }

    /// Sleeps until `until` with nothing outstanding except a watch, and handles the server's requests.
    pub(super) async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        self.forget_abandoned();
        loop {
            match self.link.receive(Some(until)).await {
                Ok(arrived) => {
                    let header = self.header_of_frame()?;
                    self.handle_unsolicited(&header, arrived).await?;
                    // A server that sends without pause must not block the user.
                    if Instant::now() >= until && !self.link.has_frame() {
                        return Ok(());
                    }
                }
                Err(error) if is_deadline(&error) => return Ok(()),
                Err(error) => return Err(self.broken(error, "resting")),
            }
        }
    }

    fn header_of_frame(&mut self) -> Result<Smb1Header, ClientError> {
        Smb1Header::parse(self.link.frame()).ok_or_else(|| self.protocol("a message without an SMB1 header"))
    }

    async fn handle_unsolicited(&mut self, header: &Smb1Header, arrived: ReceiveTimes) -> Result<(), ClientError> {
        self.unasked += 1;
        if self.unasked > BREAKS_MAX {
            return Err(self.protocol(&format!("more than {BREAKS_MAX} unsolicited messages")));
        }
        if let Some(broken) = LockingAndxRequest::parse(self.link.frame()) {
            return self.acknowledge(broken, header, arrived).await;
        }
        if !header.is_reply() {
            return Err(self.protocol("a request to the client other than an oplock break"));
        }
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.pending.mid == header.mid) {
            let watched = watch.pending;
            watch.keep(*header, arrived, self.link.frame());
            return self.verify(&watched);
        }
        if self.mids.was_ignored(header.mid) {
            return Ok(());
        }
        Err(self.protocol("a response without a request"))
    }

    async fn acknowledge(
        &mut self,
        broken: LockingAndxRequest,
        header: &Smb1Header,
        arrived: ReceiveTimes,
    ) -> Result<(), ClientError> {
        let (command, file) = (Command::Smb1(header.command), FileHandle::from(broken.fid).0);
        self.samples.push(Sample::of_break(command, Some(file), ids(header), arrived, self.link.frame().len()));
        let release = LockingAndx {
            fid: broken.fid,
            type_of_lock: lock_type::OPLOCK_RELEASE,
            new_oplock_level: broken.new_oplock_level,
            timeout: 0,
            unlocks: &[],
            locks: &[],
        };
        let mid = self.next_mid();
        // It has no response, unless the file was closed at the same time.
        self.mids.ignore(mid);
        self.send_one_way(&release, mid, false).await
    }

    fn verify(&mut self, pending: &Smb1OutstandingRequest) -> Result<(), ClientError> {
        match (&self.signer, pending.sequence) {
            (Some(signer), Some(sequence)) if !signer.verify(self.link.frame(), sequence) => {
                self.give_up();
                Err(ClientError::Tampered { command: Command::Smb1(pending.command), what: "signature" })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn complete(
        &mut self,
        pending: &Smb1OutstandingRequest,
        header: &Smb1Header,
        arrived: ReceiveTimes,
        bytes: usize,
    ) {
        self.samples.push(Sample { status: Some(NtStatus(header.status)), ..pending.sample.completed(arrived, bytes) });
    }

    fn unanswered(&mut self, pending: &Smb1OutstandingRequest) {
        self.samples.push(pending.sample.abandoned(Instant::now()));
    }

    pub(super) fn accept(&self, pending: &Smb1OutstandingRequest, header: &Smb1Header) -> Result<(), ClientError> {
        match refusal(header, self.link.frame()) {
            None => Ok(()),
            Some(status) if header.nt_status().is_some() => {
                Err(ClientError::Status { command: Command::Smb1(pending.command), status })
            }
            Some(_) => {
                let what = format!("{}: {} instead of an NTSTATUS", pending.command, header.dos_error());
                Err(ClientError::Protocol(what))
            }
        }
    }

    fn broken(&mut self, error: io::Error, what: &'static str) -> ClientError {
        let command = self.under_way.as_ref().or(self.queued.first()).map(|pending| pending.command);
        self.give_up();
        if is_deadline(&error) {
            let command = Command::Smb1(command.unwrap_or(smb1::Smb1Command::INVALID));
            return ClientError::TimedOut { command, waited: self.timeout };
        }
        ClientError::on_connection(what, error)
    }

    fn protocol(&mut self, what: &str) -> ClientError {
        self.give_up();
        ClientError::Protocol(what.to_owned())
    }

    fn give_up(&mut self) {
        for pending in std::mem::take(&mut self.queued).into_iter().chain(self.under_way.take()) {
            self.unanswered(&pending);
        }
        if let Some(watch) = self.watch.take_if(|watch| !watch.is_answered()) {
            self.unanswered(&watch.pending);
        }
    }

    pub(super) fn leave_waiting(&mut self) {
        self.under_way = None;
    }
}

fn ids(header: &Smb1Header) -> HeaderIds {
    HeaderIds { message: header.mid.into(), session: header.uid.into(), tree: header.tid.into() }
}

/// Returns true if the wait ended by the client's own time limit. Errors of the system have a number.
fn is_deadline(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

/// Returns the status of a refusal: an error, or a warning without a body.
fn refusal(header: &Smb1Header, message: &[u8]) -> Option<NtStatus> {
    let status = NtStatus(header.status);
    let has_no_words = message.get(Smb1Header::LENGTH).is_none_or(|count| *count == 0);
    (status.is_error() || (!header.is_success() && has_no_words)).then_some(status)
}

pub(super) fn malformed(malformed: Malformed) -> ClientError {
    ClientError::Protocol(malformed.to_string())
}

//! An SMB2 connection (MS-SMB2 3.2.1.2, 3.2.4.1, 3.2.5.1): numbers requests, charges credits and builds frames; decrypts,
//! splits and verifies responses, matches them with requests, and records breaks.
//!
//! `begin`, `add` and `flush` send requests; several in a frame are a compound.

use crate::connection::{ClientConnection, DialectFamily, OutstandingRequest, ReceivedResponse, ResponseConsumer};
use crate::limits::{INTERIMS_MAX, UNANSWERED_MAX};
use crate::sample::{HeaderIds, RequestDetails};
use crate::smb2::grants::{Breaks, ClientCredits};
use crate::transport::{FramedConnection, ReceiveTimes};
use crate::{ClientError, FileHandle, Sample, SessionOptions};
use smbscope_crypto::{Sealer, Signer};
use smbscope_model::{Command, FileId};
use smbscope_wire::bytes::{u16_at, u64_at};
use smbscope_wire::codec::FixedSizeField;
use smbscope_wire::smb2::messages::oplock_break::Notification;
use smbscope_wire::smb2::messages::{Smb2RequestMessage, plain};
use smbscope_wire::smb2::{self, COMPRESSION_ID, Smb2Header, TRANSFORM_ID, TransformHeader, flags};
use smbscope_wire::status::NtStatus;
use std::ops::Range;
use std::time::{Duration, Instant};

pub(crate) type Smb2Connection = ClientConnection<Smb2Family>;
pub(crate) type Smb2Reply = ReceivedResponse<Smb2Header>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chain {
    Own,
    Related,
}

#[derive(Debug, Default)]
pub(crate) struct Smb2RequestState {
    pub(super) credits_asked: u16,
    pub(super) async_id: Option<u64>,
    pub(super) interims: u32,
}

#[derive(Debug)]
pub(crate) struct Smb2Family {
    pub(super) session_id: u64,
    pub(super) tree_id: u32,
    pub(super) protection: Protection,
    pub(super) credits: ClientCredits,
    pub(super) breaks: Breaks,
    pub(super) has_credit_charge: bool,
    /// True if the last frame was encrypted.
    pub(super) sealed: bool,
    /// Messages to encrypt.
    plain: Vec<u8>,
    /// Start of the last message in the outgoing frame.
    last: Option<usize>,
    /// Requests of the table that were sent before the outgoing frame.
    before: usize,
}

impl Smb2Connection {
    pub(super) async fn open(options: &SessionOptions) -> Result<Smb2Connection, ClientError> {
        let dialect = Smb2Family {
            session_id: 0,
            tree_id: 0,
            protection: Protection::none(),
            credits: ClientCredits::new(options.credits),
            breaks: Breaks::default(),
            has_credit_charge: false,
            sealed: false,
            plain: Vec::new(),
            last: None,
            before: 0,
        };
        ClientConnection::connect(options, dialect).await
    }

    pub(super) async fn call<B: Smb2RequestMessage>(
        &mut self,
        body: &B,
        about: RequestDetails,
    ) -> Result<Smb2Reply, ClientError> {
        let id = self.post(body, about).await?;
        self.reply(id).await
    }

    /// Like [`Self::call`], in another tree. Breaks that arrive during the call are acknowledged in the session's.
    pub(super) async fn call_in_tree<B: Smb2RequestMessage>(
        &mut self,
        tree_id: u32,
        body: &B,
    ) -> Result<Smb2Reply, ClientError> {
        self.afford(self.dialect.credits.charge(body.payload().max(body.expected())).into()).await?;
        self.begin();
        let own = std::mem::replace(&mut self.dialect.tree_id, tree_id);
        let id = self.add(body, RequestDetails::default(), Chain::Own);
        self.dialect.tree_id = own;
        self.flush().await?;
        self.reply(id).await
    }

    pub(super) async fn post<B: Smb2RequestMessage>(
        &mut self,
        body: &B,
        about: RequestDetails,
    ) -> Result<u64, ClientError> {
        self.post_for(body, about, ResponseConsumer::Caller).await
    }

    pub(super) async fn post_for<B: Smb2RequestMessage>(
        &mut self,
        body: &B,
        about: RequestDetails,
        consumer: ResponseConsumer,
    ) -> Result<u64, ClientError> {
        let charge = self.dialect.credits.charge(body.payload().max(body.expected()));
        self.afford(charge.into()).await?;
        self.begin();
        let id = self.add(body, about, Chain::Own);
        self.answer_to(consumer);
        self.flush().await?;
        Ok(id)
    }

    /// Sends a request and returns when its response, if successful, has arrived.
    pub(super) async fn run<B: Smb2RequestMessage>(
        &mut self,
        body: &B,
        about: RequestDetails,
    ) -> Result<(), ClientError> {
        self.call(body, about).await?.ok().map(drop)
    }

    pub(super) async fn afford(&mut self, charge: u32) -> Result<(), ClientError> {
        if self.dialect.credits.affords(charge) {
            return Ok(());
        }
        let deadline = Instant::now().checked_add(self.timeout);
        while !self.dialect.credits.affords(charge) {
            let Some(oldest) = self.outstanding.first() else {
                return Err(ClientError::Protocol(format!(
                    "it grants too few credits for a request that costs {charge}"
                )));
            };
            let id = oldest.sample.message_id;
            self.event(id, deadline).await?;
        }
        Ok(())
    }

    pub(super) fn begin(&mut self) {
        self.dialect.last = None;
        self.dialect.before = self.outstanding.len();
        match self.dialect.protection.mode {
            ProtectionLevel::Sealed => self.dialect.plain.clear(),
            _ => {
                self.link.begin();
            }
        }
    }

    pub(super) fn add<B: Smb2RequestMessage>(&mut self, body: &B, about: RequestDetails, chain: Chain) -> u64 {
        let charge = self.dialect.credits.charge(body.payload().max(body.expected()));
        let (message_id, credits_asked) = self.dialect.credits.spend(charge);
        let header = Smb2Header {
            credit_charge: if self.dialect.has_credit_charge { charge } else { 0 },
            credits: credits_asked,
            flags: if chain == Chain::Related { flags::RELATED_OPERATIONS } else { 0 },
            message_id,
            ..self.header(B::COMMAND)
        };
        self.append(header, body, about, credits_asked);
        message_id
    }

    pub(super) async fn flush(&mut self) -> Result<(), ClientError> {
        self.seal();
        self.transmit(self.dialect.before).await
    }

    /// Completes the outgoing frame: signs its last message, or encrypts all of them.
    fn seal(&mut self) {
        let out = match self.dialect.protection.mode {
            ProtectionLevel::Sealed => &mut self.dialect.plain,
            _ => self.link.outgoing(),
        };
        finish_message(out, self.dialect.last, &self.dialect.protection);
        if let (ProtectionLevel::Sealed, Some(sealer)) =
            (self.dialect.protection.mode, &mut self.dialect.protection.sealer)
        {
            sealer.seal(self.dialect.session_id, &self.dialect.plain, self.link.begin());
        }
    }

    pub(super) fn sent(&mut self) -> &[u8] {
        self.link.outgoing().get(FramedConnection::START..).unwrap_or_default()
    }

    /// Cancels a request (MS-SMB2 3.2.4.24). The server may still respond to it.
    pub(super) async fn cancel(&mut self, id: u64) -> Result<(), ClientError> {
        let Some(request) = self.request(id) else { return Ok(()) };
        let async_id = request.state.async_id;
        self.begin();
        let mut header = self.header(smb2::Smb2Command::CANCEL);
        header.message_id = id;
        if let Some(async_id) = async_id {
            header.async_id = Some(async_id);
            header.flags = flags::ASYNC_COMMAND;
        }
        self.append(header, &plain::Cancel {}, RequestDetails::default(), 0);
        self.seal();
        self.transmit_one_way().await
    }

    fn header(&self, command: smb2::Smb2Command) -> Smb2Header {
        Smb2Header {
            tree_id: Some(self.dialect.tree_id),
            session_id: Some(self.dialect.session_id),
            ..Smb2Header::new(command)
        }
    }

    fn append<B: Smb2RequestMessage>(
        &mut self,
        mut header: Smb2Header,
        body: &B,
        about: RequestDetails,
        credits_asked: u16,
    ) {
        let unknown = self.link.sent_from();
        let mode = self.dialect.protection.mode;
        let (out, first) = match mode {
            ProtectionLevel::Sealed => (&mut self.dialect.plain, 0),
            _ => (self.link.outgoing(), FramedConnection::START),
        };
        let compounded = self.dialect.last.is_some();
        if let Some(last) = self.dialect.last {
            // Members of a compound start at multiples of eight (2.2.1.2).
            let length = out.len() - first;
            out.resize(first + length.next_multiple_of(8), 0);
            let next_command = (out.len() - last) as u32;
            next_command.set(out, last + Smb2Header::NEXT_COMMAND);
            finish_message(out, Some(last), &self.dialect.protection);
            if let Some(before) = self.outstanding.last_mut() {
                before.sample.compounded = true;
                before.sample.request_bytes = next_command;
            }
        }
        if mode == ProtectionLevel::Signed {
            header.flags |= flags::SIGNED;
        }
        let start = out.len();
        header.emit(out);
        body.emit(out);
        self.dialect.last = Some(start);
        let ids =
            HeaderIds { message: header.message_id, session: self.dialect.session_id, tree: self.dialect.tree_id };
        let sample = Sample {
            request_bytes: (out.len() - start) as u32,
            compounded,
            signed: mode == ProtectionLevel::Signed,
            encrypted: mode == ProtectionLevel::Sealed,
            ..Sample::new(Command::Smb2(header.command), about, ids, unknown)
        };
        self.expect(sample, Smb2RequestState { credits_asked, ..Smb2RequestState::default() });
    }
}

fn finish_message(out: &mut [u8], start: Option<usize>, protection: &Protection) {
    if let (Some(signer), Some(message)) = (protection.signing(), start.and_then(|start| out.get_mut(start..))) {
        signer.sign(message);
    }
}

impl Smb2Reply {
    pub(super) fn malformed(&self) -> ClientError {
        ClientError::Protocol(format!("its answer to {} is cut off or malformed", self.header.command))
    }
}

/// Protection of requests, required in responses too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtectionLevel {
    Plain,
    Signed,
    Sealed,
}

/// Protection of a session's messages: signatures (MS-SMB2 3.1.4.1, 3.1.5.1) and encryption (3.1.4.3).
#[derive(Debug)]
pub(super) struct Protection {
    pub(super) signer: Option<Signer>,
    pub(super) sealer: Option<Sealer>,
    pub(super) mode: ProtectionLevel,
    /// True if the key of the response's signature follows from its content, so the session setup verifies it.
    pub(super) checked_later: bool,
}

impl Protection {
    pub(super) fn none() -> Protection {
        Protection { signer: None, sealer: None, mode: ProtectionLevel::Plain, checked_later: false }
    }

    pub(super) fn signing(&self) -> Option<&Signer> {
        self.signer.as_ref().filter(|_| self.mode == ProtectionLevel::Signed)
    }

    pub(super) fn open(&self, frame: &mut [u8]) -> Option<Range<usize>> {
        let length = frame.len();
        self.sealer.as_ref()?.open(frame)?;
        Some(TransformHeader::LENGTH..length)
    }

    /// Fails if a response is less protected than required. `sealed` is true if its frame was decrypted.
    pub(super) fn check(&self, header: &Smb2Header, message: &[u8], sealed: bool) -> Result<(), ClientError> {
        if sealed || self.checked_later {
            return Ok(());
        }
        let command = Command::Smb2(header.command);
        if self.mode == ProtectionLevel::Sealed {
            return Err(ClientError::Protocol(format!("{command} was sent encrypted and answered in plain text")));
        }
        // 3.2.5.1.3: interim responses and unsolicited messages need no signature.
        if header.status == NtStatus::PENDING || header.message_id == u64::MAX {
            return Ok(());
        }
        match (&self.signer, header.is_signed()) {
            (Some(signer), true) if !signer.verify(message) => {
                Err(ClientError::Tampered { command, what: "signature" })
            }
            (_, false) if self.mode == ProtectionLevel::Signed => {
                Err(ClientError::Tampered { command, what: "signature, namely none" })
            }
            _ => Ok(()),
        }
    }
}

/// Time limit for the response to a CANCEL, if the server has answered with STATUS_PENDING before.
const CANCEL_TIME: Duration = Duration::from_secs(1);

impl DialectFamily for Smb2Family {
    type Request = Smb2RequestState;
    type Header = Smb2Header;

    fn open_frame(connection: &mut Smb2Connection) -> Result<Range<usize>, ClientError> {
        let frame = connection.link.frame_mut();
        connection.dialect.sealed = frame.starts_with(&TRANSFORM_ID);
        if frame.starts_with(&COMPRESSION_ID) {
            return Err(ClientError::Protocol("it compresses, but compression was not negotiated".to_owned()));
        }
        if !connection.dialect.sealed {
            return Ok(0..frame.len());
        }
        connection.dialect.protection.open(frame).ok_or_else(|| {
            let first = connection.outstanding.first();
            let command = first.map_or(Command::EncryptedFrame, |request| request.sample.command);
            ClientError::Tampered { command, what: "authentication tag" }
        })
    }

    fn take_message(connection: &mut Smb2Connection, arrived: ReceiveTimes) -> Result<Option<Smb2Reply>, ClientError> {
        let (header, range) = connection.split_message()?;
        let message = connection.link.frame().get(range.clone()).unwrap_or_default();
        connection.dialect.protection.check(&header, message, connection.dialect.sealed)?;
        if header.message_id == u64::MAX && header.command == smb2::Smb2Command::OPLOCK_BREAK {
            return connection.record_break(&header, range, arrived).map(|()| None);
        }
        let index = connection.match_request(&header, message)?;
        let (bytes, file_id) = (message.len(), created(&header, message));
        let request = &mut connection.outstanding[index];
        connection.dialect.credits.granted(header.credits, std::mem::take(&mut request.state.credits_asked));
        if header.status == NtStatus::PENDING && header.async_id.is_some() {
            return note_interim(request, &header, arrived).map(|()| None);
        }
        request.sample.file_id = file_id.or(request.sample.file_id);
        Ok(connection.complete(index, (header.status, header), range, arrived, bytes))
    }

    async fn acknowledge(connection: &mut Smb2Connection) -> Result<(), ClientError> {
        while connection.dialect.credits.affords(1)
            && let Some(acknowledgement) = connection.dialect.breaks.due()
        {
            if connection.outstanding.len() >= UNANSWERED_MAX {
                let what = format!("{UNANSWERED_MAX} break acknowledgements without a response");
                return connection.checked(Err(ClientError::Protocol(what)));
            }
            connection.begin();
            connection.add(&acknowledgement, RequestDetails::default(), Chain::Own);
            connection.answer_to(ResponseConsumer::Discarded);
            connection.flush().await?;
        }
        Ok(())
    }

    /// Cancels the request, and waits briefly for the response if the server has shown signs of life.
    async fn withdraw(connection: &mut Smb2Connection, id: u64) -> Result<(), ClientError> {
        let is_alive = connection.request(id).is_some_and(|request| request.state.async_id.is_some());
        connection.cancel(id).await?;
        let until = Instant::now().checked_add(CANCEL_TIME);
        while is_alive && !connection.link.is_past(until) && connection.request(id).is_some() {
            let Ok(arrived) = connection.link.receive(until).await else { break };
            let mut result = connection.open_frame(arrived).map(|()| None);
            while result.is_ok() && !connection.unread.is_empty() {
                result = connection.take_message();
            }
            if result.is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Smb2Connection {
    fn split_message(&mut self) -> Result<(Smb2Header, Range<usize>), ClientError> {
        let rest = std::mem::replace(&mut self.unread, 0..0);
        let bytes = self.link.frame().get(rest.clone()).unwrap_or_default();
        let header = Smb2Header::parse(bytes)
            .filter(|header| bytes.len() >= Smb2Header::LENGTH && header.is_response())
            .ok_or_else(|| ClientError::Protocol("a message without a response header".to_owned()))?;
        let range = match header.next_command as usize {
            0 => rest,
            next if next >= Smb2Header::LENGTH && next < bytes.len() => {
                self.unread = rest.start + next..rest.end;
                rest.start..rest.start + next
            }
            next => return Err(ClientError::Protocol(format!("a compound whose next message is {next} bytes on"))),
        };
        Ok((header, range))
    }

    fn record_break(
        &mut self,
        header: &Smb2Header,
        range: Range<usize>,
        arrived: ReceiveTimes,
    ) -> Result<(), ClientError> {
        let message = self.link.frame().get(range).unwrap_or_default();
        let notification =
            Notification::parse(message).ok_or_else(|| ClientError::Protocol("a malformed OPLOCK_BREAK".to_owned()))?;
        let bytes = message.len();
        self.count_unsolicited()?;
        let file = match notification {
            Notification::Oplock(oplock) => Some(FileHandle::from(oplock.file).0),
            Notification::Lease(_) => None,
        };
        let (session, tree) = (header.session_id.unwrap_or(0), header.tree_id.unwrap_or(0));
        let ids = HeaderIds { message: header.message_id, session, tree };
        self.samples.push(Sample {
            signed: header.is_signed(),
            encrypted: self.dialect.sealed,
            ..Sample::of_break(Command::Smb2(header.command), file, ids, arrived, bytes)
        });
        self.dialect.breaks.take(notification);
        Ok(())
    }

    fn match_request(&self, header: &Smb2Header, message: &[u8]) -> Result<usize, ClientError> {
        let command = header.command;
        let found = self.outstanding.iter().position(|request| request.sample.message_id == header.message_id);
        let Some(index) = found else {
            let id = header.message_id;
            return Err(ClientError::Protocol(format!("an unsolicited response to {command} {id}")));
        };
        let asked = self.outstanding[index].sample.command;
        if asked != Command::Smb2(command) {
            return Err(ClientError::Protocol(format!("{command} as an answer to {asked}")));
        }
        if header.status == NtStatus::SUCCESS && !has_its_body(command, message) {
            return Err(ClientError::Protocol(format!("its answer to {command} is cut off or malformed")));
        }
        Ok(index)
    }
}

fn note_interim(
    request: &mut OutstandingRequest<Smb2RequestState>,
    header: &Smb2Header,
    arrived: ReceiveTimes,
) -> Result<(), ClientError> {
    request.sample.interim.get_or_insert(arrived.last);
    request.state.async_id = header.async_id;
    request.state.interims += 1;
    if request.state.interims > INTERIMS_MAX {
        let command = header.command;
        return Err(ClientError::Protocol(format!("STATUS_PENDING to {command} more than {INTERIMS_MAX} times")));
    }
    Ok(())
}

fn created(header: &Smb2Header, message: &[u8]) -> Option<FileId> {
    let is_created = header.command == smb2::Smb2Command::CREATE && header.status == NtStatus::SUCCESS;
    let (persistent, volatile) = u64_at(message, 128).zip(u64_at(message, 136)).filter(|_| is_created)?;
    Some(FileId::Smb2 { persistent, volatile })
}

/// Returns true if a successful response has the body of its command, for bodies that are not parsed elsewhere.
fn has_its_body(command: smb2::Smb2Command, message: &[u8]) -> bool {
    let structure_size: u16 = match command {
        smb2::Smb2Command::LOGOFF
        | smb2::Smb2Command::TREE_DISCONNECT
        | smb2::Smb2Command::FLUSH
        | smb2::Smb2Command::LOCK
        | smb2::Smb2Command::ECHO => 4,
        smb2::Smb2Command::CLOSE => 60,
        smb2::Smb2Command::SET_INFO => 2,
        _ => return true,
    };
    message.len() >= Smb2Header::LENGTH + usize::from(structure_size)
        && u16_at(message, Smb2Header::LENGTH) == Some(structure_size)
}

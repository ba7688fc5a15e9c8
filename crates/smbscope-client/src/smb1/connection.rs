//! An SMB1 connection (MS-CIFS 3.2.4.1 and 3.2.5.1): numbers requests by MID, signs them, finds the request of a
//! response, and joins the parts of transactions. One command is outstanding at a time, apart from a directory watch and
//! the queue of a transfer.

use crate::connection::{ClientConnection, DialectFamily, ReceivedResponse, ResponseConsumer};
use crate::sample::{HeaderIds, RequestDetails};
use crate::transport::{FramedConnection, ReceiveTimes};
use crate::{ClientError, FileHandle, Sample, SessionOptions};
use smbscope_crypto::Smb1Signer;
use smbscope_model::{Command, Subcommand};
use smbscope_wire::smb1::messages::trans2::Trans2Request;
use smbscope_wire::smb1::messages::{
    LockingAndx, LockingAndxRequest, Malformed, NtCancel, Smb1Message, Transaction2Response, TransactionReassembly,
    lock_type, parse_empty,
};
use smbscope_wire::smb1::{Smb1Command, Smb1Header, flags, flags2};
use smbscope_wire::status::NtStatus;
use std::time::Instant;

pub(super) const NO_TREE: u16 = 0xffff;
/// Process ID of all requests. Locks belong to it.
pub(super) const PID: u16 = 0x5353;
/// Maximum parameter and data bytes of a transaction: the range of its counts.
const MOST_OF_A_TRANSACTION: usize = u16::MAX as usize;

pub(crate) type Smb1Connection = ClientConnection<Smb1Family>;
pub(crate) type Smb1Reply = ReceivedResponse<Smb1Header>;

#[derive(Debug)]
pub(crate) struct Smb1Family {
    pub(super) header: Smb1Header,
    pub(super) signer: Option<Smb1Signer>,
    pub(super) assembly: TransactionReassembly,
    mids: Mids,
    broken: Option<LockingAndxRequest>,
}

#[derive(Debug)]
pub(crate) struct Smb1RequestState {
    /// Sequence number of the response's signature.
    sequence: Option<u32>,
    /// Parts of the response that have arrived.
    first_part: Option<Instant>,
    bytes: usize,
}

impl DialectFamily for Smb1Family {
    type Request = Smb1RequestState;
    type Header = Smb1Header;

    fn take_message(connection: &mut Smb1Connection, arrived: ReceiveTimes) -> Result<Option<Smb1Reply>, ClientError> {
        connection.unread = 0..0;
        let header = Smb1Header::parse(connection.link.frame())
            .ok_or_else(|| ClientError::Protocol("a message without an SMB1 header".to_owned()))?;
        // Samba's "go ahead" for a WRITE_RAW is the request's header without the reply flag.
        let is_reply = header.is_reply() || header.command == Smb1Command::WRITE_RAW;
        let answered = |asked| match header.command {
            Smb1Command::WRITE_COMPLETE => asked == Command::Smb1(Smb1Command::WRITE_RAW),
            command => asked == Command::Smb1(command),
        };
        let found = connection.outstanding.iter().position(|request| {
            is_reply && request.sample.message_id == u64::from(header.mid) && answered(request.sample.command)
        });
        match found {
            Some(index) => connection.take_answer(index, header, arrived),
            None => connection.take_unsolicited(&header, arrived).map(|()| None),
        }
    }

    async fn acknowledge(connection: &mut Smb1Connection) -> Result<(), ClientError> {
        let Some(broken) = connection.dialect.broken.take() else { return Ok(()) };
        let release = LockingAndx {
            fid: broken.fid,
            type_of_lock: lock_type::OPLOCK_RELEASE,
            new_oplock_level: broken.new_oplock_level,
            timeout: 0,
            unlocks: &[],
            locks: &[],
        };
        let mid = connection.next_mid();
        // It has no response, unless the file was closed at the same time.
        connection.dialect.mids.ignore(mid);
        let about = RequestDetails { waits: true, ..RequestDetails::default() };
        connection.encode(&release, mid, about);
        connection.transmit_one_way().await
    }
}

impl Smb1Connection {
    pub(super) async fn open(options: &SessionOptions) -> Result<Smb1Connection, ClientError> {
        let flags2 = flags2::LONG_NAMES | flags2::IS_LONG_NAME | flags2::NT_STATUS | flags2::UNICODE;
        let header = Smb1Header {
            command: Smb1Command::NEGOTIATE,
            status: 0,
            flags: flags::CASE_INSENSITIVE | flags::CANONICALIZED_PATHS,
            flags2: flags2 | flags2::EXTENDED_SECURITY,
            tid: NO_TREE,
            pid: PID,
            uid: 0,
            mid: 0,
        };
        let (assembly, mids) = (TransactionReassembly::default(), Mids::default());
        ClientConnection::connect(options, Smb1Family { header, signer: None, assembly, mids, broken: None }).await
    }

    /// Returns the single message of a response. A refusal is an error.
    pub(super) async fn call<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<Smb1Reply, ClientError> {
        let id = self.send(request, about).await?;
        self.whole_answer(id).await
    }

    /// Like [`Self::call`], for callers who need no more than success.
    pub(super) async fn run<R: Smb1Message>(&mut self, request: &R, about: RequestDetails) -> Result<(), ClientError> {
        self.call(request, about).await.map(drop)
    }

    pub(super) async fn call_in_tree<R: Smb1Message>(
        &mut self,
        tid: u16,
        request: &R,
    ) -> Result<Smb1Reply, ClientError> {
        let own = std::mem::replace(&mut self.dialect.header.tid, tid);
        let sent = self.send(request, RequestDetails::default()).await;
        self.dialect.header.tid = own;
        self.whole_answer(sent?).await
    }

    /// Waits for a response, and parses it even if the caller needs nothing from it, to detect truncation.
    async fn whole_answer(&mut self, id: u64) -> Result<Smb1Reply, ClientError> {
        let reply = self.answer(id).await?;
        parse_empty(self.message(&reply), reply.header.command).map_err(malformed)?;
        Ok(reply)
    }

    /// Waits for a response. A refusal is an error.
    pub(super) async fn answer(&mut self, id: u64) -> Result<Smb1Reply, ClientError> {
        let reply = self.reply(id).await?;
        self.accept(&reply)?;
        Ok(reply)
    }

    /// Sends a TRANSACTION2 and collects its response in [`Smb1Family::assembly`]. A refusal is an error.
    pub(super) async fn transact<R: Trans2Request>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<(), ClientError> {
        self.dialect.assembly.begin(MOST_OF_A_TRANSACTION);
        let id = self.send(request, about.with(Subcommand::Trans2(const { R::SUBCOMMAND }))).await?;
        self.answer(id).await.map(drop)
    }

    /// Sends a request with nothing else outstanding but a watch.
    pub(super) async fn send<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<u64, ClientError> {
        self.forget_abandoned();
        self.post(request, about).await
    }

    /// Sends a request. Others of a queue may be outstanding.
    pub(super) async fn post<R: Smb1Message>(
        &mut self,
        request: &R,
        about: RequestDetails,
    ) -> Result<u64, ClientError> {
        let mid = self.next_mid();
        self.encode(request, mid, about);
        self.transmit(self.outstanding.len() - 1).await?;
        Ok(mid.into())
    }

    /// Cancels a request (MS-CIFS 2.2.4.65).
    pub(super) async fn cancel(&mut self, id: u64) -> Result<(), ClientError> {
        self.encode(&NtCancel {}, id as u16, RequestDetails::default());
        self.transmit_one_way().await
    }

    /// Drops the requests whose callers stopped waiting. Late responses to them are discarded.
    pub(super) fn forget_abandoned(&mut self) {
        for left in self.outstanding.extract_if(.., |request| request.consumer == ResponseConsumer::Caller) {
            self.samples.push(left.sample.abandoned(Instant::now()));
            self.dialect.mids.ignore(left.sample.message_id as u16);
        }
    }

    fn next_mid(&mut self) -> u16 {
        let outstanding = &self.outstanding;
        self.dialect.mids.next(|mid| outstanding.iter().any(|request| request.sample.message_id == u64::from(mid)))
    }

    /// Puts a request into the outgoing frame, signs it, and adds it to the table.
    fn encode<R: Smb1Message>(&mut self, request: &R, mid: u16, about: RequestDetails) {
        let header = Smb1Header { mid, ..self.dialect.header };
        request.emit(&header, self.link.begin());
        let message = &mut self.link.outgoing()[FramedConnection::START..];
        let sequence = self.dialect.signer.as_mut().and_then(|signer| match R::COMMAND {
            Smb1Command::NT_CANCEL => {
                signer.sign_without_response(message);
                None
            }
            _ => Some(signer.sign(message)),
        });
        self.expect_answer(R::COMMAND, mid, about, sequence);
    }

    /// Adds the request in the outgoing frame to the table.
    fn expect_answer(&mut self, command: Smb1Command, mid: u16, about: RequestDetails, sequence: Option<u32>) {
        let ids = ids(&Smb1Header { mid, ..self.dialect.header });
        let sample = Sample {
            request_bytes: (self.link.outgoing().len() - FramedConnection::START) as u32,
            signed: self.dialect.signer.is_some(),
            ..Sample::new(Command::Smb1(command), about, ids, Instant::now())
        };
        self.expect(sample, Smb1RequestState { sequence, first_part: None, bytes: 0 });
    }

    /// Sends the data of a WRITE_RAW with this MID.
    pub(super) async fn send_raw(&mut self, id: u64, about: RequestDetails, data: &[u8]) -> Result<(), ClientError> {
        self.link.begin().extend_from_slice(data);
        self.expect_answer(Smb1Command::WRITE_RAW, id as u16, about, None);
        self.transmit(self.outstanding.len() - 1).await
    }

    fn take_answer(
        &mut self,
        index: usize,
        header: Smb1Header,
        arrived: ReceiveTimes,
    ) -> Result<Option<Smb1Reply>, ClientError> {
        let frame = self.link.frame();
        let request = &mut self.outstanding[index];
        if let (Some(signer), Some(sequence)) = (&self.dialect.signer, request.state.sequence)
            && !signer.verify(frame, sequence)
        {
            return Err(ClientError::Tampered { command: request.sample.command, what: "signature" });
        }
        request.state.bytes += frame.len();
        let first = *request.state.first_part.get_or_insert(arrived.first);
        let is_part = header.command == Smb1Command::TRANSACTION2 && refusal(&header, frame).is_none();
        let whole = match is_part {
            true => Transaction2Response::parse(frame)
                .and_then(|answer| self.dialect.assembly.add(header.command, &answer.0)),
            false => Ok(true),
        };
        if whole == Ok(false) {
            return Ok(None);
        }
        let (bytes, range) = (request.state.bytes, 0..frame.len());
        let arrived = ReceiveTimes { first, ..arrived };
        let reply = self.complete(index, (NtStatus(header.status), header), range, arrived, bytes);
        whole.map(|_| reply).map_err(malformed)
    }

    fn take_unsolicited(&mut self, header: &Smb1Header, arrived: ReceiveTimes) -> Result<(), ClientError> {
        self.count_unsolicited()?;
        if let Some(broken) = LockingAndxRequest::parse(self.link.frame()) {
            let (command, file) = (Command::Smb1(header.command), FileHandle::from(broken.fid).0);
            let bytes = self.link.frame().len();
            self.samples.push(Sample::of_break(command, Some(file), ids(header), arrived, bytes));
            self.dialect.broken = Some(broken);
            return Ok(());
        }
        let what = match header.is_reply() {
            true if self.dialect.mids.was_ignored(header.mid) => return Ok(()),
            true => "a response without a request",
            false => "a request to the client other than an oplock break",
        };
        Err(ClientError::Protocol(what.to_owned()))
    }

    pub(super) fn accept(&self, reply: &Smb1Reply) -> Result<(), ClientError> {
        let ReceivedResponse { header, command, .. } = reply;
        match refusal(header, self.message(reply)) {
            None => Ok(()),
            Some(status) if header.nt_status().is_some() => Err(ClientError::Status { command: *command, status }),
            Some(_) => {
                let what = format!("{command}: {} instead of an NTSTATUS", header.dos_error());
                Err(ClientError::Protocol(what))
            }
        }
    }
}

fn ids(header: &Smb1Header) -> HeaderIds {
    HeaderIds { message: header.mid.into(), session: header.uid.into(), tree: header.tid.into() }
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

/// Outstanding SMB1 commands of a queue. Servers allow 50 (Samba, Windows).
pub(super) const OUTSTANDING_MAX: usize = 64;

/// Discarded MIDs remembered, enough for an abandoned queue: they distinguish late responses from protocol errors.
const IGNORED: usize = OUTSTANDING_MAX;

#[derive(Debug)]
struct Mids {
    last: u16,
    ignored: [Option<u16>; IGNORED],
    oldest: usize,
}

impl Default for Mids {
    fn default() -> Mids {
        Mids { last: 0, ignored: [None; IGNORED], oldest: 0 }
    }
}

impl Mids {
    fn next(&mut self, waiting: impl Fn(u16) -> bool) -> u16 {
        loop {
            self.last = self.last.wrapping_add(1);
            let mid = self.last;
            // 0xffff marks the server's own requests, and some servers treat 0 as no ID.
            if mid != 0 && mid != u16::MAX && !waiting(mid) && !self.ignored.contains(&Some(mid)) {
                return mid;
            }
        }
    }

    fn ignore(&mut self, mid: u16) {
        self.ignored[self.oldest] = Some(mid);
        self.oldest = (self.oldest + 1) % IGNORED;
    }

    fn was_ignored(&self, mid: u16) -> bool {
        self.ignored.contains(&Some(mid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_round_without_those_that_are_in_use() {
        let mut mids = Mids::default();
        let first = mids.next(|_| false);
        mids.ignore(7);
        let round: Vec<u16> = (0..0xffff).map(|_| mids.next(|mid| mid == first)).collect();
        assert!(round.iter().all(|mid| ![0, 7, 0xffff, first].contains(mid)));
        assert!(mids.was_ignored(7) && !mids.was_ignored(8));
        let distinct: std::collections::BTreeSet<u16> = round.into_iter().collect();
        assert_eq!(distinct.len(), 65_532);
    }

    #[test]
    fn of_the_ignored_the_oldest_is_forgotten() {
        let mut mids = Mids::default();
        let most = IGNORED as u16;
        (1..=most + 1).for_each(|mid| mids.ignore(mid));
        assert!(!mids.was_ignored(1) && mids.was_ignored(2) && mids.was_ignored(most + 1));
    }
}

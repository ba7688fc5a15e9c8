//! The unit of measurement: a request, its interim responses if any, and its final response.
//!
//! An exchange keeps four timestamps (and that of the first interim response); every duration is derived from them:
//!
//! ```text
//!            request            │ interim │           response
//!   first ────────────── last ──┼────┼────┼── first ────────────── last
//!     │◄─ request_transfer ─►│◄── service_time ──►│◄ response_transfer ►│
//!     │◄────────────────────── response_time ─────────────────────────►│
//!                            │◄──────────────── srt ──────────────────►│
//! ```

use crate::caching::GrantedCaching;
use crate::command::{Command, Dialect, Subcommand};
use crate::group::CommandGroup;
use crate::ids::{FlowId, Stamp};
use crate::named;
use crate::time::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use smbscope_wire::RequestDetail;
use smbscope_wire::names::NtTransact;
use smbscope_wire::smb2;
use smbscope_wire::status::{DosError, NtStatus};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Both ends of a flow, by role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Endpoints {
    /// The side that negotiates.
    pub client: SocketAddr,
    /// The side that answers.
    pub server: SocketAddr,
}

/// One half of an exchange: the packets of the request or of the final response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Half {
    /// The first packet; absent when the capture does not hold it.
    pub first: Option<Stamp>,
    /// The last packet; absent when the capture does not hold it.
    pub last: Option<Stamp>,
    /// Packets that carried the half, retransmissions not counted.
    pub packets: u32,
    /// Bytes of the SMB message or messages, without framing.
    pub bytes: u64,
}

impl Half {
    /// First to last packet. Where the network reordered the two, nothing was transferred in between.
    pub fn transfer(&self) -> Option<Nanos> {
        Some((self.last?.time - self.first?.time).max(Nanos(0)))
    }
}

/// The shortest standstill that is noted: longer than the first retransmission time-out of common systems, as the capture
/// cannot always tell that a segment was lost on its way to it.
pub const STANDSTILL_LEAST: Nanos = Nanos(250_000_000);

/// What a name of a user, a share or a file ends with when only its beginning is known.
pub const CUT_NAME_MARK: char = '…';

/// A time in which the server stood still during a message: it sent no more of a response that it had begun,
/// though the client had room for it, or had no room for more of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// The packet after which nothing came.
    pub from: Timestamp,
    /// Until the next packet.
    pub length: Nanos,
}

impl Standstill {
    /// When the next packet came.
    pub fn end(&self) -> Timestamp {
        Timestamp(self.from.0.saturating_add(self.length.0))
    }
}

/// The status of a response: an NTSTATUS, or the class and code of clients that did not ask for NTSTATUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResponseStatus {
    /// MS-ERREF 2.3.
    Nt(NtStatus),
    /// MS-CIFS 2.2.2.4.
    Dos(DosError),
}

impl ResponseStatus {
    /// Every NTSTATUS with a name.
    pub fn known() -> impl Iterator<Item = ResponseStatus> {
        NtStatus::KNOWN.iter().map(|status| ResponseStatus::Nt(*status))
    }

    /// Success, or a warning that carries data (such as STATUS_BUFFER_OVERFLOW or STATUS_MORE_PROCESSING_REQUIRED).
    pub fn is_error(self) -> bool {
        match self {
            ResponseStatus::Nt(status) => status.is_error(),
            ResponseStatus::Dos(error) => error.class != 0,
        }
    }
}

impl fmt::Display for ResponseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseStatus::Nt(status) => status.fmt(f),
            ResponseStatus::Dos(error) => error.fmt(f),
        }
    }
}

/// An open file: the 16 bytes of an SMB2 FileId, or an SMB1 FID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FileId {
    /// MS-CIFS 2.2.4: the FID field.
    Smb1(u16),
    /// MS-SMB2 2.2.14.1: persistent and volatile part.
    Smb2 {
        /// Survives a reconnect.
        persistent: u64,
        /// Unique on the connection.
        volatile: u64,
    },
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileId::Smb1(fid) => write!(f, "0x{fid:04x}"),
            FileId::Smb2 { persistent, volatile } => write!(f, "{persistent:016x}:{volatile:016x}"),
        }
    }
}

named! {
    /// How an exchange ended. Only [`Outcome::Complete`] counts in the statistics; the others say why not.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum ExchangeOutcome {
        /// Request and final response seen, first packet to last.
        Complete = "complete",
        /// The response was found, but its last packet was not captured, or the network lost an earlier one and the packet
        /// that was sent again was not captured.
        ResponseEndMissing = "response_end_missing",
        /// No response, although the capture shows the server's whole stream until its end.
        Unanswered = "unanswered",
        /// No response found, and the capture lacks bytes that may have held it.
        ResponseNotCaptured = "response_not_captured",
        /// A response whose request the capture does not hold.
        RequestNotCaptured = "request_not_captured",
        /// The id was used for another request before a response was seen.
        IdReused = "id_reused",
        /// A response with the right id was refused, because a gap could hide that the id was recycled.
        AmbiguousMatch = "ambiguous_match",
        /// A message that is never answered: CANCEL, SMB1 oplock acknowledgement, the data block of Write_Raw.
        NoResponseByDesign = "no_response_by_design",
        /// A message that the server sent of its own accord.
        ServerInitiated = "server_initiated",
        /// The table of outstanding requests was full; the oldest was evicted.
        Evicted = "evicted",
        /// An encrypted frame with others outstanding: nothing says which answer is its own.
        NotPairable = "not_pairable",
        /// Both halves seen, but the response before the request: the capture's clock stepped backwards, or it
        /// reordered packets.
        ClockStep = "clock_step",
    }
}

named! {
    /// The durations that an exchange yields; [`Exchange::time`] computes them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TimeKind {
        /// Request first → response last.
        ResponseTime = "response_time",
        /// Request last → response first.
        ServiceTime = "service_time",
        /// Service time less the round trip between capture point and server.
        ServerTime = "server_time",
        /// Request first → request last.
        RequestTransfer = "request_transfer",
        /// Response first → response last.
        ResponseTransfer = "response_transfer",
        /// Request last → response last: what Wireshark calls service response time.
        Srt = "srt",
        /// First copy → last copy of a retransmitted segment of either half.
        RetransmissionDelay = "retransmission_delay",
        /// Previous response last → request first, same flow, nothing outstanding.
        ThinkTime = "think_time",
    }
}

/// What a request asked for beyond what it worked on, to send its like again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The request.
    pub request: RequestDetail,
    /// What was opened; of a successful open.
    pub created: Option<CreatedFile>,
}

impl Details {
    /// Those of a request that was not answered yet.
    pub fn from_request(request: Option<&RequestDetail>) -> Option<Box<Details>> {
        request.map(|request| Box::new(Details { request: request.clone(), created: None }))
    }
}

/// What an open found or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedFile {
    /// 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub action: u32,
    /// Bytes of the file.
    pub size: u64,
    /// MS-FSCC 2.6.
    pub attributes: u32,
}

/// A request and its answer, with the four timestamps and what the protocol's state says about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The flow that carried it.
    pub flow: FlowId,
    /// Its two ends.
    pub endpoints: Endpoints,
    /// The dialect of the connection, once negotiated.
    pub dialect: Option<Dialect>,
    /// The command of the request (of the response where the request is not known).
    pub command: Command,
    /// What the command was used for.
    pub subcommand: Option<Subcommand>,
    /// Where it is counted.
    pub group: CommandGroup,
    /// SMB2 MessageId or SMB1 MID; absent for encrypted frames and where a short snap length cut it off.
    pub message_id: Option<u64>,
    /// SMB2 SessionId or SMB1 UID.
    pub session_id: Option<u64>,
    /// SMB2 TreeId or SMB1 TID.
    pub tree_id: Option<u32>,
    /// The open that it works on.
    pub file_id: Option<FileId>,
    /// Who: `DOMAIN\user`.
    pub user: Option<Arc<str>>,
    /// Where: the share's name.
    pub share: Option<Arc<str>>,
    /// On what: the path below the share.
    pub path: Option<Arc<str>>,
    /// Status of the final response.
    pub status: Option<ResponseStatus>,
    /// The request's packets.
    pub request: Half,
    /// The first interim response.
    pub interim: Option<Stamp>,
    /// The final response's packets.
    pub response: Half,
    /// File offset of reads, writes and locks.
    pub offset: Option<u64>,
    /// Length asked for of reads, writes and locks.
    pub length: Option<u64>,
    /// Shares its frame, and so its timestamps, with other members of a compound.
    pub compounded: bool,
    /// Either half carried a signature.
    pub signed: bool,
    /// Either half was encrypted.
    pub encrypted: bool,
    /// Of an open what it was granted, of a read what its open holds; absent where the capture does not show it.
    pub caching: Option<GrantedCaching>,
    /// What the request asked for beyond that; only where an analysis was told to keep it. It is not serialized.
    #[serde(skip)]
    pub details: Option<Box<Details>>,
    /// A read of bytes that were read before in the same session, with no sign that they changed since.
    pub repeated: bool,
    /// How it ended.
    pub outcome: ExchangeOutcome,
    /// Of a request without a response: true if the server's TCP acknowledged all of it, false if the capture shows
    /// acknowledgments of the server but none of all its bytes. Absent of all others, and where the capture holds no
    /// acknowledgment of the server.
    pub acknowledged: Option<bool>,
    /// Retransmitted segments of either half.
    pub retransmitted: u32,
    /// First copy to last copy of a retransmitted segment of either half, the longest.
    pub retransmission_delay: Option<Nanos>,
    /// The last copy of that segment.
    pub resent: Option<Timestamp>,
    /// The longest time in which the server stood still during either half; only those of
    /// [`STANDSTILL_LEAST`] and more are noted.
    pub standstill: Option<Standstill>,
    /// The round trip between capture point and server, as known when the exchange ended.
    pub server_round_trip: Option<Nanos>,
    /// The client's own time before the request.
    pub think_time: Option<Nanos>,
}

impl Exchange {
    /// One about which nothing is known but what it is.
    #[inline]
    pub fn new(flow: FlowId, endpoints: Endpoints, command: Command, group: CommandGroup) -> Exchange {
        Exchange {
            flow,
            endpoints,
            dialect: None,
            command,
            subcommand: None,
            group,
            message_id: None,
            session_id: None,
            tree_id: None,
            file_id: None,
            user: None,
            share: None,
            path: None,
            status: None,
            request: Half::default(),
            interim: None,
            response: Half::default(),
            offset: None,
            length: None,
            compounded: false,
            signed: false,
            encrypted: false,
            caching: None,
            details: None,
            repeated: false,
            outcome: ExchangeOutcome::Unanswered,
            acknowledged: None,
            retransmitted: 0,
            retransmission_delay: None,
            resent: None,
            standstill: None,
            server_round_trip: None,
            think_time: None,
        }
    }

    /// Whether it counts in the statistics.
    pub fn is_complete(&self) -> bool {
        self.outcome == ExchangeOutcome::Complete
    }

    /// The earliest packet that is known of it.
    pub fn start(&self) -> Option<Timestamp> {
        let Exchange { request, response, .. } = self;
        request.first.or(request.last).or(response.first).or(response.last).map(|stamp| stamp.time)
    }

    /// Whether it is an expected wait without holding anybody up: a subscription to changes, which a client has
    /// outstanding beside its work (MS-SMB2 2.2.35, MS-CIFS 2.2.7.4).
    pub fn is_subscription(&self) -> bool {
        self.group == CommandGroup::Waiting
            && (self.command == Command::Smb2(smb2::Smb2Command::CHANGE_NOTIFY)
                || self.subcommand == Some(Subcommand::NtTransact(NtTransact::NOTIFY_CHANGE)))
    }

    /// Whether the response begins before the last packet of its request, as where the capture exchanged packets: then there is
    /// no service time.
    pub fn answers_early(&self) -> bool {
        self.response.first.zip(self.request.last).is_some_and(|(answer, asked)| answer.time < asked.time)
    }

    /// One of the durations; absent when a timestamp that it needs was not captured, and where it would be negative.
    pub fn time(&self, kind: TimeKind) -> Option<Nanos> {
        match kind {
            TimeKind::ResponseTime => elapsed(self.request.first?, self.response.last?),
            TimeKind::ServiceTime => elapsed(self.request.last?, self.response.first?),
            TimeKind::ServerTime => {
                let server_time = self.time(TimeKind::ServiceTime)? - self.server_round_trip?;
                Some(server_time.max(Nanos(0)))
            }
            TimeKind::RequestTransfer => self.request.transfer(),
            TimeKind::ResponseTransfer => self.response.transfer(),
            TimeKind::Srt => elapsed(self.request.last?, self.response.last?),
            TimeKind::RetransmissionDelay => self.retransmission_delay,
            TimeKind::ThinkTime => self.think_time,
        }
    }
}

/// The time between two packets, unless the first is the later one.
fn elapsed(from: Stamp, to: Stamp) -> Option<Nanos> {
    Some(to.time - from.time).filter(|time| time.0 >= 0)
}

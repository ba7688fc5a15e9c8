//! The unit of measurement: a request, its interim responses if any, and its final response.
//!
//! An exchange keeps four timestamps and the first interim response's; every duration is derived from them:
//!
//! ```text
//!            request            │ interim │           response
//!   first ────────────── last ──┼────┼────┼── first ────────────── last
//!     │◄─ request_transfer ─►│◄── service_time ──►│◄ response_transfer ►│
//!     │◄────────────────────── response_time ─────────────────────────►│
//!                            │◄──────────────── srt ──────────────────►│
//! ```

use crate::groups::{Command, CommandGroup, Dialect, Subcommand};
use crate::named;
use crate::time::{FlowId, Nanos, Stamp, Timestamp};
use serde::{Deserialize, Serialize};
use smbscope_wire::names::NtTransact;
use smbscope_wire::status::{DosError, NtStatus};
use smbscope_wire::{RequestDetail, smb2};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Endpoints {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Half {
    pub first: Option<Stamp>,
    pub last: Option<Stamp>,
    /// Number of packets, without retransmissions.
    pub packets: u32,
    /// Size of the SMB message or messages, without framing.
    pub bytes: u64,
}

impl Half {
    /// Returns the time from the first packet to the last; zero if the network reordered them.
    pub fn transfer(&self) -> Option<Nanos> {
        Some((self.last?.time - self.first?.time).max(Nanos(0)))
    }
}

/// Minimum length of a recorded standstill. Longer than the initial retransmission timeout of common systems, because
/// a segment lost upstream of the capture point looks the same.
pub const STANDSTILL_LEAST: Nanos = Nanos(250_000_000);

pub const CUT_NAME_MARK: char = '…';

/// Pause of the server in the middle of a message: it stopped sending a response although the client's window was
/// open, or closed its own window during a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// Last packet before the pause.
    pub from: Timestamp,
    pub length: Nanos,
}

impl Standstill {
    pub fn end(&self) -> Timestamp {
        Timestamp(self.from.0.saturating_add(self.length.0))
    }
}

/// Status of a response (MS-ERREF 2.3); class and code (MS-CIFS 2.2.2.4) if the client did not negotiate NTSTATUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResponseStatus {
    Nt(NtStatus),
    Dos(DosError),
}

impl ResponseStatus {
    pub fn known() -> impl Iterator<Item = ResponseStatus> {
        NtStatus::KNOWN.iter().map(|status| ResponseStatus::Nt(*status))
    }

    /// Returns true unless the request succeeded or got a warning that carries data, such as STATUS_BUFFER_OVERFLOW.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FileId {
    /// FID (MS-CIFS 2.2.4).
    Smb1(u16),
    /// FileId (MS-SMB2 2.2.14.1).
    Smb2 {
        /// Part that survives a reconnect.
        persistent: u64,
        /// Part that is unique on the connection.
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
    /// Outcome of an exchange. Statistics count only [`ExchangeOutcome::Complete`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum ExchangeOutcome {
        /// The capture holds the request and the final response, from first packet to last.
        Complete = "complete",
        /// The response's last packet was not captured, or an earlier one was lost and its retransmission not captured.
        ResponseEndMissing = "response_end_missing",
        /// The server never responded, although the capture holds its whole stream.
        Unanswered = "unanswered",
        /// No response was found, and the capture lacks bytes that may have held it.
        ResponseNotCaptured = "response_not_captured",
        RequestNotCaptured = "request_not_captured",
        /// The id was reused for another request before a response arrived.
        IdReused = "id_reused",
        /// A response with the right id was rejected, because a gap may hide a reuse of the id.
        AmbiguousMatch = "ambiguous_match",
        /// The message never gets a response: CANCEL, SMB1 oplock acknowledgement, the data block of Write_Raw.
        NoResponseByDesign = "no_response_by_design",
        ServerInitiated = "server_initiated",
        /// Evicted as the oldest entry of the full table of outstanding requests.
        Evicted = "evicted",
        /// An encrypted frame while others were outstanding, so that request and response cannot be paired.
        NotPairable = "not_pairable",
        /// The response has the earlier timestamp: the clock stepped back, or the capture reordered packets.
        ClockStep = "clock_step",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TimeKind {
        ResponseTime = "response_time",
        ServiceTime = "service_time",
        /// Service time minus the round-trip time between capture point and server.
        ServerTime = "server_time",
        RequestTransfer = "request_transfer",
        ResponseTransfer = "response_transfer",
        /// Request last → response last: Wireshark's "service response time".
        Srt = "srt",
        /// First copy → last copy of a retransmitted segment of either half.
        RetransmissionDelay = "retransmission_delay",
        /// Previous response last → request first, same flow, nothing outstanding.
        ThinkTime = "think_time",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    pub request: RequestDetail,
    pub created: Option<CreatedFile>,
}

impl Details {
    pub fn from_request(request: Option<&RequestDetail>) -> Option<Box<Details>> {
        request.map(|request| Box::new(Details { request: request.clone(), created: None }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedFile {
    /// 0 superseded, 1 opened, 2 created, 3 overwritten (MS-SMB2 2.2.14).
    pub action: u32,
    pub size: u64,
    /// See MS-FSCC 2.6.
    pub attributes: u32,
}

/// Request and response, with timestamps and the protocol state they belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    pub flow: FlowId,
    pub endpoints: Endpoints,
    /// Dialect of the connection, once negotiated.
    pub dialect: Option<Dialect>,
    /// Command of the request, or of the response if the request is unknown.
    pub command: Command,
    pub subcommand: Option<Subcommand>,
    pub group: CommandGroup,
    /// SMB2 MessageId or SMB1 MID. Absent for encrypted frames and if a short snap length cut it off.
    pub message_id: Option<u64>,
    /// SMB2 SessionId or SMB1 UID.
    pub session_id: Option<u64>,
    /// SMB2 TreeId or SMB1 TID.
    pub tree_id: Option<u32>,
    pub file_id: Option<FileId>,
    /// User as `DOMAIN\user`.
    pub user: Option<Arc<str>>,
    /// Process that the capture names for the request, as `name (id)`.
    pub process: Option<Arc<str>>,
    pub share: Option<Arc<str>>,
    /// Path relative to the share.
    pub path: Option<Arc<str>>,
    pub status: Option<ResponseStatus>,
    pub request: Half,
    pub interim: Option<Stamp>,
    pub response: Half,
    /// File offset and requested length of a read, write or lock.
    pub offset: Option<u64>,
    pub length: Option<u64>,
    /// Part of a compound: the timestamps are the whole frame's.
    pub compounded: bool,
    /// Request or response carried a signature.
    pub signed: bool,
    /// Request or response was encrypted.
    pub encrypted: bool,
    /// Caching that an open was granted, or that the file of a read holds. Absent if unknown.
    pub caching: Option<GrantedCaching>,
    /// Replay parameters. Kept only if the analysis asks for them, and never serialized.
    #[serde(skip)]
    pub details: Option<Box<Details>>,
    /// Read of bytes that the same session had read before, with no sign of a change in between.
    pub repeated: bool,
    pub outcome: ExchangeOutcome,
    /// For a request without response: true if the server's TCP acknowledged all of it, false if it acknowledged
    /// something but not all of it. Absent otherwise, and if the capture holds no acknowledgment from the server.
    pub acknowledged: Option<bool>,
    /// Number of retransmitted segments in both halves.
    pub retransmitted: u32,
    /// Longest time from first to last copy of a retransmitted segment.
    pub retransmission_delay: Option<Nanos>,
    /// Timestamp of that segment's last copy.
    pub resent: Option<Timestamp>,
    /// Longest standstill in either half, at least [`STANDSTILL_LEAST`].
    pub standstill: Option<Standstill>,
    /// Round-trip time between capture point and server, as known when the exchange ended.
    pub server_round_trip: Option<Nanos>,
    pub think_time: Option<Nanos>,
}

impl Exchange {
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
            process: None,
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

    pub fn is_complete(&self) -> bool {
        self.outcome == ExchangeOutcome::Complete
    }

    pub fn start(&self) -> Option<Timestamp> {
        let Exchange { request, response, .. } = self;
        request.first.or(request.last).or(response.first).or(response.last).map(|stamp| stamp.time)
    }

    /// Returns true for change notification (MS-SMB2 2.2.35, MS-CIFS 2.2.7.4), which does not hold up the client.
    pub fn is_subscription(&self) -> bool {
        self.group == CommandGroup::Waiting
            && (self.command == Command::Smb2(smb2::Smb2Command::CHANGE_NOTIFY)
                || self.subcommand == Some(Subcommand::NtTransact(NtTransact::NOTIFY_CHANGE)))
    }

    /// Returns true if the response begins before the request ends, so that the exchange has no service time.
    pub fn answers_early(&self) -> bool {
        self.response.first.zip(self.request.last).is_some_and(|(answer, asked)| answer.time < asked.time)
    }

    /// Returns one of the durations. Absent if a required timestamp is missing or the result would be negative.
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

fn elapsed(from: Stamp, to: Stamp) -> Option<Nanos> {
    Some(to.time - from.time).filter(|time| time.0 >= 0)
}

named! {
    /// Caching granted to an open by an oplock or lease (MS-SMB2 3.3.1.4, 3.3.1.12; MS-CIFS 3.3.1.5).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum GrantedCaching {
        NotRequested = "not requested",
        NotGranted = "not granted",
        /// Caches reads.
        LevelII = "level II oplock",
        /// Caches reads and writes.
        Exclusive = "exclusive oplock",
        /// Caches reads, writes and the handle.
        Batch = "batch oplock",
        LeaseRead = "R lease",
        LeaseReadHandle = "RH lease",
        LeaseReadWrite = "RW lease",
        LeaseReadWriteHandle = "RWH lease",
    }
}

impl GrantedCaching {
    /// Converts lease state bits: 1 read, 2 handle, 4 write (MS-SMB2 2.2.13.2.8).
    pub fn of_lease(state: u32) -> GrantedCaching {
        match state & 7 {
            1 => GrantedCaching::LeaseRead,
            3 => GrantedCaching::LeaseReadHandle,
            5 => GrantedCaching::LeaseReadWrite,
            7 => GrantedCaching::LeaseReadWriteHandle,
            _ => GrantedCaching::NotGranted,
        }
    }

    pub fn keeps_reads(self) -> bool {
        !matches!(self, GrantedCaching::NotRequested | GrantedCaching::NotGranted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_without_reads_is_none() {
        // MS-SMB2 3.3.5.9.8: the valid combinations are R, RH, RW and RWH.
        let granted: Vec<&str> = (0..8).map(|state| GrantedCaching::of_lease(state).name()).collect();
        let none = "not granted";
        assert_eq!(granted, [none, "R lease", none, "RH lease", none, "RW lease", none, "RWH lease"]);
        assert!(GrantedCaching::of_lease(1).keeps_reads() && !GrantedCaching::of_lease(6).keeps_reads());
    }
}

//! What the capture says about one TCP connection that carried SMB.

use crate::command::Dialect;
use crate::exchange::Endpoints;
use crate::ids::FlowId;
use crate::named;
use crate::offers::Offers;
use crate::time::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Counts of one direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Direction"))]
pub struct DirectionCounts {
    /// TCP packets.
    pub packets: u64,
    /// Payload bytes, each counted once.
    pub bytes: u64,
    /// Packets in which at least one SMB message starts.
    pub message_packets: u64,
    /// Packets with data that continue a message.
    pub continuation_packets: u64,
    /// Segments that only acknowledge.
    pub pure_acks: u64,
    /// Segments that carry bytes sent before.
    pub retransmitted: u64,
    /// Segments lost before they reached the capture point: the capture holds only the retransmission, which filled a hole.
    pub lost_before_capture: u64,
    /// Retransmitted segments that the receiver did not need: already acknowledged when sent again, or reported by a
    /// D-SACK (RFC 2883).
    pub needless: u64,
    /// Time in which a loss held up the stream: from the first to the last copy of a segment, or from the hole that its
    /// loss left to the retransmission that filled it. Overlapping delays count once, needless retransmissions not at all.
    pub resend_delay_ns: Nanos,
    /// Times that the sender held data back until a delayed acknowledgment came (Nagle's algorithm, RFC 896, against RFC
    /// 1122 4.2.3.2): a segment, nothing but its acknowledgment 40 or 200 ms later, and the next segment at once. None are
    /// counted where the round trip is 25 ms or longer.
    pub ack_stalls: u64,
    /// Time in which it did, from the segment before to the segment after.
    pub ack_stall_ns: Nanos,
    /// Bytes acknowledged but never captured.
    pub dropped_bytes: u64,
    /// Packets dropped by the capture, at least.
    pub dropped_packets: u64,
    /// Time in which the receiver's window was closed and the sender waited for it.
    pub window_closed_ns: Nanos,
    /// Time in which the sender had filled the receiver's window and waited for an acknowledgment; not known, and zero,
    /// where a SYN was not captured or the round trip is shorter than 1 ms.
    pub window_limited_ns: Nanos,
    /// The largest window that the sender filled like that, in bytes.
    pub filled_window: Option<u32>,
}

/// An interface by which a server says it can be reached (MS-SMB2 2.2.32.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInterface {
    /// The server's number of it: its addresses share it.
    pub index: u32,
    /// Bits a second.
    pub link_speed: u64,
    /// One of its addresses.
    pub address: IpAddr,
}

impl ServerInterface {
    /// Interfaces of a server that are kept.
    pub const MAX_SERVER_INTERFACES: usize = 16;
}

/// A time of a second or more in which a side retransmitted data at least twice and nothing at all came from the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The first copy of the data, or the last packet of the other side if that came later.
    pub from: Timestamp,
    /// The first packet of the other side that passed again; without one, the last packet of the connection.
    pub to: Timestamp,
    /// Retransmissions of the oldest data.
    pub retries: u32,
    /// Whether a packet of the other side passed again.
    pub recovered: bool,
}

impl Outage {
    /// Outages of a connection that are kept, the longest.
    pub const MAX_LISTED: usize = 8;
}

/// A connection's summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSummary {
    /// The flow.
    pub flow: FlowId,
    /// Its two ends.
    pub endpoints: Endpoints,
    /// First packet.
    pub first: Timestamp,
    /// Last packet.
    pub last: Timestamp,
    /// The dialect, once negotiated.
    pub dialect: Option<Dialect>,
    /// Whether the beginning was captured.
    pub midstream: bool,
    /// How it ended: by FIN, by RST, or not before the capture did.
    pub end: ConnectionEnd,
    /// What both sides offered.
    pub offers: Offers,
    /// The server's SecurityMode requires signing.
    pub signing_required: bool,
    /// Messages that carried a signature.
    pub signed_messages: u64,
    /// Encrypted frames, both directions.
    pub encrypted_frames: u64,
    /// Compressed frames, both directions.
    pub compressed_frames: u64,
    /// SMB messages, both directions.
    pub messages: u64,
    /// Exchanges that count in the statistics.
    pub exchanges: u64,
    /// Most requests outstanding at once.
    pub max_outstanding: u32,
    /// Most credits that the server granted at once.
    pub max_credits_granted: u16,
    /// Time in which several requests were outstanding and the client waited for credits to send the next one; not known,
    /// and zero, where the beginning or any message was not captured, or is encrypted.
    pub credit_wait: Nanos,
    /// Most requests at once that the server had answered with STATUS_PENDING and not finally; those known for sure.
    pub max_asynchronous: u32,
    /// The interfaces that the server told the client of, where it asked.
    pub server_interfaces: Vec<ServerInterface>,
    /// It joined a session that another connection began: multichannel, or a reconnect.
    pub binds_session: bool,
    /// Smallest round trip between capture point and server.
    pub server_round_trip: Option<Nanos>,
    /// Smallest round trip between capture point and client.
    pub client_round_trip: Option<Nanos>,
    /// Times in which a side heard nothing of the other, at most [`Outage::MAX_LISTED`], in the order of time.
    pub outages: Vec<Outage>,
    /// Users seen on it, in order of appearance, at most a handful.
    pub users: Vec<Arc<str>>,
    /// Shares connected on it, in order of appearance, at most a handful.
    pub shares: Vec<Arc<str>>,
    /// Client to server.
    pub to_server: DirectionCounts,
    /// Server to client.
    pub to_client: DirectionCounts,
}

impl ConnectionSummary {
    /// Smallest round trip between its ends; where the capture point is beside the client, that to the server.
    pub fn round_trip(&self) -> Option<Nanos> {
        let beyond = self.client_round_trip.map_or(0, |client| client.0);
        self.server_round_trip.map(|server| Nanos(server.0.saturating_add(beyond)))
    }

    /// One of which only the first packet was seen.
    pub fn new(flow: FlowId, endpoints: Endpoints, first: Timestamp) -> ConnectionSummary {
        ConnectionSummary {
            flow,
            endpoints,
            first,
            last: first,
            dialect: None,
            midstream: false,
            end: ConnectionEnd::Open,
            offers: Offers::default(),
            signing_required: false,
            signed_messages: 0,
            encrypted_frames: 0,
            compressed_frames: 0,
            messages: 0,
            exchanges: 0,
            max_outstanding: 0,
            max_credits_granted: 0,
            credit_wait: Nanos(0),
            max_asynchronous: 0,
            server_interfaces: Vec::new(),
            binds_session: false,
            server_round_trip: None,
            client_round_trip: None,
            outages: Vec::new(),
            users: Vec::new(),
            shares: Vec::new(),
            to_server: DirectionCounts::default(),
            to_client: DirectionCounts::default(),
        }
    }
}

/// Connections that were captured at two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenTwice {
    /// On both sides of a router, with the same addresses.
    Routed(Endpoints),
    /// On both sides of an address translation: the same connection with other addresses.
    Translated(Endpoints, Endpoints),
}

impl SeenTwice {
    /// Connections that are named.
    pub const MAX_NAMED: usize = 8;
}

named! {
    /// A protocol that a server speaks in the place of SMB.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum ForeignProtocol {
        /// Its first bytes are `HTTP/`.
        Http = "HTTP",
        /// `SSH-`.
        Ssh = "SSH",
        /// A record of TLS with a handshake or an alert (RFC 8446 5.1).
        Tls = "TLS",
        /// `RFB `.
        Vnc = "VNC",
        /// `220 ` or `220-`.
        FtpOrSmtp = "FTP or SMTP",
        /// `* OK`.
        Imap = "IMAP",
    }
}

/// A server that answered requests of SMB in another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForeignReply {
    /// The server.
    pub server: SocketAddr,
    /// What it speaks.
    pub protocol: ForeignProtocol,
}

impl ForeignReply {
    /// Servers that are named.
    pub const MAX_LISTED: usize = 16;
}

/// What is settled about a connection that is still followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The flow.
    pub flow: FlowId,
    /// Its first packet.
    pub first: Timestamp,
    /// No exchange that is still to come began before; expected waits may have.
    pub until: Timestamp,
    /// Since when an expected wait is outstanding that holds its client up: a blocking lock, a read from a pipe.
    pub held_since: Option<Timestamp>,
    /// Since when a subscription to changes is outstanding.
    pub subscribed_since: Option<Timestamp>,
    /// Smallest round trip between capture point and client so far.
    pub client_round_trip: Option<Nanos>,
}

named! {
    /// How a connection ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ConnectionEnd {
        /// Still open when the capture ended.
        Open = "open",
        /// Closed by FIN.
        Closed = "closed",
        /// Closed by RST.
        Reset = "reset",
    }
}

//! Summary of one TCP connection that carried SMB, observations about its peers, and failed attempts to connect.

use crate::exchange::Endpoints;
use crate::groups::Dialect;
use crate::named;
use crate::offers::Offers;
use crate::time::{FlowId, Nanos, Stamp, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Counters of one direction of a flow.
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
    /// Data packets that only continue a message.
    pub continuation_packets: u64,
    /// Segments that only acknowledge.
    pub pure_acks: u64,
    /// Segments that repeat bytes sent before.
    pub retransmitted: u64,
    /// Segments lost upstream of the capture point: the capture holds only the retransmission that filled the hole.
    pub lost_before_capture: u64,
    /// Retransmitted segments that the receiver did not need: already acknowledged when sent again, or reported by a
    /// D-SACK (RFC 2883).
    pub needless: u64,
    /// Time during which losses held up the stream: from the first copy of a segment, or from the hole it left, to the
    /// retransmission. Overlapping delays count once; needless retransmissions do not count.
    pub resend_delay_ns: Nanos,
    /// Number of times that the sender held data back until a delayed acknowledgment arrived (Nagle's algorithm, RFC
    /// 896, with RFC 1122 4.2.3.2): a segment, only its acknowledgment 40 or 200 ms later, and the next segment at
    /// once. Not counted if the round-trip time is 25 ms or longer.
    pub ack_stalls: u64,
    /// Total time of these stalls, from the preceding segment to the following one.
    pub ack_stall_ns: Nanos,
    /// Bytes acknowledged but never captured.
    pub dropped_bytes: u64,
    /// Minimum number of packets that the capture dropped.
    pub dropped_packets: u64,
    /// Time during which the receiver's window was closed and the sender waited for it.
    pub window_closed_ns: Nanos,
    /// Time during which the sender had filled the receiver's window and waited for an acknowledgment. Unknown, and
    /// therefore zero, without both SYNs or if the round-trip time is shorter than 1 ms.
    pub window_limited_ns: Nanos,
    /// Largest window that the sender filled, in bytes.
    pub filled_window: Option<u32>,
}

impl DirectionCounts {
    /// Returns the counts after `before`, an earlier state of these counters. `filled_window` covers the whole time.
    pub fn since(&self, before: &DirectionCounts) -> DirectionCounts {
        let time = |now: Nanos, before: Nanos| Nanos(now.0.saturating_sub(before.0).max(0));
        DirectionCounts {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
            message_packets: self.message_packets.saturating_sub(before.message_packets),
            continuation_packets: self.continuation_packets.saturating_sub(before.continuation_packets),
            pure_acks: self.pure_acks.saturating_sub(before.pure_acks),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            lost_before_capture: self.lost_before_capture.saturating_sub(before.lost_before_capture),
            needless: self.needless.saturating_sub(before.needless),
            resend_delay_ns: time(self.resend_delay_ns, before.resend_delay_ns),
            ack_stalls: self.ack_stalls.saturating_sub(before.ack_stalls),
            ack_stall_ns: time(self.ack_stall_ns, before.ack_stall_ns),
            dropped_bytes: self.dropped_bytes.saturating_sub(before.dropped_bytes),
            dropped_packets: self.dropped_packets.saturating_sub(before.dropped_packets),
            window_closed_ns: time(self.window_closed_ns, before.window_closed_ns),
            window_limited_ns: time(self.window_limited_ns, before.window_limited_ns),
            filled_window: self.filled_window,
        }
    }
}

/// Network interface that a server advertises (MS-SMB2 2.2.32.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInterface {
    /// Interface index, shared by all addresses of the interface.
    pub index: u32,
    /// Speed in bits per second.
    pub link_speed: u64,
    pub address: IpAddr,
}

impl ServerInterface {
    /// Server interfaces kept per connection.
    pub const MAX_SERVER_INTERFACES: usize = 16;
}

/// Period of at least one second in which one side retransmitted twice or more and the other side sent nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// First copy of the data, or the last packet from the other side if that came later.
    pub from: Timestamp,
    /// First packet that got through from the other side, or else the last packet of the connection.
    pub to: Timestamp,
    /// Retransmissions of the oldest unacknowledged data.
    pub retries: u32,
    pub recovered: bool,
}

impl Outage {
    /// Outages listed per connection: the longest.
    pub const MAX_LISTED: usize = 8;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSummary {
    pub flow: FlowId,
    pub endpoints: Endpoints,
    pub first: Timestamp,
    pub last: Timestamp,
    pub dialect: Option<Dialect>,
    /// True if the capture began after the connection.
    pub midstream: bool,
    pub end: ConnectionEnd,
    pub offers: Offers,
    pub signing_required: bool,
    pub signed_messages: u64,
    pub encrypted_frames: u64,
    /// Frames in an SMB2 TRANSFORM_HEADER that a key of the user decrypted.
    pub decrypted_frames: u64,
    pub compressed_frames: u64,
    pub messages: u64,
    /// Number of exchanges that count in the statistics.
    pub exchanges: u64,
    pub max_outstanding: u32,
    /// Maximum number of credits granted in one response.
    pub max_credits_granted: u16,
    /// Time during which several requests were outstanding and the client waited for credits. Unknown, and therefore
    /// zero, if the beginning or a message was not captured, or messages are encrypted.
    pub credit_wait: Nanos,
    /// Maximum number of requests that had an interim STATUS_PENDING but no final response. Counts only requests known
    /// for certain.
    pub max_asynchronous: u32,
    pub server_interfaces: Vec<ServerInterface>,
    /// True if the connection joined an existing session: multichannel, or a reconnect.
    pub binds_session: bool,
    /// Minimum round-trip time between capture point and server.
    pub server_round_trip: Option<Nanos>,
    /// Minimum round-trip time between capture point and client.
    pub client_round_trip: Option<Nanos>,
    /// At most [`Outage::MAX_LISTED`], in chronological order.
    pub outages: Vec<Outage>,
    /// First few users and shares, in order of appearance.
    pub users: Vec<Arc<str>>,
    pub shares: Vec<Arc<str>>,
    /// Headers around its packets other than Ethernet and IP, outermost first: `VXLAN on UDP port 4789`.
    pub encapsulation: Option<Arc<str>>,
    /// Proxy that passes the connection on.
    pub proxy: Option<ConnectionProxy>,
    pub to_server: DirectionCounts,
    pub to_client: DirectionCounts,
    /// Initial sequence numbers towards the server and the client, where the SYN was captured.
    pub initial_sequences: [Option<u32>; 2],
    /// Times of retransmitted data segments towards the server and the client, the first ones in the capture.
    pub resent_at: [Vec<Timestamp>; 2],
}

impl ConnectionSummary {
    /// Returns the minimum round trip between client and server. Assumes a capture at the client if it has no sample.
    pub fn round_trip(&self) -> Option<Nanos> {
        let beyond = self.client_round_trip.map_or(0, |client| client.0);
        self.server_round_trip.map(|server| Nanos(server.0.saturating_add(beyond)))
    }

    /// Returns the part of the connection after `before`, an earlier summary of it. Counters cover that part; round trips,
    /// maxima, names and the results of negotiation cover the whole connection.
    pub fn since(self, before: &ConnectionSummary) -> ConnectionSummary {
        let after = |times: Vec<Timestamp>| times.into_iter().filter(|time| *time > before.last).collect();
        let [to_server, to_client] = self.resent_at;
        ConnectionSummary {
            first: before.last,
            midstream: true,
            signed_messages: self.signed_messages.saturating_sub(before.signed_messages),
            encrypted_frames: self.encrypted_frames.saturating_sub(before.encrypted_frames),
            decrypted_frames: self.decrypted_frames.saturating_sub(before.decrypted_frames),
            compressed_frames: self.compressed_frames.saturating_sub(before.compressed_frames),
            messages: self.messages.saturating_sub(before.messages),
            exchanges: self.exchanges.saturating_sub(before.exchanges),
            credit_wait: Nanos(self.credit_wait.0.saturating_sub(before.credit_wait.0).max(0)),
            outages: self.outages.into_iter().filter(|outage| outage.to > before.last).collect(),
            to_server: self.to_server.since(&before.to_server),
            to_client: self.to_client.since(&before.to_client),
            resent_at: [after(to_server), after(to_client)],
            ..self
        }
    }

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
            decrypted_frames: 0,
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
            encapsulation: None,
            proxy: None,
            to_server: DirectionCounts::default(),
            to_client: DirectionCounts::default(),
            initial_sequences: [None; 2],
            resent_at: [Vec::new(), Vec::new()],
        }
    }
}

/// Connection that was captured at two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenTwice {
    /// On both sides of a router, with the same addresses.
    Routed(Endpoints),
    /// On both sides of an address translator, with different addresses.
    Translated(Endpoints, Endpoints),
}

impl SeenTwice {
    /// Connections captured twice that a warning names.
    pub const MAX_NAMED: usize = 8;
}

named! {
    /// Protocol in which a client asks a proxy for a connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum ProxyProtocol {
        HttpConnect = "HTTP CONNECT",
        Socks4 = "SOCKS 4",
        Socks5 = "SOCKS 5",
    }
}

/// Proxy between client and server: a request for a connection precedes SMB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionProxy {
    pub protocol: ProxyProtocol,
    /// Host and port that the client asked for.
    pub target: Option<Arc<str>>,
}

impl fmt::Display for ConnectionProxy {
    /// `HTTP CONNECT to files:445`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.protocol.name())?;
        self.target.as_ref().map_or(Ok(()), |target| write!(formatter, " to {target}"))
    }
}

impl ConnectionProxy {
    /// Bytes of the name of a target; the rest is cut off.
    pub const MAX_TARGET: usize = 255;
}

named! {
    /// Protocol that a connection speaks instead of SMB, recognised by its first bytes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum ForeignProtocol {
        Http = "HTTP",
        Ssh = "SSH",
        /// A TLS handshake or alert record (RFC 8446 5.1).
        Tls = "TLS",
        Vnc = "VNC",
        /// `220 ` or `220-`.
        FtpOrSmtp = "FTP or SMTP",
        Imap = "IMAP",
        WebDav = "WebDAV",
        Nfs = "NFS",
        OncRpc = "ONC RPC",
        Iscsi = "iSCSI",
        Afp = "AFP",
        NvmeTcp = "NVMe/TCP",
        /// RDMA over TCP, which may carry SMB Direct.
        Iwarp = "iWARP",
        DceRpc = "DCE/RPC",
        Socks = "SOCKS",
    }
}

/// TCP connections without SMB to one port that speak another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignTraffic {
    pub protocol: ForeignProtocol,
    pub port: u16,
    pub connections: u64,
    pub packets: u64,
}

impl ForeignTraffic {
    /// Protocols and ports that are counted; those with larger numbers are left out.
    pub const MAX_LISTED: usize = 256;
}

/// Server that responded to SMB requests in another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForeignReply {
    pub server: SocketAddr,
    pub protocol: ForeignProtocol,
}

impl ForeignReply {
    /// Servers of other protocols that are listed.
    pub const MAX_LISTED: usize = 16;
}

/// Progress of a connection that is still being followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub flow: FlowId,
    pub first: Timestamp,
    /// Lower bound for the start of exchanges still to be reported. Expected waits may have started earlier.
    pub until: Timestamp,
    /// Start of an outstanding expected wait that blocks the client: a blocking lock or a pipe read.
    pub held_since: Option<Timestamp>,
    /// Start of an outstanding change notification request.
    pub subscribed_since: Option<Timestamp>,
    /// Minimum round-trip time between capture point and client so far.
    pub client_round_trip: Option<Nanos>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ConnectionEnd {
        Open = "open",
        Closed = "closed",
        Reset = "reset",
    }
}

/// Failed attempts of a client to connect to a server: TCP connections that never carried SMB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectAttempt {
    pub client: IpAddr,
    pub server: SocketAddr,
    /// Number of connection attempts: SYNs with distinct sequence numbers.
    pub attempts: u64,
    /// SYNs, including retransmissions.
    pub syns: u64,
    /// Attempts that the server, or a firewall in between, answered with RST.
    pub refused: u64,
    pub unanswered: u64,
    /// Connections accepted by the server and closed or reset by either side before any SMB message.
    pub closed_without_data: u64,
    pub first: Stamp,
    pub last: Timestamp,
    /// Longest time from the first SYN of an attempt to its last packet.
    pub longest_wait: Nanos,
}

impl ConnectAttempt {
    /// Client-server pairs listed with failed connection attempts.
    pub const MAX_LISTED: usize = 64;

    pub fn merge(&mut self, other: &ConnectAttempt) {
        self.attempts += other.attempts;
        self.syns += other.syns;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
        self.closed_without_data += other.closed_without_data;
        if (other.first.time, other.first.packet) < (self.first.time, self.first.packet) {
            self.first = other.first;
        }
        self.last = self.last.max(other.last);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectAttempts {
    /// At most [`ConnectAttempt::MAX_LISTED`], most attempts first.
    pub listed: Vec<ConnectAttempt>,
    pub left_out: u64,
}

impl ConnectAttempts {
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.left_out == 0
    }
}

//! What passes from stage to stage: a packet of a capture, and the TCP segment in it. Both borrow the capture.

use serde::{Deserialize, Serialize, Serializer};
use smbscope_model::Stamp;
use std::net::SocketAddr;

/// One record of a capture.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// File, number and time.
    pub stamp: Stamp,
    /// Link type as in the registry of tcpdump.org (LINKTYPE_*): 1 is Ethernet.
    pub link_type: u32,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Length on the wire; more than `data` when the snap length cut the packet.
    pub wire_length: u32,
}

/// TCP header flags (RFC 9293 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment field counts.
    pub const ACK: u8 = 0x10;

    /// No more data from the sender.
    pub fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }

    /// Synchronise sequence numbers.
    pub fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    /// Reset the connection.
    pub fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }

    /// The acknowledgment field counts.
    pub fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }
}

/// What a SYN says about the scale of its sender's windows (RFC 7323 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WindowScale {
    /// Not a SYN, or the snap length cut its options.
    #[default]
    Unknown,
    /// Its sender does not scale windows; then neither side does.
    Absent,
    /// Window fields are to be shifted by so many bits, if both sides offer it.
    Shift(u8),
}

/// A TCP segment, from one packet or from several IP fragments.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TcpSegment<'a> {
    /// Which packet of all captures completed it, from 1, in the order in which they are read.
    pub ordinal: u64,
    /// The packet that began it; differs from `stamp` only when it was put together from IP fragments.
    pub first: Stamp,
    /// The packet that completed it.
    pub stamp: Stamp,
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// Sequence number of the first payload byte (of the SYN where there is one).
    pub sequence: u32,
    /// Acknowledgment number; meaningful when the ACK flag is set.
    pub acknowledgment: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Window field, not scaled.
    pub window: u16,
    /// The window scale option of a SYN.
    pub window_scale: WindowScale,
    /// TSval of the timestamps option (RFC 7323).
    pub timestamp_value: Option<u32>,
    /// A block of the SACK option (RFC 2018) lies behind the acknowledgment: the sender misses the bytes before it.
    pub names_later_bytes: bool,
    /// Sequence numbers of the D-SACK block (RFC 2883), end exclusive: bytes that the sender of this segment got twice.
    pub duplicate_sack: Option<(u32, u32)>,
    /// Identification of the IPv4 header; absent for IPv6.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit, of the IP header: less by one behind every router.
    pub hops_left: u8,
    /// Captured payload bytes.
    #[serde(borrow, serialize_with = "as_bytes")]
    pub payload: &'a [u8],
    /// Payload length on the wire; more than `payload` when the snap length cut the packet.
    pub payload_length: u32,
}

/// In one go, and not byte by byte.
fn as_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

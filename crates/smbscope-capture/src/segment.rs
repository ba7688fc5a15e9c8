//! The types passed between stages: a packet of a capture and the TCP segment it carries. Both borrow the capture.

use serde::{Deserialize, Serialize, Serializer};
use smbscope_model::Stamp;
use std::net::SocketAddr;

#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub stamp: Stamp,
    /// Link type from the tcpdump.org registry (LINKTYPE_*): 1 is Ethernet.
    pub link_type: u32,
    pub data: &'a [u8],
    pub wire_length: u32,
    /// Process that the file names for the packet, outside of its bytes.
    pub process: Option<&'a CapturedProcess>,
}

/// Number of an [`Origin`](crate::decode::Origin); zero if nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct OriginId(pub u16);

/// Process that a capture file names for a packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CapturedProcess {
    pub id: Option<u32>,
    /// Empty if unknown.
    pub name: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;

    pub fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }

    pub fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    pub fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }

    pub fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WindowScale {
    /// Not a SYN, or the snap length cut off its options.
    #[default]
    Unknown,
    /// The sender does not scale its windows, so neither side does.
    Absent,
    /// Left shift for window fields; applies only if both sides offer the option.
    Shift(u8),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TcpSegment<'a> {
    /// Number, from 1, of the packet that completed the segment, counted over all captures in reading order.
    pub ordinal: u64,
    /// Packet that started the segment; differs from `stamp` only after IP reassembly.
    pub first: Stamp,
    pub stamp: Stamp,
    /// Headers and process around it, from the table of the decoder.
    pub origin: OriginId,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Sequence number of the SYN if present, otherwise of the first payload byte.
    pub sequence: u32,
    /// Acknowledgment number; valid only if the ACK flag is set.
    pub acknowledgment: u32,
    pub flags: TcpFlags,
    pub window: u16,
    pub window_scale: WindowScale,
    pub timestamp_value: Option<u32>,
    /// The segment carries a SACK block (RFC 2018) beyond the acknowledgment: its sender is missing bytes in between.
    pub names_later_bytes: bool,
    /// Range of the D-SACK block (RFC 2883), end exclusive: bytes that this segment's sender received twice.
    pub duplicate_sack: Option<(u32, u32)>,
    pub ip_id: Option<u16>,
    /// TTL or hop limit from the IP header; each router decrements it.
    pub hops_left: u8,
    #[serde(borrow, serialize_with = "as_bytes")]
    pub payload: &'a [u8],
    /// Payload length on the wire; greater than `payload.len()` if the snap length truncated the packet.
    pub payload_length: u32,
}

/// Serializes the payload as one byte string instead of a sequence of integers.
fn as_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

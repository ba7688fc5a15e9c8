//! Names for things that are counted: captures, packets, flows and their directions.

use crate::time::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Index of a capture file within one analysis, in the order given by the report's `captures`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaptureId(pub u16);

/// A packet, named as Wireshark names it: its number in its own file, from 1.
///
/// There are several in every exchange, so both are in one word that is never zero, and an absent one takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "PacketParts", into = "PacketParts")]
pub struct PacketRef(NonZeroU64);

/// Bits of a number and one: a file with more packets has thousands of terabytes of headers.
const NUMBER_BITS: u32 = 48;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

impl PacketRef {
    /// The packet of this number; those from 2⁴⁸ − 2 on are one.
    #[inline]
    pub fn new(capture: CaptureId, number: u64) -> PacketRef {
        let number = NonZeroU64::MIN.saturating_add(number.min(NUMBER_MASK - 1));
        PacketRef(number | u64::from(capture.0) << NUMBER_BITS)
    }

    /// The file that holds the packet.
    #[inline]
    pub fn capture(self) -> CaptureId {
        CaptureId((self.0.get() >> NUMBER_BITS) as u16)
    }

    /// The packet's number in that file, from 1.
    #[inline]
    pub fn number(self) -> u64 {
        (self.0.get() & NUMBER_MASK) - 1
    }
}

impl Default for PacketRef {
    fn default() -> PacketRef {
        PacketRef::new(CaptureId(0), 0)
    }
}

/// How a packet is serialized.
#[derive(Serialize, Deserialize)]
struct PacketParts {
    capture: CaptureId,
    number: u64,
}

impl From<PacketParts> for PacketRef {
    fn from(parts: PacketParts) -> PacketRef {
        PacketRef::new(parts.capture, parts.number)
    }
}

impl From<PacketRef> for PacketParts {
    fn from(packet: PacketRef) -> PacketParts {
        PacketParts { capture: packet.capture(), number: packet.number() }
    }
}

/// When and where something was seen: a packet and its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// The capture's timestamp of the packet.
    pub time: Timestamp,
    /// The packet.
    pub packet: PacketRef,
}

/// Two packets between which the clock of the capture stepped, or the capture was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStep {
    /// The last packet before.
    pub before: Stamp,
    /// The first one behind.
    pub after: Stamp,
}

impl ClockStep {
    /// Steps that are listed.
    pub const MAX_CLOCK_STEPS: usize = 16;

    /// By how much the clock went forward, or back where it is negative.
    pub fn by(&self) -> Nanos {
        self.after.time - self.before.time
    }

    /// Whether something that began with one packet and ended with the other lies across the step.
    pub fn lies_between(&self, start: Stamp, end: Stamp) -> bool {
        let capture = self.after.packet.capture();
        let is_here = start.packet.capture() == capture && end.packet.capture() == capture;
        is_here
            && start.packet.number() <= self.before.packet.number()
            && end.packet.number() >= self.after.packet.number()
    }
}

/// One TCP connection, by the packet that opened it: its number among those of all captures, in time order, from 1. With
/// one capture that is the packet's number in the file, unless that had to be put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u64);

/// One of the two directions of a flow: `Forward` is that of the flow's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowDirection {
    /// From the sender of the flow's first packet.
    Forward,
    /// Towards the sender of the flow's first packet.
    Backward,
}

impl FlowDirection {
    /// Both directions, for tables with one entry each.
    pub const BOTH: [FlowDirection; 2] = [FlowDirection::Forward, FlowDirection::Backward];

    /// The other direction.
    pub fn reverse(self) -> FlowDirection {
        match self {
            FlowDirection::Forward => FlowDirection::Backward,
            FlowDirection::Backward => FlowDirection::Forward,
        }
    }

    /// Index into a table with one entry a direction.
    pub fn index(self) -> usize {
        match self {
            FlowDirection::Forward => 0,
            FlowDirection::Backward => 1,
        }
    }
}

/// Which side of the SMB connection sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that negotiates.
    Client,
    /// The side that answers.
    Server,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_captures_and_numbers_and_come_in_their_order() {
        let numbers = [0, 1, u64::from(u32::MAX) + 7, NUMBER_MASK - 1];
        let packets: Vec<PacketRef> =
            [0, 1, u16::MAX].iter().flat_map(|at| numbers.map(|n| PacketRef::new(CaptureId(*at), n))).collect();
        assert!(packets.is_sorted_by(|one, other| one < other));
        let parts: Vec<(u16, u64)> = packets.iter().map(|packet| (packet.capture().0, packet.number())).collect();
        assert!([0, 1, u16::MAX].iter().flat_map(|at| numbers.map(|n| (*at, n))).eq(parts));
        assert_eq!(PacketRef::new(CaptureId(2), u64::MAX), PacketRef::new(CaptureId(2), NUMBER_MASK - 1));
        assert_eq!((size_of::<Option<PacketRef>>(), size_of::<Option<Stamp>>()), (8, 16));
    }

    #[test]
    fn a_packet_is_serialized_as_its_capture_and_its_number() {
        let packet = PacketRef::new(CaptureId(3), 17);
        let bytes = postcard::to_stdvec(&packet).expect("it fits");
        assert_eq!((bytes.as_slice(), postcard::from_bytes(&bytes)), ([3, 17].as_slice(), Ok(packet)));
    }
}

//! Names for things that are counted: captures, packets, flows and their directions.

use crate::time::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};

/// Index of a capture file within one analysis, in the order given by the report's `captures`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaptureId(pub u16);

/// A packet, named as Wireshark names it: its number in its own file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct PacketRef {
    /// The file that holds the packet.
    pub capture: CaptureId,
    /// The packet's number in that file, from 1.
    pub number: u64,
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
        let PacketRef { capture, number } = self.after.packet;
        let is_here = start.packet.capture == capture && end.packet.capture == capture;
        is_here && start.packet.number <= self.before.packet.number && end.packet.number >= number
    }
}

/// One TCP connection, by the packet that opened it: its number among those of all captures, in time order, from 1. With
/// one capture that is the packet's number in the file, unless that had to be put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u64);

/// One of the two directions of a flow: `Forward` is that of the flow's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the sender of the flow's first packet.
    Forward,
    /// Towards the sender of the flow's first packet.
    Backward,
}

impl Direction {
    /// Both directions, for tables with one entry each.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// The other direction.
    pub fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }

    /// Index into a table with one entry a direction.
    pub fn index(self) -> usize {
        match self {
            Direction::Forward => 0,
            Direction::Backward => 1,
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

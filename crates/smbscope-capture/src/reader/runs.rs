//! Where the times of a file ascend, and where they go back.

use super::format::CaptureParser;

/// A stretch of a file whose timestamps ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortedRun {
    /// Offset of the run's first record.
    pub(super) position: u64,
    /// Number of its first packet, from 1.
    pub(super) number: u64,
    /// Timestamp of its first packet.
    pub(super) time: i64,
    /// The parser's state in front of it.
    pub(super) format: CaptureParser,
    /// What its timestamps lack since the clock was set back.
    pub(super) shift: i64,
}

/// A place where time goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descent {
    /// Index of the run that begins there.
    pub(super) run: usize,
    /// Timestamp of the packet in front of it.
    pub(super) time_before: i64,
    /// Offsets of the packets in front of it, in their order.
    pub(super) before: Vec<u64>,
}

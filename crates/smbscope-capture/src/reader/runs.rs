//! Ascending runs of timestamps in a file, and the places between them.

use super::format::CaptureParser;

/// Part of a file with ascending timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortedRun {
    pub(super) position: u64,
    /// Number of its first packet, from 1.
    pub(super) number: u64,
    pub(super) time: i64,
    pub(super) format: CaptureParser,
    /// Added to its timestamps, to compensate for clock steps.
    pub(super) shift: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descent {
    /// Index of the run that starts there.
    pub(super) run: usize,
    pub(super) time_before: i64,
    /// Offsets of the packets before it, in file order.
    pub(super) before: Vec<u64>,
}

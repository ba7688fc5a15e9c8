//! Frames of a stream while they are read and when they are complete, and the ranges that may hide more of them.

use crate::content::FrameContent;
use crate::resync::ResyncConfidence;
use smbscope_capture::OriginId;
use smbscope_capture::tcp::StreamChunk;
use smbscope_model::{Half, PacketRef, Stamp, Standstill, Timestamp};
use smbscope_wire::nbss::{FrameHeader, FrameType, HEADER_LENGTH};
use std::collections::VecDeque;

#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) frame_type: FrameType,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) first: Stamp,
    /// Origin of the first packet.
    pub(crate) origin: OriginId,
    /// Packet with the last byte, or the later packet that filled a gap. Absent if possibly not captured.
    pub(crate) last: Option<Stamp>,
    pub(crate) resent: Option<Stamp>,
    pub(crate) pause: Option<FramePause>,
    pub(crate) packets: u32,
    /// Lowest acknowledgment of the frame's packets: data received before the first of them was sent.
    pub(crate) acknowledged_first: Option<u64>,
    /// Highest acknowledgment of the frame's packets, except for possible late copies.
    pub(crate) acknowledged_last: Option<u64>,
    pub(crate) content: FrameContent,
}

/// Pause of at least [`STANDSTILL_LEAST`](smbscope_model::STANDSTILL_LEAST), without capture loss or retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FramePause {
    pub(crate) time: Standstill,
    pub(crate) receiver_full: bool,
}

impl Frame {
    pub(crate) fn length(&self) -> u64 {
        (self.end - self.start).saturating_sub(HEADER_LENGTH as u64)
    }

    #[inline]
    pub(crate) fn half(&self, bytes: u64) -> Half {
        Half { first: Some(self.first), last: self.last, packets: self.packets, bytes }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin {
    pub(crate) position: u64,
    pub(crate) stamp: Stamp,
    pub(crate) origin: OriginId,
    pub(crate) acknowledged: Option<u64>,
    pub(crate) timely_acknowledgment: Option<u64>,
    pub(crate) packet: PacketRef,
    pub(crate) packets: u32,
    pub(crate) resent: Option<Stamp>,
}

impl Begin {
    pub(crate) fn new(chunk: &StreamChunk<'_>, position: u64) -> Begin {
        Begin {
            position,
            stamp: chunk.first,
            origin: chunk.origin,
            acknowledged: chunk.acknowledged,
            timely_acknowledgment: timely_acknowledgment(chunk),
            packet: chunk.stamp.packet,
            packets: 1,
            resent: None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct OpenFrame {
    pub(crate) header: FrameHeader,
    pub(crate) begin: Begin,
    pub(crate) end: u64,
    pub(crate) last: Stamp,
    /// The latest packet that was a retransmission of missing data: the frame was not complete before.
    pub(crate) resent: Option<Stamp>,
    pub(crate) interrupted: bool,
    /// Upper limit for the time until which the receiver may have lacked bytes that the capture does not hold.
    pub(crate) missed_until: Option<Timestamp>,
    pub(crate) pause: Option<FramePause>,
    pub(crate) packets: u32,
    pub(crate) last_packet: PacketRef,
    pub(crate) acknowledged_last: Option<u64>,
    pub(crate) content: Option<FrameContent>,
    pub(crate) wanted: usize,
    pub(crate) trust: ResyncConfidence,
}

impl OpenFrame {
    #[cold]
    pub(crate) fn note_pause(&mut self, chunk: &StreamChunk<'_>) {
        let time = Standstill { from: self.last.time, length: chunk.stamp.time - self.last.time };
        let longest = self.pause.is_none_or(|known| known.time.length < time.length);
        if longest && !self.interrupted && !chunk.sent_again && !chunk.others_missing {
            self.pause = Some(FramePause { time, receiver_full: chunk.receiver_full });
        }
    }
}

/// Returns the latest retransmission of missing data. These fill gaps in stream order, not in time order.
pub(crate) fn latest_resent(known: Option<Stamp>, chunk: &StreamChunk<'_>) -> Option<Stamp> {
    if !chunk.sent_again {
        return known;
    }
    known.filter(|known| known.time > chunk.stamp.time).or(Some(chunk.stamp))
}

/// Returns the acknowledgment of a chunk, unless it may be a late copy: then it belongs to the time of the copy.
pub(crate) fn timely_acknowledgment(chunk: &StreamChunk<'_>) -> Option<u64> {
    chunk.acknowledged.filter(|_| !chunk.known_received && !chunk.sent_again)
}

pub(crate) fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other)).or(one).or(other)
}

/// Gaps of a stream; older ones are merged. That only makes conclusions more careful.
const MAX_RANGES: usize = 64;

/// Ranges of a stream that may hide messages: gaps over frame boundaries, ranges without framing, truncated headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Losses {
    ranges: VecDeque<(u64, u64)>,
    since: Option<u64>,
    reached: u64,
}

impl Losses {
    #[inline]
    pub(crate) fn reach(&mut self, position: u64) {
        self.reached = position;
    }

    pub(crate) fn begin(&mut self, position: u64) {
        self.since.get_or_insert(position);
    }

    pub(crate) fn end(&mut self, position: u64) {
        let Some(start) = self.since.take().filter(|start| *start < position) else { return };
        if self.ranges.len() == MAX_RANGES {
            let oldest = self.ranges.pop_front();
            if let (Some(oldest), Some(next)) = (oldest, self.ranges.front_mut()) {
                next.0 = oldest.0;
            }
        }
        self.ranges.push_back((start, position));
    }

    /// Returns the number of bytes between two positions that may hide messages. Bytes that the other side acknowledged
    /// but that were not read here yet count: if both streams have a gap, one of them is processed first. `to` may be
    /// `u64::MAX` for the end of the stream, which acknowledges nothing.
    pub(crate) fn bytes_between(&self, from: u64, to: u64) -> u64 {
        self.hidden_between(from, to, 0).fold(0, u64::saturating_add)
    }

    pub(crate) fn hidden_between(&self, from: u64, to: u64, shortest: u64) -> impl Iterator<Item = u64> {
        let last = match self.since {
            Some(start) => (start, u64::MAX),
            None if to == u64::MAX => (to, to),
            None => (self.reached, to),
        };
        let clipped = move |(start, end): (u64, u64)| end.min(to).saturating_sub(start.max(from));
        let holds_one = move |(start, end): &(u64, u64)| end - start >= shortest;
        self.ranges.iter().copied().filter(holds_one).chain([last]).map(clipped).filter(|bytes| *bytes > 0)
    }

    pub(crate) fn reached(&self) -> u64 {
        self.reached
    }

    /// Returns false if messages may be missing anywhere but before the first captured byte.
    pub(crate) fn only_at_the_beginning(&self) -> bool {
        let starts = self.ranges.iter().map(|(start, _)| *start).chain(self.since);
        starts.max().unwrap_or(0) == 0
    }

    pub(crate) fn any_after(&self, position: u64) -> bool {
        self.since.is_some() || self.ranges.back().is_some_and(|(_, end)| *end > position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_after_the_first_byte_is_not_only_at_the_beginning() {
        let mut losses = Losses::default();
        assert!(losses.only_at_the_beginning());
        losses.begin(0);
        assert!(losses.only_at_the_beginning());
        losses.end(50);
        losses.reach(100);
        assert!(losses.only_at_the_beginning());
        losses.begin(70);
        assert!(!losses.only_at_the_beginning());
        losses.end(80);
        assert!(!losses.only_at_the_beginning());
    }

    #[test]
    fn only_the_overlap_counts() {
        let mut losses = Losses::default();
        losses.reach(1000);
        losses.begin(100);
        losses.end(200);
        assert_eq!(losses.bytes_between(0, 100), 0);
        assert_eq!(losses.bytes_between(150, 1000), 50);
        assert!(losses.any_after(199) && !losses.any_after(200));
        losses.begin(300);
        assert_eq!(losses.bytes_between(290, 310), 10);
    }

    #[test]
    fn what_is_not_read_yet_may_hide_messages() {
        let mut losses = Losses::default();
        losses.reach(300);
        assert_eq!(losses.bytes_between(100, 300), 0);
        assert_eq!((losses.bytes_between(100, 320), losses.bytes_between(310, 320)), (20, 10));
        assert_eq!(losses.bytes_between(100, u64::MAX), 0, "nothing was said of how far it goes");
    }

    #[test]
    fn old_ranges_are_merged_towards_caution() {
        let mut losses = Losses::default();
        losses.reach(1000);
        for start in 0..100 {
            losses.begin(start * 10);
            losses.end(start * 10 + 1);
        }
        assert_eq!(losses.ranges.len(), MAX_RANGES);
        assert!(losses.bytes_between(5, 6) > 0, "a merged range covers what lay between");
        assert_eq!(losses.bytes_between(981, 990), 0);
    }
}

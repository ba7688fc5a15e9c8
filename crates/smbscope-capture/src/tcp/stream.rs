//! The sequence space of one direction: positions that never wrap, what was seen, what was acknowledged.

use super::round_trip::RoundTrip;
use super::{Gap, StreamCounts};
use crate::segment::TcpSegment;
use smbscope_model::{Nanos, Stamp};
use std::collections::VecDeque;

/// Positions start here, so that bytes from before the first seen one have a position too.
const ORIGIN: u64 = 1 << 40;
/// Packets remembered to recognise one that was captured twice.
const RECENT_PACKETS: usize = 16;
/// Data segments remembered to date the first copy of a retransmission.
const RECENT_SEGMENTS: usize = 32;
/// Gaps remembered to recognise a packet that turns up late.
const RECENT_GAPS: usize = 32;
/// Data segments waiting for an acknowledgment that are counted at most.
const MAX_UNACKNOWLEDGED: usize = 1024;
/// Two identical packets without an IP identification are one packet captured twice up to this distance.
const DUPLICATE_WINDOW: Nanos = Nanos(1_000_000);
/// The same with a matching IP identification, which does not repeat so soon.
const DUPLICATE_WINDOW_WITH_ID: Nanos = Nanos(1_000_000_000);

/// What makes a packet recognisable when it is captured twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    sequence: u32,
    acknowledgment: u32,
    payload_length: u32,
    flags: u8,
    window: u16,
    timestamp_value: Option<u32>,
    ip_id: Option<u16>,
}

impl Fingerprint {
    fn of(segment: &TcpSegment<'_>) -> Fingerprint {
        Fingerprint {
            sequence: segment.sequence,
            acknowledgment: segment.acknowledgment,
            payload_length: segment.payload_length,
            flags: segment.flags.0,
            window: segment.window,
            timestamp_value: segment.timestamp_value,
            ip_id: segment.ip_id,
        }
    }
}

/// One direction of a flow.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// A sequence number and its position, moved along with the stream.
    reference: Option<(u32, u64)>,
    /// Position of the next byte to hand on; unknown until the direction was seen.
    pub(super) next: Option<u64>,
    /// Initial sequence number, when a SYN was seen.
    pub(super) initial: Option<u32>,
    /// FIN seen.
    pub(super) finished: bool,
    /// Highest position that the other side acknowledged.
    pub(super) acknowledged: Option<u64>,
    pub(super) round_trip: RoundTrip,
    pub(super) counts: StreamCounts,
    largest_payload: u32,
    packets: VecDeque<(Fingerprint, Stamp)>,
    segments: VecDeque<(u64, u64, Stamp)>,
    unacknowledged: VecDeque<u64>,
    gaps: VecDeque<Gap>,
}

impl Stream {
    /// Position of a sequence number: the one nearest to what was seen last.
    pub(super) fn position_of(&mut self, sequence: u32) -> u64 {
        let (reference, position) = *self.reference.get_or_insert((sequence, ORIGIN));
        let distance = sequence.wrapping_sub(reference) as i32;
        position.wrapping_add_signed(i64::from(distance))
    }

    /// Moves on to `position`, so that sequence numbers around it can be told from wrapped ones.
    pub(super) fn advance_to(&mut self, position: u64) {
        self.next = Some(position);
        if let Some((reference, at)) = &mut self.reference {
            *reference = reference.wrapping_add(position.wrapping_sub(*at) as u32);
            *at = position;
        }
    }

    /// Whether this very packet was captured before; remembers it otherwise.
    pub(super) fn is_duplicate(&mut self, segment: &TcpSegment<'_>) -> bool {
        let fingerprint = Fingerprint::of(segment);
        let identified = segment.ip_id.is_some_and(|id| id != 0);
        let window = if identified { DUPLICATE_WINDOW_WITH_ID } else { DUPLICATE_WINDOW };
        let seen = self
            .packets
            .iter()
            .any(|(known, stamp)| *known == fingerprint && segment.stamp.time - stamp.time <= window);
        if !seen {
            remember(&mut self.packets, (fingerprint, segment.stamp), RECENT_PACKETS);
        }
        seen
    }

    /// Notes bytes handed on for the first time.
    pub(super) fn delivered(&mut self, position: u64, length: u64, payload_length: u32, stamp: Stamp) {
        self.advance_to(position + length);
        self.counts.bytes += length;
        self.counts.data_packets += 1;
        self.largest_payload = self.largest_payload.max(payload_length);
        remember(&mut self.segments, (position, position + length, stamp), RECENT_SEGMENTS);
        if self.acknowledged.is_none_or(|acknowledged| acknowledged < position + length) {
            remember(&mut self.unacknowledged, position + length, MAX_UNACKNOWLEDGED);
        }
        self.round_trip.sent(position + length, stamp.time);
    }

    /// The other side acknowledged everything before `position`.
    pub(super) fn acknowledge(&mut self, position: u64, stamp: Stamp) {
        if self.acknowledged.is_some_and(|acknowledged| acknowledged >= position) {
            return;
        }
        self.acknowledged = Some(position);
        while self.unacknowledged.front().is_some_and(|end| *end <= position) {
            self.unacknowledged.pop_front();
        }
        self.round_trip.acknowledged(position, stamp.time);
    }

    /// Data segments that nobody acknowledged; zero when the capture holds no acknowledgments at all.
    pub(super) fn unacknowledged_segments(&self) -> u64 {
        if self.acknowledged.is_some() { self.unacknowledged.len() as u64 } else { 0 }
    }

    /// When the first copy of the byte at `position` passed, where it is remembered.
    pub(super) fn first_copy(&self, position: u64) -> Option<Stamp> {
        self.segments.iter().rev().find(|(start, end, _)| (*start..*end).contains(&position)).map(|(_, _, stamp)| *stamp)
    }

    /// Notes bytes given up and moves past them.
    pub(super) fn skip(&mut self, gap: Gap) {
        self.advance_to(gap.end());
        remember(&mut self.gaps, gap, RECENT_GAPS);
        self.round_trip.retransmitted();
    }

    /// Whether all of `position..end` was given up before: a packet that turned up too late.
    pub(super) fn was_given_up(&self, position: u64, end: u64) -> bool {
        self.gaps.iter().any(|gap| gap.position <= position && end <= gap.end())
    }

    /// How many packets `length` missing bytes were, at least: none was larger than the largest seen.
    pub(super) fn packets_in(&self, length: u64) -> u64 {
        length.div_ceil(u64::from(self.largest_payload.max(1460)))
    }
}

/// Appends to a list that keeps the newest `limit` entries.
fn remember<T>(list: &mut VecDeque<T>, entry: T, limit: usize) {
    if list.len() == limit {
        list.pop_front();
    }
    list.push_back(entry);
}

//! Sequence space of one direction: positions that never wrap, bytes seen, bytes acknowledged.

use super::buffers::Ring;
use super::duplicates::{Copies, DUPLICATE_WINDOW_WITH_ID, Layers, Sighting};
use super::losses::{Resent, ResentSegment, Stalls};
use super::waits::{Delayed, ReceiveWindow, RoundTrip, Trips};
use super::{StreamCounts, StreamGap};
use crate::segment::TcpSegment;
use smbscope_model::{Nanos, Stamp, Timestamp};
use std::collections::VecDeque;

/// Initial position, far enough from zero for bytes before the first one seen.
const ORIGIN: u64 = 1 << 40;
/// Packets without data remembered to recognise duplicates.
const RECENT_PACKETS: usize = 8;
/// Segments remembered to recognise copies. They date the first copy of a retransmission.
const RECENT_SEGMENTS: usize = 64;
/// Gaps remembered to recognise late packets.
const RECENT_GAPS: usize = 32;
/// Unacknowledged segments tracked; the oldest are forgotten.
const MAX_UNACKNOWLEDGED: usize = 1024;
/// Longest interval between two captures of one packet, for packets without an IP identification.
const DUPLICATE_WINDOW: Nanos = Nanos(1_000_000);
/// For a SYN, which is retransmitted only after a second (RFC 6298; Linux and Windows comply).
const DUPLICATE_SYN_WINDOW: Nanos = Nanos(100_000_000);
/// Minimum and maximum size in bytes of a full segment on the network, and the usual size.
const LEAST_FULL_SEGMENT: u32 = 1_200;
const LARGEST_SEGMENT: u32 = 9_000;
const ORDINARY_SEGMENT: u32 = 1_460;
/// Round trips from this on can't be distinguished from a delayed acknowledgment.
const LONGEST_STALLED_TRIP: Nanos = Nanos(25_000_000);
/// Allowed distance between copies, relative to the distance between the copies of the SYN.
const COPY_LAG_FACTOR: i64 = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct TcpHalfStream {
    reference: Option<(u32, u64)>,
    /// Position of the next byte to deliver; `None` until the direction has been seen.
    pub(super) next: Option<u64>,
    /// Position of the first byte known; an overtaken SYN belongs right before it.
    pub(super) begin: Option<u64>,
    pub(super) initial: Option<u32>,
    pub(super) finished: bool,
    pub(super) fin: Option<u64>,
    pub(super) acknowledged: Option<u64>,
    pub(super) receiver_full: bool,
    pub(super) round_trip: RoundTrip,
    pub(super) stalls: Stalls,
    pub(super) window: ReceiveWindow,
    pub(super) counts: StreamCounts,
    pub(super) largest_payload: u32,
    packets: Ring<Sighting, RECENT_PACKETS>,
    segments: Ring<Sighting, RECENT_SEGMENTS>,
    seen_to: u64,
    copies: Option<Copies>,
    /// Maximum distance between copies of packets without an IP identification, learned from the SYN.
    copy_window: Option<Nanos>,
    layers: Option<Box<Layers>>,
    hops_left: u8,
    /// Highest and lowest TTL among copies of one packet, which was captured on both sides of a router.
    pub(super) both_sides: Option<(u8, u8)>,
    serial: u32,
    last_id: Option<u16>,
    /// Number of packets whose IP identification follows the previous packet's, and of all others.
    id_steps: u32,
    id_jumps: u32,
    pub(super) id_skipped: bool,
    unacknowledged: VecDeque<u64>,
    acknowledged_at: Timestamp,
    resent: Option<Box<Resent>>,
    gaps: Ring<StreamGap, RECENT_GAPS>,
}

impl TcpHalfStream {
    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.packets.footprint()
            + self.segments.footprint()
            + self.gaps.footprint()
            + self.stalls.footprint()
            + self.unacknowledged.capacity() * size_of::<u64>()
            + self.copies.as_ref().map_or(0, Copies::footprint)
            + self.layers.as_ref().map_or(0, |_| size_of::<Layers>())
            + self.resent.as_ref().map_or(0, |resent| resent.footprint())
    }

    /// Returns the position of a sequence number: the one nearest to the latest position.
    #[inline]
    pub(super) fn position_of(&mut self, sequence: u32) -> u64 {
        let (reference, position) = *self.reference.get_or_insert((sequence, ORIGIN));
        let distance = sequence.wrapping_sub(reference) as i32;
        position.wrapping_add_signed(i64::from(distance))
    }

    pub(super) fn holds(&self, position: u64) -> bool {
        self.begin.zip(self.next).is_some_and(|(begin, next)| (begin..next).contains(&position))
    }

    /// Moves on to `position`, and moves the reference along so that wrapped sequence numbers stay unambiguous.
    #[inline]
    pub(super) fn advance_to(&mut self, position: u64) {
        self.begin.get_or_insert(self.next.unwrap_or(position));
        self.next = Some(position);
        if let Some((reference, at)) = &mut self.reference {
            *reference = reference.wrapping_add(position.wrapping_sub(*at) as u32);
            *at = position;
        }
    }

    /// Returns true if the sink has received data or a gap: the start of the stream is then fixed.
    pub(super) fn has_delivered(&self) -> bool {
        self.counts.data_packets > 0 || self.begin.is_some_and(|begin| self.next != Some(begin))
    }

    pub(super) fn at_two_layers(&self) -> u64 {
        self.layers.as_ref().map_or(0, |layers| layers.packets.into())
    }

    /// Returns true if the packet was captured on the other side of a router. Near its sender, it has more hops left.
    #[inline]
    pub(super) fn is_elsewhere(&self, segment: &TcpSegment<'_>, near_sender: bool) -> bool {
        let Some((most, least)) = self.both_sides else { return false };
        let unwanted = if near_sender { least } else { most };
        segment.hops_left == unwanted
    }

    #[inline]
    pub(super) fn is_duplicate(&mut self, position: u64, segment: &TcpSegment<'_>) -> bool {
        let has_payload = segment.payload_length > 0;
        let end = position + u64::from(segment.payload_length);
        // Fast path: data that continues the stream is new, so no search is needed.
        if has_payload && end > self.seen_to && self.copies.is_none() {
            self.seen_to = end;
            self.segments.push(Sighting::new(position, self.serial, segment));
        } else if self.came_before(position, end, segment) {
            if segment.hops_left != self.hops_left {
                let (one, other) = (segment.hops_left, self.hops_left);
                self.both_sides = Some((one.max(other), one.min(other)));
            }
            return true;
        }
        self.hops_left = segment.hops_left;
        self.serial = self.serial.wrapping_add(1);
        if let Some(id) = segment.ip_id {
            match self.last_id.replace(id) {
                Some(last) if id == last.wrapping_add(1) => self.id_steps += 1,
                Some(_) => {
                    self.id_jumps += 1;
                    self.id_skipped = true;
                }
                None => {}
            }
        }
        false
    }

    #[inline(never)]
    fn came_before(&mut self, position: u64, end: u64, segment: &TcpSegment<'_>) -> bool {
        let sighting = Sighting::new(position, self.serial, segment);
        let window = match segment.ip_id {
            Some(id) if id != 0 => DUPLICATE_WINDOW_WITH_ID,
            _ if segment.flags.syn() => DUPLICATE_SYN_WINDOW,
            _ => self.copy_window.unwrap_or(DUPLICATE_WINDOW),
        };
        let has_payload = segment.payload_length > 0;
        let is_new_data = has_payload && end > self.seen_to;
        let is_known = |known: &Sighting| known.is_same_packet(&sighting, window);
        let recent = match has_payload {
            _ if is_new_data => None,
            true => self.segments.find(is_known),
            false => self.packets.find(is_known),
        };
        let distant = match &mut self.copies {
            Some(copies) if is_new_data => {
                copies.remember(sighting.fields(), sighting.time);
                false
            }
            Some(copies) => copies.is_copy(sighting.fields(), sighting.time, window),
            None => false,
        };
        if let Some(first) = recent {
            if segment.flags.syn() {
                let lag = (sighting.time - first.time).0 * COPY_LAG_FACTOR;
                self.copy_window = Some(Nanos(lag.clamp(DUPLICATE_WINDOW.0, DUPLICATE_SYN_WINDOW.0)));
            }
            self.copies.get_or_insert_with(Copies::new);
            return true;
        }
        if distant {
            return true;
        }
        if has_payload && !is_new_data && self.layers.get_or_insert_default().repeats(&sighting, &self.segments) {
            return true;
        }
        match has_payload {
            true => {
                if !is_new_data {
                    // A retransmission, or a copy of a forgotten packet. The next copy will be recognised.
                    self.copies.get_or_insert_with(Copies::new);
                }
                self.seen_to = self.seen_to.max(end);
                self.segments.push(sighting);
            }
            false => self.packets.push(sighting),
        }
        false
    }

    #[inline]
    pub(super) fn delivered(&mut self, position: u64, length: u64, payload_length: u32, stamp: Stamp) {
        self.advance_to(position + length);
        self.counts.bytes += length;
        self.counts.data_packets += 1;
        self.largest_payload = self.largest_payload.max(payload_length);
        if self.acknowledged.is_none_or(|acknowledged| acknowledged < position + length) {
            remember(&mut self.unacknowledged, position + length, MAX_UNACKNOWLEDGED);
        }
        self.round_trip.sent(position + length, stamp.time);
    }

    pub(super) fn went_on(&mut self, segment: &TcpSegment<'_>, trips: Trips) {
        let Some(delayed) = self.round_trip.take_delayed() else { return };
        let is_small = delayed.was_small || segment.payload_length < self.full_segment();
        if is_small && delayed.was_waited_for(segment, trips.sender) {
            self.counts.ack_stalls += 1;
            let waited = segment.stamp.time - delayed.since;
            self.counts.ack_stall = Nanos(self.counts.ack_stall.0.saturating_add(waited.0));
        }
    }

    /// Returns the size of a full segment on the network; anything larger is an offload artefact.
    fn full_segment(&self) -> u32 {
        match self.largest_payload {
            seen @ LEAST_FULL_SEGMENT..=LARGEST_SEGMENT => seen,
            _ => ORDINARY_SEGMENT,
        }
    }

    #[cold]
    fn acknowledged_late(&mut self, position: u64, segment: &TcpSegment<'_>) {
        // No system delays the acknowledgment of a SYN.
        if self.counts.data_packets == 0 || segment.flags.fin() {
            return;
        }
        let Some(last) = self.segments.newest().filter(|last| last.end() <= position) else { return };
        let (since, was_small) = (last.time, last.payload_length < self.full_segment());
        let (time, sequence) = (segment.stamp.time, segment.sequence);
        self.round_trip.note_delayed(Delayed { since, was_small, time, sequence });
    }

    pub(super) fn last_packet(&self) -> Option<Timestamp> {
        let data = self.segments.newest().map(|sighting| sighting.time);
        let other = self.packets.newest().map(|sighting| sighting.time);
        data.max(other)
    }

    #[inline]
    pub(super) fn acknowledge(&mut self, position: u64, segment: &TcpSegment<'_>) -> bool {
        if let Some(acknowledged) = self.acknowledged.filter(|acknowledged| *acknowledged >= position) {
            let may_repeat = segment.payload_length == 0 || segment.names_later_bytes;
            if may_repeat && acknowledged == position {
                self.stalls.stayed(position, self.seen_to > position, segment);
            }
            return acknowledged == position;
        }
        self.acknowledged = Some(position);
        self.acknowledged_at = segment.stamp.time;
        self.stalls.moved_on(position, segment);
        while self.unacknowledged.front().is_some_and(|end| *end <= position) {
            self.unacknowledged.pop_front();
        }
        let is_late = self.round_trip.acknowledged(position, segment.stamp.time);
        if is_late && segment.payload_length == 0 {
            self.acknowledged_late(position, segment);
        }
        true
    }

    pub(super) fn unacknowledged_before(&self, position: u64) -> bool {
        self.acknowledged.is_some() && self.unacknowledged.front().is_some_and(|end| *end <= position)
    }

    /// Returns the number of unacknowledged data segments; zero if the capture contains no acknowledgments at all.
    pub(super) fn unacknowledged_segments(&self) -> u64 {
        if self.acknowledged.is_some() { self.unacknowledged.len() as u64 } else { 0 }
    }

    pub(super) fn first_copy(&self, position: u64) -> Option<Timestamp> {
        let holds = |sighting: &&Sighting| (sighting.position..sighting.end()).contains(&position);
        self.segments.iter().find(holds).map(|sighting| sighting.time)
    }

    /// Records a retransmission with both copies captured, unneeded if the receiver had acknowledged the bytes.
    pub(super) fn resent(&mut self, start: u64, end: u64, time: Timestamp) {
        let needless = self.acknowledged.is_some_and(|acknowledged| acknowledged >= end);
        self.counts.needless += u64::from(needless);
        // A forgotten first copy was sent at about the time of the acknowledgment of the bytes before it.
        let forgotten = || {
            let trip = self.round_trip.smallest().filter(|_| self.acknowledged.is_some())?;
            Some(Timestamp(self.acknowledged_at.0.saturating_sub(trip.0)))
        };
        let since = self.first_copy(start).filter(|first| *first < time).or_else(forgotten);
        self.push_resent(ResentSegment { start, end, since, time, seen_once: false, needless, reported_to: 0 });
    }

    /// Records a retransmission without another copy in the capture. The stream waited since later bytes
    /// arrived. `needless` means that the receiver had the bytes, so that only the capture missed the first copy.
    pub(super) fn resent_unseen(&mut self, start: u64, end: u64, since: Timestamp, time: Timestamp, needless: bool) {
        match needless {
            true => self.counts.needless += 1,
            false => self.counts.lost_before_capture += 1,
        }
        self.push_resent(ResentSegment {
            start,
            end,
            since: Some(since),
            time,
            seen_once: true,
            needless,
            reported_to: 0,
        });
    }

    #[cold]
    fn push_resent(&mut self, segment: ResentSegment) {
        self.resent.get_or_insert_default().push(segment);
    }

    /// Handles a D-SACK (RFC 2883). A single byte belongs to a keep-alive or window probe and does not count.
    #[cold]
    pub(super) fn reported_twice(&mut self, (left, right): (u32, u32)) {
        let (start, end) = (self.position_of(left), self.position_of(right));
        if end <= start + 1 {
            return;
        }
        let Some(known) = self.resent.as_mut().and_then(|resent| resent.reported_twice(start, end)) else { return };
        self.counts.needless += 1;
        if known.seen_once {
            self.counts.lost_before_capture -= 1;
        }
    }

    /// Computes the totals that are known only at the end, and returns the times of the retransmissions. `round_trip` is
    /// measured end to end.
    pub(super) fn finish(&mut self, round_trip: Nanos) -> Vec<Timestamp> {
        if round_trip >= LONGEST_STALLED_TRIP {
            (self.counts.ack_stalls, self.counts.ack_stall) = (0, Nanos(0));
        }
        self.counts.window = self.window.counts();
        let Some(mut resent) = self.resent.take() else { return Vec::new() };
        let times = resent.take_times();
        self.counts.resend_delay = resent.delay();
        times
    }

    pub(super) fn skip(&mut self, gap: StreamGap) {
        self.advance_to(gap.end());
        self.gaps.push(gap);
        self.round_trip.retransmitted();
    }

    pub(super) fn was_skipped(&self, position: u64, end: u64) -> bool {
        self.gaps.iter().any(|gap| gap.position <= position && end <= gap.end())
    }

    /// Estimates the number of packets in a gap: from the IP identifications if the sender numbers its packets
    /// consecutively (as Linux does per connection), otherwise the minimum, given the largest segment seen.
    pub(super) fn packets_in(&self, gap: &StreamGap) -> u64 {
        let at_least = gap.length.div_ceil(u64::from(self.largest_payload.max(1460)));
        let counted = self.packets_by_identification(gap).filter(|counted| *counted <= gap.length);
        counted.map_or(at_least, |counted| counted.max(at_least))
    }

    pub(super) fn numbers_packets(&self) -> bool {
        // Drops cause jumps too, but a counter shared by all connections causes many more.
        self.id_steps >= 8 && self.id_jumps <= self.id_steps / 3
    }

    fn packets_by_identification(&self, gap: &StreamGap) -> Option<u64> {
        if !self.numbers_packets() {
            return None;
        }
        let before = self.segments.iter().rev().find(|sighting| sighting.end() == gap.position)?;
        let after = self.segments.iter().find(|sighting| sighting.position == gap.end())?;
        let numbered = after.ip_id()?.wrapping_sub(before.ip_id()?);
        let captured = after.serial.wrapping_sub(before.serial);
        Some(u64::from(u32::from(numbered).checked_sub(captured)?))
    }
}

fn remember<T>(list: &mut VecDeque<T>, entry: T, limit: usize) {
    if list.len() == limit {
        list.pop_front();
    }
    list.push_back(entry);
}

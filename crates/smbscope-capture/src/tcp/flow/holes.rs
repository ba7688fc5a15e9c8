//! Fills holes in a stream with held segments, or skips them as gaps, and delivers the data after them.

use super::{Hole, Located, TcpFlow, limits};
use crate::segment::TcpSegment;
use crate::tcp::buffers::{Arrival, OutOfOrderSegment};
use crate::tcp::{GapCause, StreamGap, StreamSink};
use limits::{GRACE_PACKETS, MAX_HELD_BYTES, MAX_HELD_SEGMENTS};
use smbscope_model::{FlowDirection, Nanos};

/// Packets that IP identifications can order. A retransmission has an IP identification newer than its successor's by
/// at most one window of packets.
const MAX_ID_DISTANCE: u16 = 4096;

/// Longest reordering by a network or a capture (Wireshark also uses 3 ms).
const LONGEST_REORDERING: Nanos = Nanos(3_000_000);

impl<S> TcpFlow<S> {
    /// Decides whether a segment that fills a hole is a retransmission, whose lost first copy the capture lacks, or was
    /// merely reordered, and counts it. Only held segments before `arrival` arrived before it.
    pub(super) fn fills_hole(&mut self, located: &Located<'_>, arrival: Arrival) -> bool {
        let Some(later) = self.held.successor(located.direction, located.position, arrival) else { return false };
        let since = later.segment.stamp.time;
        if !was_sent_after(located.segment, &later.segment) {
            self.counts.out_of_order_segments += 1;
            return false;
        }
        self.counts.retransmissions_seen_once += 1;
        // If the receiver already had the bytes, the capture dropped the first copy and the receiver did not wait. If
        // it was missing them until just now, this is the copy it waited for, captured after the acknowledgment.
        let stream = &mut self.streams[located.direction.index()];
        let (start, end, time) = (located.position, located.end(), located.segment.stamp.time);
        let missed_until = stream.stalls.missed_until(start, end);
        let just_missed = missed_until.is_some_and(|until| time - until <= LONGEST_REORDERING);
        let was_lost = !located.known_received || just_missed;
        stream.resent_unseen(start, end, since, time, !was_lost);
        was_lost
    }

    /// Returns `None` if no held segment before `arrival` follows it in the stream.
    fn was_sent_after_its_successor(&self, located: &Located<'_>, arrival: Arrival) -> Option<bool> {
        let later = self.held.successor(located.direction, located.position, arrival)?;
        Some(was_sent_after(located.segment, &later.segment))
    }

    /// Chooses between the first two held segments when each waits for the other: one of them is a late copy with a
    /// newer acknowledgment. If the bytes of one had already been acknowledged, it goes first; otherwise the opener's,
    /// since it sends the requests, or else the one that looks more like a copy.
    fn first_of_two(&self) -> Option<Arrival> {
        let lateness = |held: &OutOfOrderSegment| {
            let by_identification = self.was_sent_after_its_successor(&held.located(), Arrival::LAST) == Some(true);
            (by_identification, held.known_received || held.sent_again)
        };
        let [first, second] = self.held.first_two();
        let (first_arrival, first) = first?;
        let Some((second_arrival, second)) = second else { return Some(first_arrival) };
        let second_goes_first = match self.view.opener {
            _ if first.known_received != second.known_received => second.known_received,
            Some(opener) => second.direction == opener,
            None => lateness(second) > lateness(first),
        };
        Some(if second_goes_first { second_arrival } else { first_arrival })
    }

    pub(super) fn open_hole(&mut self, direction: FlowDirection, end: u64) {
        self.hole = Some(Hole { direction, end, packets_since_acknowledged: None });
    }

    #[cold]
    pub(super) fn hold(&mut self, located: &Located<'_>) {
        self.held.push(located.to_held());
    }

    #[inline]
    pub(super) fn wait_for_hole<K: StreamSink<Flow = S>>(&mut self, sink: &mut K) {
        while let Some(hole) = &mut self.hole {
            let stream = &self.streams[hole.direction.index()];
            let start = stream.next.unwrap_or(hole.end);
            if stream.acknowledged.is_some_and(|acknowledged| acknowledged > start) {
                let passed = hole.packets_since_acknowledged.map_or(0, |packets| packets + 1);
                hole.packets_since_acknowledged = Some(passed);
                if passed < GRACE_PACKETS && !self.holds_too_much() {
                    return;
                }
            } else if !self.holds_too_much() {
                return;
            } else {
                self.counts.reorder_buffer_overflows += 1;
            }
            self.skip_hole(sink);
        }
    }

    fn holds_too_much(&self) -> bool {
        self.held.len() > MAX_HELD_SEGMENTS || self.held.bytes() > MAX_HELD_BYTES
    }

    pub(super) fn skip_hole<K: StreamSink<Flow = S>>(&mut self, sink: &mut K) {
        let Some(hole) = self.hole.take() else { return };
        let next = self.streams[hole.direction.index()].next.unwrap_or(hole.end);
        let held = self.held.next_position(hole.direction, next);
        let end = held.map_or(hole.end, |position| position.min(hole.end));
        self.skip_to(hole.direction, end, sink);
        self.replay(sink);
    }

    pub(super) fn skip_to<K: StreamSink<Flow = S>>(&mut self, direction: FlowDirection, end: u64, sink: &mut K) {
        let stream = &mut self.streams[direction.index()];
        let Some(start) = stream.next.filter(|next| *next < end) else { return };
        let cause = match stream.acknowledged {
            Some(acknowledged) if acknowledged >= end => GapCause::Capture,
            _ => GapCause::Unknown,
        };
        let missed_until = stream.stalls.missed_until(start, end);
        let gap = StreamGap { position: start, length: end - start, cause, missed_until };
        let packets = stream.packets_in(&gap);
        stream.skip(gap);
        match cause {
            GapCause::Capture => {
                stream.counts.dropped_bytes += gap.length;
                stream.counts.dropped_packets += packets;
                self.counts.capture_gaps += 1;
                self.counts.dropped_bytes += gap.length;
                self.counts.dropped_packets += packets;
            }
            GapCause::Unknown => self.counts.missing_unacknowledged_bytes += gap.length,
        }
        sink.gap(&mut self.state, &self.view, direction, &gap);
    }

    pub(super) fn replay<K: StreamSink<Flow = S>>(&mut self, sink: &mut K) {
        loop {
            if self.hole.is_none() {
                let Some(held) = self.held.first().and_then(|arrival| self.held.take(arrival)) else { return };
                if !self.hand_on_late(&held.located(), sink) {
                    self.held.push_first(held);
                }
                continue;
            }
            let Some(arrival) = self.held_filler() else { break };
            let Some(mut filler) = self.held.take(arrival) else { break };
            filler.sent_again = self.fills_hole(&filler.located(), arrival);
            self.hole = None;
            if self.hand_on_late(&filler.located(), sink) {
                continue;
            }
            let for_each_other = self.held_filler().is_some_and(|filler| Some(filler) == self.held.first());
            self.held.push_first(filler);
            if for_each_other {
                self.hole = None;
                if let Some(held) = self.first_of_two().and_then(|arrival| self.held.take(arrival)) {
                    self.deliver(&held.located(), sink);
                }
            }
        }
        if let Some(hole) = &mut self.hole {
            let stream = &self.streams[hole.direction.index()];
            if stream.acknowledged > stream.next {
                // The held segments have passed since the acknowledgment.
                hole.packets_since_acknowledged = Some(self.held.len() as u32);
            }
        }
    }

    fn held_filler(&self) -> Option<Arrival> {
        let hole = self.hole?;
        self.held.filler(hole.direction, self.streams[hole.direction.index()].next?)
    }
}

fn was_sent_after(segment: &TcpSegment<'_>, later: &TcpSegment<'_>) -> bool {
    let identification = |segment: &TcpSegment<'_>| {
        // Fragments' identifications say nothing about the order of segments.
        segment.ip_id.filter(|id| *id != 0 && segment.first == segment.stamp)
    };
    match (identification(segment), identification(later)) {
        (Some(id), Some(later_id)) => (1..=MAX_ID_DISTANCE).contains(&id.wrapping_sub(later_id)),
        // Without identifications, only the time is left.
        _ => segment.stamp.time - later.stamp.time > LONGEST_REORDERING,
    }
}

//! Assigns segments to connections: reused ports, stray packets, copies from two sides of a router, clock steps.

use super::limits::{FAR_JUMP, MAX_JUMP};
use super::{SegmentDisposition, TcpFlow};
use crate::segment::{TcpFlags, TcpSegment};
use crate::tcp::StreamSink;
use smbscope_model::{ClockStep, FlowDirection, Role, Stamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentOwner {
    Here,
    /// Another connection, if the next segment agrees.
    Stray,
    /// Another connection on the same ports.
    NewConnection,
    Nowhere,
}

impl<S> TcpFlow<S> {
    /// Returns true if the packet was captured on the side of a router that does not count.
    pub(super) fn is_elsewhere(&self, direction: FlowDirection, segment: &TcpSegment<'_>, place: Role) -> bool {
        let client = self.view.opener.unwrap_or_else(|| self.view.client_by_port());
        let near_sender = (direction == client) == (place == Role::Client);
        self.streams[direction.index()].is_elsewhere(segment, near_sender)
    }

    pub(super) fn count_other_side(&mut self, direction: FlowDirection) {
        self.streams[direction.index()].counts.packets += 1;
        self.counts.smb_flow_packets += 1;
        self.counts.duplicate_packets += 1;
        self.counts.copies_behind_router += 1;
    }

    #[cold]
    pub(super) fn note_side(&mut self, direction: FlowDirection, segment: &TcpSegment<'_>, one_side_only: bool) {
        let stream = &self.streams[direction.index()];
        let Some((most, least)) = stream.both_sides.filter(|sides| [sides.0, sides.1].contains(&segment.hops_left))
        else {
            return;
        };
        if most != least {
            self.counts.copies_behind_router += 1;
        }
        if one_side_only && self.counts.copies_behind_router < 4 {
            // Times measured between packets from both sides are not round trips.
            self.streams.iter_mut().for_each(|stream| stream.round_trip = Default::default());
            self.view.round_trip = [None, None];
        }
    }

    /// Returns true for a SYN, unless it is directly before the first byte seen and was merely overtaken.
    #[inline]
    pub(super) fn begins_anew(&mut self, direction: FlowDirection, segment: &TcpSegment<'_>) -> bool {
        if !segment.flags.syn() {
            return false;
        }
        let answered = self.streams[direction.reverse().index()].initial.map(|initial| initial.wrapping_add(1));
        let answers = segment.flags.ack() && answered == Some(segment.acknowledgment);
        let stream = &mut self.streams[direction.index()];
        match (stream.initial, stream.begin.or(stream.next)) {
            (Some(initial), _) => initial != segment.sequence,
            (None, Some(begin)) => !answers && stream.position_of(segment.sequence) + 1 != begin,
            (None, None) => false,
        }
    }

    #[inline]
    pub(super) fn place_of<K: StreamSink<Flow = S>>(
        &mut self,
        direction: FlowDirection,
        position: u64,
        segment: &TcpSegment<'_>,
        sink: &K,
    ) -> SegmentOwner {
        let stream = &self.streams[direction.index()];
        let Some(next) = stream.next else { return SegmentOwner::Here };
        if next.abs_diff(position) <= FAR_JUMP && stream.fin.is_none_or(|fin| position <= fin + 1) {
            return SegmentOwner::Here;
        }
        self.place_of_far(direction, position, segment, sink)
    }

    /// Decides the same for a segment far from its stream. If ports are reused and the SYN was not captured, both
    /// streams jump at once, or the payload can only start a connection.
    #[cold]
    fn place_of_far<K: StreamSink<Flow = S>>(
        &mut self,
        direction: FlowDirection,
        position: u64,
        segment: &TcpSegment<'_>,
        sink: &K,
    ) -> SegmentOwner {
        let signed = |position: u64, next: u64| position.wrapping_sub(next) as i64;
        let stream = &self.streams[direction.index()];
        let next = stream.next.unwrap_or(position);
        let jump = signed(position, next);
        let has_payload = segment.payload_length > 0;
        let after_its_end = stream.fin.is_some_and(|fin| position > fin + 1);
        let is_far = |jump: i64| jump.unsigned_abs() > FAR_JUMP;
        let is_known = stream.holds(position);
        let other = &mut self.streams[direction.reverse().index()];
        let other_is_known = other.next.is_none() || {
            let acknowledged = other.position_of(segment.acknowledgment);
            other.next == Some(acknowledged) || other.holds(acknowledged)
        };
        let acknowledges = segment.flags.ack() && !segment.flags.rst();
        let other_jump = other
            .next
            .filter(|_| acknowledges)
            .map(|next| signed(other.position_of(segment.acknowledgment), next))
            .filter(|jump| is_far(*jump));
        if !has_payload {
            // A lone acknowledgment that fits neither side proves nothing.
            return if is_far(jump) && other_jump.is_some() { SegmentOwner::Nowhere } else { SegmentOwner::Here };
        }
        if is_known && other_is_known {
            // A late copy or a retransmission.
            return SegmentOwner::Here;
        }
        let impossible = |jump: i64| jump < 0 || jump.unsigned_abs() > MAX_JUMP;
        if after_its_end || (!is_known && sink.begins_connection(segment.payload)) {
            return SegmentOwner::NewConnection;
        }
        match other_jump {
            Some(other) if is_far(jump) && (impossible(jump) || impossible(other)) => SegmentOwner::NewConnection,
            _ if jump.unsigned_abs() > MAX_JUMP => SegmentOwner::Stray,
            _ => SegmentOwner::Here,
        }
    }

    /// Two stray segments in a row that agree start another connection.
    #[cold]
    pub(super) fn take_stray(
        &mut self,
        direction: FlowDirection,
        position: u64,
        segment: &TcpSegment<'_>,
    ) -> SegmentDisposition {
        match self.stray {
            Some((known, expected)) if known == direction && expected.abs_diff(position) < FAR_JUMP => {
                SegmentDisposition::NewConnection
            }
            _ => {
                self.stray = Some((direction, position + u64::from(segment.payload_length)));
                SegmentDisposition::Taken
            }
        }
    }

    /// Records a clock step if data sent before a long silence is acknowledged or continued right after it without a
    /// retransmission. Without a step, the sender would have retransmitted many times.
    #[cold]
    pub(super) fn note_clock_step(
        &mut self,
        direction: FlowDirection,
        position: u64,
        segment: &TcpSegment<'_>,
        last: Stamp,
    ) {
        if !segment.flags.ack() || segment.flags.0 & (TcpFlags::SYN | TcpFlags::RST) != 0 {
            return;
        }
        let own = &self.streams[direction.index()];
        let goes_on = segment.payload_length > 0 && own.next == Some(position) && own.unacknowledged_before(position);
        let other = &mut self.streams[direction.reverse().index()];
        let acknowledged = other.position_of(segment.acknowledgment);
        if goes_on || other.unacknowledged_before(acknowledged) {
            self.view.clock_step = Some(ClockStep { before: last, after: segment.stamp });
        }
    }
}

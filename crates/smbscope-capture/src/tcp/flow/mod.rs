//! Reassembles both directions of one TCP connection together.
//!
//! A segment that does not continue its stream opens a *hole*. All segments of the flow are then held until the missing
//! bytes arrive (reordering, retransmission) or are skipped as a gap: once the other side has acknowledged them and a
//! few more packets have passed (the capture dropped them), when too much is held, or when the flow ends.

mod holes;
mod owner;

use crate::segment::{TcpFlags, TcpSegment};
use crate::tcp::buffers::{Arrival, OutOfOrderQueue, OutOfOrderSegment};
use crate::tcp::losses::Outages;
use crate::tcp::stream::TcpHalfStream;
use crate::tcp::waits::Trips;
use crate::tcp::{Directed, FlowEnd, FlowView, Retransmission, StreamChunk, StreamSink};
use limits::{MAX_JUMP, MAX_SILENCE};
use owner::SegmentOwner;
use smbscope_model::{FlowDirection, Nanos, Quality, Role, Stamp, Timestamp};

pub mod limits {
    use smbscope_model::Nanos;

    /// Packets of the flow that may pass after an acknowledgment of missing bytes before these are skipped. Captures
    /// reorder neighbouring packets; one that is later than this counts as dropped.
    pub const GRACE_PACKETS: u32 = 16;
    /// Segments waiting for a missing one; then lost: `reorder_buffer_overflows`.
    pub const MAX_HELD_SEGMENTS: usize = 2048;
    /// Bytes of these segments.
    pub const MAX_HELD_BYTES: usize = 4 << 20;
    /// Bytes between a segment and its stream. A segment further away belongs to another connection or to none.
    pub const MAX_JUMP: u64 = 256 << 20;
    /// A segment further than this from both streams, and before one of them, belongs to another connection.
    pub const FAR_JUMP: u64 = 1 << 20;
    /// Time without acknowledgment or retransmission; longer: the clock stepped. Or the capture was paused.
    pub const MAX_SILENCE: Nanos = Nanos(10_000_000_000);
}

/// Segments between two memory checks of a flow. Checks are more frequent at first.
const CHARGE_INTERVAL: u32 = 32;

#[derive(Clone)]
pub(super) struct TcpFlow<S> {
    pub(super) view: FlowView,
    pub(super) state: S,
    pub(super) last: Stamp,
    pub(super) reset: bool,
    /// Memory charged by the table, segments since the last check, and segments until the next.
    pub(super) charged: usize,
    uncharged: u32,
    charge_after: u32,
    counts: Counts,
    streams: [TcpHalfStream; 2],
    hole: Option<Hole>,
    held: OutOfOrderQueue,
    stray: Option<(FlowDirection, u64)>,
    /// One side has retransmitted without a reply since: `outages` needs the next packet of the other side.
    is_silent: bool,
    outages: Option<Box<Outages>>,
}

#[derive(Debug, Clone, Copy)]
struct Hole {
    direction: FlowDirection,
    end: u64,
    /// Packets of the flow since the other side acknowledged beyond the start of the hole.
    packets_since_acknowledged: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentDisposition {
    Taken,
    NewConnection,
}

#[derive(Clone, Copy)]
struct Located<'a> {
    direction: FlowDirection,
    position: u64,
    bytes: &'a [u8],
    segment: &'a TcpSegment<'a>,
    acknowledged: Option<u64>,
    /// The receiver had already acknowledged it when it was captured.
    known_received: bool,
    sent_again: bool,
}

impl Located<'_> {
    fn to_held(self) -> OutOfOrderSegment {
        OutOfOrderSegment {
            direction: self.direction,
            position: self.position,
            bytes: self.bytes.into(),
            segment: TcpSegment { payload: &[], ..*self.segment },
            acknowledged: self.acknowledged,
            known_received: self.known_received,
            sent_again: self.sent_again,
        }
    }

    fn end(&self) -> u64 {
        self.position + u64::from(self.segment.payload_length)
    }
}

impl<S> TcpFlow<S> {
    pub(super) fn new(view: FlowView, state: S) -> TcpFlow<S> {
        TcpFlow {
            last: view.first,
            view,
            state,
            reset: false,
            charged: 0,
            uncharged: 0,
            charge_after: 1,
            counts: Counts::default(),
            streams: [TcpHalfStream::default(), TcpHalfStream::default()],
            hole: None,
            held: OutOfOrderQueue::default(),
            stray: None,
            is_silent: false,
            outages: None,
        }
    }

    /// Returns true if the table should recheck the flow's memory: only while segments are held, because of the cost.
    #[inline]
    pub(super) fn needs_charge(&mut self) -> bool {
        self.uncharged += 1;
        let due = self.uncharged >= self.charge_after || self.hole.is_some();
        if due {
            self.uncharged = 0;
            self.charge_after = (2 * self.charge_after).min(CHARGE_INTERVAL);
        }
        due
    }

    #[inline]
    pub(super) fn footprint(&self) -> usize {
        let [forward, backward] = &self.streams;
        size_of::<TcpFlow<S>>() + self.held.footprint() + forward.footprint() + backward.footprint()
    }

    #[inline]
    pub(super) fn holds_back(&self) -> bool {
        self.hole.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.reset || self.streams.iter().all(|stream| stream.finished)
    }

    pub(super) fn segment<K: StreamSink<Flow = S>>(
        &mut self,
        directed: Directed<'_>,
        place: Option<Role>,
        sink: &mut K,
    ) -> SegmentDisposition {
        let Directed { direction, segment } = directed;
        if let Some(place) = place
            && self.is_elsewhere(direction, segment, place)
        {
            self.count_other_side(direction);
            return SegmentDisposition::Taken;
        }
        if self.begins_anew(direction, segment) {
            return SegmentDisposition::NewConnection;
        }
        let stream = &mut self.streams[direction.index()];
        stream.counts.packets += 1;
        self.counts.smb_flow_packets += 1;
        let last = std::mem::replace(&mut self.last, segment.stamp);
        let mut position = stream.position_of(segment.sequence);
        if stream.is_duplicate(position, segment) {
            self.counts.duplicate_packets += 1;
            self.counts.copies_at_two_layers = self.streams.iter().map(TcpHalfStream::at_two_layers).sum();
            self.note_side(direction, segment, place.is_some());
            return SegmentDisposition::Taken;
        }
        if self.is_silent {
            self.hear(direction, segment.stamp);
        }
        if segment.stamp.time - last.time > MAX_SILENCE {
            self.note_clock_step(direction, position, segment, last);
        }
        if segment.flags.syn() {
            self.take_syn(direction, position, segment);
            position += 1;
        }
        match self.place_of(direction, position, segment, sink) {
            SegmentOwner::Here => {}
            SegmentOwner::Nowhere => return SegmentDisposition::Taken,
            SegmentOwner::NewConnection => return SegmentDisposition::NewConnection,
            SegmentOwner::Stray => return self.take_stray(direction, position, segment),
        }
        self.take_located(direction, position, segment, sink);
        SegmentDisposition::Taken
    }

    #[inline(always)]
    fn take_located<K: StreamSink<Flow = S>>(
        &mut self,
        direction: FlowDirection,
        position: u64,
        segment: &TcpSegment<'_>,
        sink: &mut K,
    ) {
        let acknowledged = self.acknowledge(direction, segment);
        self.count(direction, position, segment);
        let end = position + u64::from(segment.payload_length);
        let located = Located {
            direction,
            position,
            bytes: segment.payload,
            segment,
            acknowledged,
            known_received: self.streams[direction.index()].acknowledged.is_some_and(|known| known >= end),
            sent_again: false,
        };
        if segment.payload_length > 0 {
            self.arrive(&located, sink);
        } else if self.streams[direction.index()].next.is_none() {
            self.streams[direction.index()].advance_to(position);
        }
        if segment.flags.fin() {
            self.streams[direction.index()].finished = true;
            self.streams[direction.index()].fin = Some(end);
        }
        self.reset |= segment.flags.rst();
        self.wait_for_hole(sink);
    }

    #[cold]
    fn take_syn(&mut self, direction: FlowDirection, position: u64, segment: &TcpSegment<'_>) {
        self.view.begins[direction.index()] = true;
        self.streams[direction.reverse().index()].window.offered(segment.window_scale);
        let stream = &mut self.streams[direction.index()];
        stream.counts.syns += 1;
        if stream.initial.replace(segment.sequence).is_some() {
            stream.counts.retransmitted += 1;
            self.counts.retransmitted_segments += 1;
        } else if !stream.has_delivered() {
            // Earlier guesses, from an acknowledgment that overtook the SYN, are superseded.
            stream.advance_to(position + 1);
            stream.round_trip.sent(position + 1, segment.stamp.time);
        }
    }

    #[inline]
    fn acknowledge(&mut self, direction: FlowDirection, segment: &TcpSegment<'_>) -> Option<u64> {
        if !segment.flags.ack() || segment.flags.rst() {
            return None;
        }
        let other = &mut self.streams[direction.reverse().index()];
        let position = other.position_of(segment.acknowledgment);
        if other.next.is_some_and(|next| next.abs_diff(position) > MAX_JUMP) {
            return None;
        }
        if let Some(block) = segment.duplicate_sack {
            other.reported_twice(block);
        }
        let begins = self.view.opener == Some(direction) || segment.flags.syn();
        if other.next.is_none() && other.initial.is_none() && begins {
            // Neither the SYN nor the SYN-ACK was captured, so data starts at the first acknowledged position.
            other.advance_to(position);
        }
        if other.acknowledge(position, segment) {
            let trips = self.trips(direction.reverse());
            let own_scale = self.streams[direction.index()].window.scale();
            self.streams[direction.reverse().index()].window.announced(position, segment, own_scale, trips);
        }
        let other = &self.streams[direction.reverse().index()];
        self.view.round_trip[direction.reverse().index()] = other.round_trip.smallest();
        self.view.acknowledged[direction.reverse().index()] = other.acknowledged;
        Some(position)
    }

    #[inline]
    fn trips(&self, direction: FlowDirection) -> Trips {
        Trips {
            sender: self.streams[direction.reverse().index()].round_trip.smallest(),
            receiver: self.streams[direction.index()].round_trip.smallest(),
        }
    }

    #[inline]
    fn count(&mut self, direction: FlowDirection, position: u64, segment: &TcpSegment<'_>) {
        let flags = segment.flags;
        if segment.window == 0 && flags.0 & (TcpFlags::SYN | TcpFlags::RST) == 0 {
            self.counts.zero_windows += 1;
            self.streams[direction.reverse().index()].receiver_full = true;
        }
        let control = flags.0 & (TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) != 0;
        if !control && segment.payload_length == 0 {
            let stream = &mut self.streams[direction.index()];
            if stream.next.is_some_and(|next| position.wrapping_add(1) == next) && self.hole.is_none() {
                self.counts.keep_alives += 1;
                if stream.window.is_closed() {
                    stream.window.probed(segment.stamp.time);
                }
            }
            stream.counts.pure_acks += 1;
            self.counts.pure_acks += 1;
        }
    }

    #[inline(always)]
    fn arrive<K: StreamSink<Flow = S>>(&mut self, located: &Located<'_>, sink: &mut K) {
        let stream = &mut self.streams[located.direction.index()];
        let next = *stream.next.get_or_insert(located.position);
        if located.end() <= next {
            self.sent_again(located, located.end(), sink);
            return;
        }
        match self.hole {
            None => {
                if !self.hand_on(located, sink) {
                    self.hold(located);
                }
            }
            Some(hole) if hole.direction == located.direction && located.position <= next => {
                let located = Located { sent_again: self.fills_hole(located, Arrival::LAST), ..*located };
                self.hole = None;
                if !self.hand_on_late(&located, sink) {
                    self.held.push_first(located.to_held());
                }
                self.replay(sink);
            }
            Some(_) => self.hold(located),
        }
    }

    /// Delivers data unless that reveals a hole: missing bytes before it, or bytes of the other direction that its
    /// sender has acknowledged but that have not been seen. Returns false if it opened a hole.
    #[inline(always)]
    fn hand_on<K: StreamSink<Flow = S>>(&mut self, located: &Located<'_>, sink: &mut K) -> bool {
        let direction = located.direction;
        let stream = &self.streams[direction.index()];
        let next = stream.next.unwrap_or(located.position);
        let other = &self.streams[direction.reverse().index()];
        let missing_answer =
            other.next.zip(located.acknowledged).filter(|(other_next, acknowledged)| acknowledged > other_next);
        if located.position > next {
            self.open_hole(direction, located.position);
            return false;
        }
        if located.end() <= next {
            self.sent_again(located, located.end(), sink);
            return true;
        }
        if let Some((other_next, acknowledged)) = missing_answer {
            // The FIN occupies a sequence number without being data.
            if !(other.fin == Some(other_next) && acknowledged == other_next + 1) {
                self.open_hole(direction.reverse(), acknowledged);
                return false;
            }
        }
        self.deliver(located, sink);
        true
    }

    /// Out-of-line copy of [`TcpFlow::hand_on`] for held segments, to keep the path of in-order segments short.
    #[inline(never)]
    fn hand_on_late<K: StreamSink<Flow = S>>(&mut self, located: &Located<'_>, sink: &mut K) -> bool {
        self.hand_on(located, sink)
    }

    #[inline(always)]
    fn deliver<K: StreamSink<Flow = S>>(&mut self, located: &Located<'_>, sink: &mut K) {
        let direction = located.direction;
        let next = self.streams[direction.index()].next.unwrap_or(located.position);
        let repeated = next - located.position;
        if repeated > 0 {
            self.sent_again(located, next, sink);
        }
        let bytes = located.bytes.get(repeated as usize..).unwrap_or_default();
        let length = u64::from(located.segment.payload_length) - repeated;
        let stream = &mut self.streams[direction.index()];
        let receiver_full = std::mem::take(&mut stream.receiver_full);
        let others_missing = std::mem::take(&mut stream.id_skipped) && stream.numbers_packets();
        let chunk = StreamChunk {
            position: next,
            length,
            bytes,
            ordinal: located.segment.ordinal,
            offset: repeated,
            first: located.segment.first,
            stamp: located.segment.stamp,
            origin: located.segment.origin,
            acknowledged: located.acknowledged,
            known_received: located.known_received,
            at_segment_start: repeated == 0,
            sent_again: located.sent_again,
            receiver_full,
            others_missing,
        };
        if stream.round_trip.has_delayed() {
            self.went_on(direction, located.segment);
        }
        let stream = &mut self.streams[direction.index()];
        stream.delivered(next, length, located.segment.payload_length, located.segment.stamp);
        let (segment_size, time) = (stream.largest_payload, located.segment.stamp.time);
        let trips = self.trips(direction);
        self.streams[direction.index()].window.sent(next + length, segment_size, time, trips);
        sink.data(&mut self.state, &self.view, direction, &chunk);
    }

    #[cold]
    fn went_on(&mut self, direction: FlowDirection, segment: &TcpSegment<'_>) {
        let trips = self.trips(direction);
        self.streams[direction.index()].went_on(segment, trips);
    }

    #[cold]
    fn sent_again<K: StreamSink<Flow = S>>(&mut self, located: &Located<'_>, end: u64, sink: &mut K) {
        let stream = &mut self.streams[located.direction.index()];
        let next = stream.next.unwrap_or(located.position);
        if located.segment.payload_length == 1 && located.position + 1 == next && located.end() == end {
            self.counts.keep_alives += 1;
            return;
        }
        if stream.was_skipped(located.position, end) {
            self.counts.late_segments += 1;
            return;
        }
        stream.counts.retransmitted += 1;
        stream.round_trip.retransmitted();
        self.counts.retransmitted_segments += 1;
        self.counts.retransmitted_bytes += end - located.position;
        if stream.acknowledged.is_some_and(|acknowledged| acknowledged >= end) {
            self.counts.spurious_retransmissions += 1;
        }
        let stamp = located.segment.stamp;
        let is_waited_for = stream.acknowledged.is_none_or(|acknowledged| acknowledged < end);
        stream.resent(located.position, end, stamp.time);
        let retransmission = Retransmission {
            position: located.position,
            length: end - located.position,
            stamp,
            delay: stream.first_copy(located.position).map(|first| stamp.time - first),
        };
        if is_waited_for {
            self.retry(located, retransmission.delay);
        }
        sink.retransmitted(&mut self.state, &self.view, located.direction, &retransmission);
    }

    fn retry(&mut self, located: &Located<'_>, delay: Option<Nanos>) {
        let direction = located.direction;
        let Stamp { time, .. } = located.segment.stamp;
        // If the other side sent no packet at all, its direction was not captured.
        let Some(heard) = self.streams[direction.reverse().index()].last_packet() else { return };
        if heard >= time {
            return;
        }
        let first = delay.filter(|delay| delay.0 > 0).map(|delay| Timestamp(time.0 - delay.0));
        let from = first.map_or(heard, |first| first.max(heard));
        self.outages.get_or_insert_default().retried(direction, located.position, from, time);
        self.is_silent = true;
    }

    #[cold]
    fn hear(&mut self, direction: FlowDirection, stamp: Stamp) {
        let Some(outages) = &mut self.outages else { return };
        outages.heard(direction, stamp.time);
        self.is_silent = !outages.are_over();
    }

    pub(super) fn finish<K: StreamSink<Flow = S>>(mut self, evicted: bool, sink: &mut K) {
        while self.hole.is_some() {
            self.skip_hole(sink);
        }
        for direction in FlowDirection::BOTH {
            let stream = &self.streams[direction.index()];
            if let (Some(next), Some(acknowledged)) = (stream.next, stream.acknowledged) {
                // A single byte at the end is the FIN, captured or not.
                if acknowledged > next + 1 {
                    self.skip_to(direction, acknowledged, sink);
                }
            }
            self.counts.unacknowledged_segments += self.streams[direction.index()].unacknowledged_segments();
        }
        let quality = Quality {
            midstream_flows: self.view.midstream.into(),
            reset_flows: self.reset.into(),
            evicted_flows: evicted.into(),
            ..self.counts.quality()
        };
        let trips = self.trips(FlowDirection::Forward);
        let whole =
            Nanos(trips.sender.map_or(0, |trip| trip.0).saturating_add(trips.receiver.map_or(0, |trip| trip.0)));
        let resent = self.streams.each_mut().map(|stream| stream.finish(whole));
        let end = FlowEnd {
            last: self.last,
            finished: self.streams.iter().all(|stream| stream.finished),
            reset: self.reset,
            evicted,
            outages: self.outages.map_or_else(Vec::new, |outages| outages.finish(self.last.time)),
            counts: [self.streams[0].counts, self.streams[1].counts],
            initial: [self.streams[0].initial, self.streams[1].initial],
            resent,
            quality,
        };
        sink.closed(self.state, &self.view, end);
    }
}

impl OutOfOrderSegment {
    fn located(&self) -> Located<'_> {
        Located {
            direction: self.direction,
            position: self.position,
            bytes: &self.bytes,
            segment: &self.segment,
            acknowledged: self.acknowledged,
            known_received: self.known_received,
            sent_again: self.sent_again,
        }
    }
}

macro_rules! counts {
    ($($field:ident),+ $(,)?) => {
        /// Packet counters of one flow: a small subset of [`Quality`], because there may be very many flows.
        #[derive(Debug, Clone, Copy, Default)]
        struct Counts {
            $($field: u64,)+
        }

        impl Counts {
            fn quality(&self) -> Quality {
                Quality { $($field: self.$field,)+ ..Quality::default() }
            }
        }
    };
}

counts!(
    smb_flow_packets,
    duplicate_packets,
    copies_behind_router,
    copies_at_two_layers,
    retransmitted_segments,
    retransmitted_bytes,
    retransmissions_seen_once,
    spurious_retransmissions,
    out_of_order_segments,
    late_segments,
    keep_alives,
    zero_windows,
    pure_acks,
    reorder_buffer_overflows,
    capture_gaps,
    dropped_bytes,
    dropped_packets,
    missing_unacknowledged_bytes,
    unacknowledged_segments,
);

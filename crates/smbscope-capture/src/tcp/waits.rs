//! Waits of senders: delayed acknowledgments, and windows that are closed or fill as soon as they open (RFC 9293
//! §3.8.6).
//!
//! Only periods in which the sender had more to send count. A closed window counts once the sender probes it, or sends
//! soon after it opens. To detect a window that is too small, one acknowledgment at a time is taken as a sample. It
//! allows data up to an edge; a sender that is waiting for it reaches that edge one round trip between capture point
//! and sender later, wherever the capture point is. The time from then to the next acknowledgment that moves the edge
//! was spent waiting, up to one round trip. Without the scale options of both SYNs (RFC 7323) the edge is unknown.

use crate::segment::{TcpSegment, WindowScale};
use smbscope_model::{Nanos, Timestamp};

/// Shortest delayed acknowledgment; Linux and Windows use 40 ms or more.
const DELAYED_LEAST: Nanos = Nanos(30_000_000);
/// Ranges of acknowledgment delays in use: 40 or 50 ms, and 200 ms.
const DELAYS: [(Nanos, Nanos); 2] = [(DELAYED_LEAST, Nanos(60_000_000)), (Nanos(180_000_000), Nanos(220_000_000))];
/// Maximum reaction time of a sender that waited for an acknowledgment, in addition to the round trip.
const ACK_REACTION: Nanos = Nanos(2_000_000);

#[derive(Debug, Clone, Copy)]
pub(super) struct Delayed {
    pub(super) since: Timestamp,
    pub(super) was_small: bool,
    pub(super) time: Timestamp,
    pub(super) sequence: u32,
}

#[derive(Debug, Clone, Copy, Default)]
enum Awaited {
    #[default]
    Segment,
    SegmentAfter(Delayed),
    /// The acknowledgment of a segment with this end position and time.
    Acknowledgment(u64, Timestamp),
}

/// Minimum time from a segment to its acknowledgment, without retransmitted ones (Karn's algorithm, RFC 6298 §3).
#[derive(Debug, Clone, Default)]
pub(super) struct RoundTrip {
    awaited: Awaited,
    smallest: Option<Nanos>,
}

impl RoundTrip {
    #[inline]
    pub(super) fn sent(&mut self, end: u64, time: Timestamp) {
        if !matches!(self.awaited, Awaited::Acknowledgment(..)) {
            self.awaited = Awaited::Acknowledgment(end, time);
        }
    }

    #[inline]
    pub(super) fn acknowledged(&mut self, position: u64, time: Timestamp) -> bool {
        let Awaited::Acknowledgment(end, sent) = self.awaited else { return false };
        if position < end {
            return false;
        }
        self.awaited = Awaited::Segment;
        let sample = time - sent;
        if sample.0 >= 0 && self.smallest.is_none_or(|smallest| sample < smallest) {
            self.smallest = Some(sample);
        }
        sample >= DELAYED_LEAST
    }

    pub(super) fn note_delayed(&mut self, delayed: Delayed) {
        let waited = delayed.time - delayed.since;
        if DELAYS.iter().any(|(least, most)| (*least..=*most).contains(&waited)) {
            self.awaited = Awaited::SegmentAfter(delayed);
        }
    }

    #[inline]
    pub(super) fn has_delayed(&self) -> bool {
        matches!(self.awaited, Awaited::SegmentAfter(_))
    }

    pub(super) fn take_delayed(&mut self) -> Option<Delayed> {
        match std::mem::take(&mut self.awaited) {
            Awaited::SegmentAfter(delayed) => Some(delayed),
            other => {
                self.awaited = other;
                None
            }
        }
    }

    pub(super) fn retransmitted(&mut self) {
        self.awaited = Awaited::Segment;
    }

    #[inline]
    pub(super) fn smallest(&self) -> Option<Nanos> {
        self.smallest
    }
}

impl Delayed {
    /// Returns true if the sender waited for the acknowledgment: `segment`, the next data segment, follows immediately
    /// and answers nothing else. `trip` is the round trip between the capture point and the sender.
    pub(super) fn was_waited_for(&self, segment: &TcpSegment<'_>, trip: Option<Nanos>) -> bool {
        let after = segment.stamp.time - self.time;
        let soon = Nanos(ACK_REACTION.0.saturating_add(trip.map_or(0, |trip| trip.0)));
        segment.acknowledgment == self.sequence && after <= soon
    }
}

/// Maximum reaction time of a sender that waited for an open window, in addition to the round trip.
const WINDOW_REACTION: Nanos = Nanos(100_000_000);
/// Minimum round trip for sampling: below it no window is too small, and sampling would cost more than it reveals.
const SAMPLED_ROUND_TRIP: Nanos = Nanos(1_000_000);
/// Tolerance for reaching the edge, in addition to the round trip to the sender: this fraction of the whole round trip.
const LATE_PART: i64 = 8;
/// Largest segment on the network in bytes. Larger ones are offload artefacts. A sender waiting for window space leaves
/// less than one segment of it unused.
const LARGEST_SEGMENT: u32 = 9_000;
const NO_EDGE: u64 = u64::MAX;

/// Smallest round trips so far from the capture point to the sender of a direction's data, and to its receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trips {
    pub(super) sender: Option<Nanos>,
    pub(super) receiver: Option<Nanos>,
}

impl Trips {
    fn whole(self) -> Option<Nanos> {
        Some(Nanos(self.sender?.0.saturating_add(self.receiver?.0)))
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReceiveWindow {
    scale: WindowScale,
    closed_since: Option<Timestamp>,
    reopened: Option<(Nanos, Timestamp)>,
    /// Edge allowed by the current sample and the time of the sample; [`NO_EDGE`] if there is none.
    edge: u64,
    since: Timestamp,
    filled: bool,
    allowed: u32,
    counts: WindowCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowCounts {
    pub closed: Nanos,
    pub limited: Nanos,
    pub filled: Option<u32>,
}

impl Default for ReceiveWindow {
    fn default() -> ReceiveWindow {
        ReceiveWindow {
            scale: WindowScale::Unknown,
            closed_since: None,
            reopened: None,
            edge: NO_EDGE,
            since: Timestamp(0),
            filled: false,
            allowed: 0,
            counts: WindowCounts::default(),
        }
    }
}

impl ReceiveWindow {
    pub(super) fn offered(&mut self, scale: WindowScale) {
        self.scale = scale;
    }

    /// `own_scale` comes from the SYN of the data's sender: unless both sides send the option, neither scales.
    #[inline]
    pub(super) fn announced(&mut self, position: u64, segment: &TcpSegment<'_>, own_scale: WindowScale, trips: Trips) {
        if segment.window == 0 || self.closed_since.is_some() {
            self.opens_or_closes(segment);
        }
        let shift = match (self.scale, own_scale) {
            (WindowScale::Shift(shift), WindowScale::Shift(_)) => shift,
            (WindowScale::Unknown, _) | (_, WindowScale::Unknown) => return,
            _ => 0,
        };
        // The window of a SYN is never scaled, and no data is outstanding yet.
        if segment.flags.syn() {
            return;
        }
        let allowed = u32::from(segment.window) << shift;
        let edge = position + u64::from(allowed);
        if edge != self.edge {
            self.sample(edge, allowed, segment.stamp.time, trips);
        }
    }

    #[inline]
    fn sample(&mut self, edge: u64, allowed: u32, time: Timestamp, trips: Trips) {
        if self.edge != NO_EDGE && !self.filled && time - self.since <= latest(trips) {
            return;
        }
        let Some(whole) = trips.whole().filter(|whole| *whole >= SAMPLED_ROUND_TRIP) else { return };
        if self.filled {
            let waited = (time - self.since).0.clamp(0, whole.0);
            self.counts.limited.0 = self.counts.limited.0.saturating_add(waited);
            self.counts.filled = self.counts.filled.max(Some(self.allowed));
        }
        (self.edge, self.since, self.filled, self.allowed) = (edge, time, false, allowed);
    }

    #[inline]
    pub(super) fn sent(&mut self, end: u64, segment_size: u32, time: Timestamp, trips: Trips) {
        let left_over = u64::from(segment_size.min(LARGEST_SEGMENT));
        if end.saturating_add(left_over) > self.edge && !self.filled {
            self.reached(time, trips);
        }
        if self.reopened.is_some() {
            self.used(time, trips);
        }
        if self.closed_since.is_some() {
            self.probed(time);
        }
    }

    #[cold]
    fn reached(&mut self, time: Timestamp, trips: Trips) {
        self.filled = time - self.since <= latest(trips);
        if !self.filled {
            self.edge = NO_EDGE;
        }
    }

    #[cold]
    fn opens_or_closes(&mut self, segment: &TcpSegment<'_>) {
        let time = segment.stamp.time;
        match segment.window {
            0 => _ = self.closed_since.get_or_insert(time),
            _ => {
                self.reopened = self.closed_since.take().map(|since| (Nanos((time - since).0.max(0)), time));
            }
        }
    }

    #[cold]
    fn used(&mut self, time: Timestamp, trips: Trips) {
        let Some((closed, until)) = self.reopened.take() else { return };
        if time - until <= Nanos(WINDOW_REACTION.0.saturating_add(trips.sender.map_or(0, |trip| trip.0))) {
            self.counts.closed.0 = self.counts.closed.0.saturating_add(closed.0);
        }
    }

    /// Handles a window probe, which a sender with more data sends (RFC 9293 §3.8.6.1).
    #[cold]
    pub(super) fn probed(&mut self, time: Timestamp) {
        if let Some(since) = self.closed_since.replace(time) {
            self.counts.closed.0 = self.counts.closed.0.saturating_add((time - since).0.max(0));
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed_since.is_some()
    }

    #[inline]
    pub(super) fn scale(&self) -> WindowScale {
        self.scale
    }

    pub(super) fn counts(&self) -> WindowCounts {
        self.counts
    }
}

/// Returns the latest time after an acknowledgment at which a sender that waited for it reaches the edge.
fn latest(trips: Trips) -> Nanos {
    let (Some(sender), Some(whole)) = (trips.sender, trips.whole()) else { return Nanos(0) };
    Nanos(sender.0.saturating_add(whole.0 / LATE_PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_sample_counts_and_retransmissions_do_not() {
        let mut round_trip = RoundTrip::default();
        round_trip.sent(10, Timestamp(0));
        round_trip.acknowledged(9, Timestamp(5));
        assert_eq!(round_trip.smallest(), None);
        round_trip.acknowledged(10, Timestamp(700));
        round_trip.sent(20, Timestamp(1000));
        round_trip.retransmitted();
        round_trip.acknowledged(20, Timestamp(1001));
        assert_eq!(round_trip.smallest(), Some(Nanos(700)));
    }

    #[test]
    fn a_delayed_acknowledgment_is_known_until_the_next_segment() {
        let mut round_trip = RoundTrip::default();
        let delayed = |time: Timestamp| Delayed { since: Timestamp(0), was_small: true, time, sequence: 7 };
        for (ms, is_late, is_delayed) in [(29, false, false), (40, true, true), (100, true, false), (200, true, true)] {
            let time = Timestamp(ms * 1_000_000);
            round_trip.sent(10, Timestamp(0));
            assert_eq!(round_trip.acknowledged(10, time), is_late, "{ms}");
            if is_late {
                round_trip.note_delayed(delayed(time));
            }
            assert_eq!(round_trip.has_delayed(), is_delayed, "{ms}");
            round_trip.sent(20, time);
            assert!(!round_trip.has_delayed() && round_trip.take_delayed().is_none(), "{ms}");
            assert!(!round_trip.acknowledged(20, time), "{ms}");
        }
        round_trip.note_delayed(delayed(Timestamp(40_000_000)));
        assert!(round_trip.take_delayed().is_some() && !round_trip.has_delayed());
        round_trip.note_delayed(delayed(Timestamp(40_000_000)));
        round_trip.retransmitted();
        assert!(!round_trip.has_delayed());
    }

    #[test]
    fn a_delayed_acknowledgment_takes_no_more_room_than_a_segment() {
        assert_eq!(size_of::<Awaited>(), size_of::<Option<(u64, Timestamp)>>());
    }
}

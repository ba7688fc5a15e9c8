//! Round-trip times between the capture point and the receiver of a direction's data, and the receiver's delayed
//! acknowledgments.

use crate::segment::TcpSegment;
use smbscope_model::{Nanos, Timestamp};

/// Shortest delayed acknowledgment; Linux and Windows use 40 ms or more.
const DELAYED_LEAST: Nanos = Nanos(30_000_000);
/// Ranges of acknowledgment delays in use: 40 or 50 ms, and 200 ms.
const DELAYS: [(Nanos, Nanos); 2] = [(DELAYED_LEAST, Nanos(60_000_000)), (Nanos(180_000_000), Nanos(220_000_000))];
/// Maximum reaction time of a sender that waited for an acknowledgment, in addition to the round trip.
const SOON: Nanos = Nanos(2_000_000);

/// Delayed acknowledgment that the sender may have been waiting for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delayed {
    /// Time of the last data segment before it.
    pub(super) since: Timestamp,
    /// That segment was smaller than a full-sized one.
    pub(super) was_small: bool,
    /// Time and sequence number of the acknowledgment.
    pub(super) time: Timestamp,
    pub(super) sequence: u32,
}

/// State of the sampler: the event it waits for.
#[derive(Debug, Default)]
enum Awaited {
    #[default]
    Segment,
    /// The segment after a delayed acknowledgment.
    SegmentAfter(Delayed),
    /// The acknowledgment of a segment with this end position and time.
    Acknowledgment(u64, Timestamp),
}

/// Minimum time from a segment to its acknowledgment. One sample is taken at a time; it is discarded if its bytes were
/// retransmitted (Karn's algorithm, RFC 6298 §3).
#[derive(Debug, Default)]
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

    /// Handles an acknowledgment up to `position`. Returns true if it was late enough to be a delayed one.
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

    /// Records the acknowledgment that just arrived, if its delay matches a delayed acknowledgment.
    pub(super) fn note_delayed(&mut self, delayed: Delayed) {
        let waited = delayed.time - delayed.since;
        if DELAYS.iter().any(|(least, most)| (*least..=*most).contains(&waited)) {
            self.awaited = Awaited::SegmentAfter(delayed);
        }
    }

    /// Returns true if a delayed acknowledgment has arrived and no segment since.
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
        let soon = Nanos(SOON.0.saturating_add(trip.map_or(0, |trip| trip.0)));
        segment.acknowledgment == self.sequence && after <= soon
    }
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

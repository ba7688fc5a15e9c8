//! Round trips between the capture point and the receiver of a direction's data, and what delayed acknowledgments cost.
//!
//! The smallest round trip may come from any acknowledgment. The distribution is to show queues on the path, so it only
//! takes acknowledgments that TCP sends at once: of a SYN, of two full segments (RFC 5681 section 4.2), within less time
//! than any delayed one takes, or on data that the receiver was sending anyway.

use crate::segment::TcpSegment;
use smbscope_model::{Nanos, RoundTrips, Timestamp};

/// No system delays an acknowledgment for less (Linux and Windows: 40 ms and more).
pub(super) const DELAYED_LEAST: Nanos = Nanos(30_000_000);
/// How long acknowledgments are delayed: 40 or 50 ms, and 200 ms.
const DELAYS: [(Nanos, Nanos); 2] = [(DELAYED_LEAST, Nanos(60_000_000)), (Nanos(180_000_000), Nanos(220_000_000))];
/// A sender that waits for an acknowledgment uses it so soon, beside the trip to it and back.
const SOON: Nanos = Nanos(2_000_000);

/// Upper end of the first bucket, and how many there are; each is twice as wide as the one before.
const FIRST_BUCKET_NS: u64 = 32_000;
const BUCKETS: usize = 24;

/// A segment and its acknowledgment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// When the segment passed.
    pub(super) sent: Timestamp,
    /// Bytes that were acknowledged at once with it.
    pub(super) newly: u64,
}

/// A delayed acknowledgment that its receiver may have waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delayed {
    /// The last data segment before it.
    pub(super) since: Timestamp,
    /// That segment was smaller than a full one.
    pub(super) was_small: bool,
    /// When the acknowledgment came, and its sequence number.
    pub(super) time: Timestamp,
    pub(super) sequence: u32,
}

/// What only flows with acknowledgments of their own have.
#[derive(Debug, Default)]
struct Details {
    buckets: [u32; BUCKETS],
    delayed: Option<Delayed>,
}

/// Times from a segment to its acknowledgment. One sample is taken at a time, and a sample whose bytes were retransmitted
/// is dropped (Karn's rule, RFC 6298 section 3).
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    pending: Option<(u64, Timestamp)>,
    smallest: Option<Nanos>,
    details: Option<Box<Details>>,
}

impl RoundTrip {
    /// Approximate memory in bytes.
    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.details.as_ref().map_or(0, |_| size_of::<Details>())
    }

    /// A segment that ends at `end` went out. Returns the delayed acknowledgment since the segment before, if there was one.
    #[inline]
    pub(super) fn sent(&mut self, end: u64, time: Timestamp) -> Option<Delayed> {
        if self.pending.is_some() {
            return None;
        }
        self.pending = Some((end, time));
        self.details.as_mut()?.delayed.take()
    }

    /// Everything before `position` was acknowledged, `newly` bytes more than before.
    #[inline]
    pub(super) fn acknowledged(&mut self, position: u64, newly: u64, time: Timestamp) -> Option<Sample> {
        let (_, sent) = self.pending.filter(|(end, _)| position >= *end)?;
        self.pending = None;
        let sample = time - sent;
        if sample.0 < 0 {
            return None;
        }
        if self.smallest.is_none_or(|smallest| sample < smallest) {
            self.smallest = Some(sample);
        }
        Some(Sample { sent, newly })
    }

    /// Adds a round trip to the distribution.
    pub(super) fn record(&mut self, trip: Nanos) {
        let above = (trip.0.max(0) as u64 / FIRST_BUCKET_NS).checked_ilog2().map_or(0, |log| log as usize + 1);
        let bucket = &mut self.details.get_or_insert_default().buckets[above.min(BUCKETS - 1)];
        *bucket = bucket.saturating_add(1);
    }

    /// Notes an acknowledgment that came as late as delayed ones do.
    pub(super) fn note_delayed(&mut self, delayed: Delayed) {
        let waited = delayed.time - delayed.since;
        if DELAYS.iter().any(|(least, most)| (*least..=*most).contains(&waited)) {
            self.details.get_or_insert_default().delayed = Some(delayed);
        }
    }

    /// Discards the sample: bytes in flight were retransmitted, or are missing.
    pub(super) fn retransmitted(&mut self) {
        self.pending = None;
        if let Some(details) = &mut self.details {
            details.delayed = None;
        }
    }

    /// The smallest sample so far.
    #[inline]
    pub(super) fn smallest(&self) -> Option<Nanos> {
        self.smallest
    }

    /// The distribution, as far as powers of two tell it.
    pub(super) fn distribution(&self) -> RoundTrips {
        let Some(Details { buckets, .. }) = self.details.as_deref() else { return RoundTrips::default() };
        let samples = buckets.iter().map(|count| u64::from(*count)).sum();
        let least = self.smallest.unwrap_or(Nanos(0));
        let percentile = |percent: u64| percentile(buckets, samples, percent).max(least);
        RoundTrips { samples, p50: percentile(50), p90: percentile(90) }
    }
}

impl Delayed {
    /// Returns true if the sender waited for the acknowledgment: `segment`, the next one with data, follows at once and nothing
    /// else came that it could answer. `trip` is that from the capture point to the sender and back.
    pub(super) fn was_waited_for(&self, segment: &TcpSegment<'_>, trip: Option<Nanos>) -> bool {
        let after = segment.stamp.time - self.time;
        let soon = Nanos(SOON.0.saturating_add(trip.map_or(0, |trip| trip.0)));
        segment.acknowledgment == self.sequence && after <= soon
    }
}

/// The nearest rank, as if the samples of a bucket were spread over it evenly.
fn percentile(buckets: &[u32; BUCKETS], samples: u64, percent: u64) -> Nanos {
    let rank = (samples * percent).div_ceil(100);
    let mut before = 0;
    for (index, count) in buckets.iter().enumerate() {
        let count = u64::from(*count);
        if before + count >= rank && count > 0 {
            let end = FIRST_BUCKET_NS << index;
            let start = if index == 0 { 0 } else { end / 2 };
            let part = (end - start) as u128 * u128::from(2 * (rank - before) - 1) / u128::from(2 * count);
            return Nanos((start + part as u64) as i64);
        }
        before += count;
    }
    Nanos(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_sample_counts_and_retransmissions_do_not() {
        let mut round_trip = RoundTrip::default();
        round_trip.sent(10, Timestamp(0));
        assert!(round_trip.acknowledged(9, 9, Timestamp(5)).is_none());
        assert_eq!(round_trip.smallest(), None);
        assert!(round_trip.acknowledged(10, 1, Timestamp(700)).is_some());
        round_trip.sent(20, Timestamp(1000));
        round_trip.retransmitted();
        assert!(round_trip.acknowledged(20, 10, Timestamp(1001)).is_none());
        assert_eq!(round_trip.smallest(), Some(Nanos(700)));
    }

    #[test]
    fn percentiles_lie_in_the_buckets_of_their_ranks() {
        // 16 µs, nine times; then 300 ms, which lies between 2^13 × 32 µs = 262.144 ms and twice as much.
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.distribution(), RoundTrips::default());
        (0..9).for_each(|_| round_trip.record(Nanos(16_000)));
        (0..9).for_each(|_| round_trip.record(Nanos(300_000_000)));
        let RoundTrips { samples, p50, p90 } = round_trip.distribution();
        // The 9th of 9 in 0..32 µs: 17/18 of 32 µs. The 17th sample is the 8th of 9: 15/18 of the bucket.
        assert_eq!((samples, p50), (18, Nanos(30_222)));
        assert_eq!(p90, Nanos(262_144_000 + 262_144_000 * 15 / 18));
    }

    #[test]
    fn what_is_longer_than_all_buckets_is_in_the_last_one() {
        let mut round_trip = RoundTrip::default();
        [-5, 31_999, 32_000, i64::MAX].iter().for_each(|trip| round_trip.record(Nanos(*trip)));
        let buckets = round_trip.details.expect("there are samples").buckets;
        assert_eq!((buckets[0], buckets[1], buckets[23]), (2, 1, 1));
    }
}

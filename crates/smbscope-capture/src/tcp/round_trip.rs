//! Round trips between the capture point and the receiver of a direction's data.

use smbscope_model::{Nanos, Timestamp};

/// The smallest time from a segment to its acknowledgment. One sample is taken at a time, and a sample whose
/// bytes were retransmitted is dropped (Karn's rule, RFC 6298 section 3).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrip {
    pending: Option<(u64, Timestamp)>,
    smallest: Option<Nanos>,
}

impl RoundTrip {
    /// A segment that ends at `end` went out.
    pub(super) fn sent(&mut self, end: u64, time: Timestamp) {
        self.pending.get_or_insert((end, time));
    }

    /// Everything before `position` was acknowledged.
    pub(super) fn acknowledged(&mut self, position: u64, time: Timestamp) {
        let Some((end, sent)) = self.pending else { return };
        if position < end {
            return;
        }
        self.pending = None;
        let sample = time - sent;
        if sample.0 >= 0 && self.smallest.is_none_or(|smallest| sample < smallest) {
            self.smallest = Some(sample);
        }
    }

    /// The bytes in flight were sent again: the sample means nothing.
    pub(super) fn retransmitted(&mut self) {
        self.pending = None;
    }

    /// The smallest sample so far.
    pub(super) fn smallest(&self) -> Option<Nanos> {
        self.smallest
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
}

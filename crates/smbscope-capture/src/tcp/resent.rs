//! Segments of one direction that were sent again: which of them were needed, and how long their loss held up the stream.
//!
//! A D-SACK (RFC 2883) arrives a round trip after the copy that it calls needless, so the newest retransmissions are kept
//! until they are older than that. Only a direction with retransmissions has any of this.

use smbscope_model::{Nanos, Timestamp};
use std::collections::VecDeque;

/// Retransmissions that a D-SACK can still call needless.
const MAX_RESENT: usize = 64;
/// Delays that a later one can still overlap.
const MAX_DELAYS: usize = 64;

/// A segment that was sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResentSegment {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Since when the stream waited for it, as far as that is known.
    pub(super) since: Option<Timestamp>,
    /// This copy.
    pub(super) time: Timestamp,
    /// The capture holds no other copy.
    pub(super) seen_once: bool,
    pub(super) needless: bool,
    /// Up to which position D-SACKs have reported it: a large segment is reported in pieces.
    pub(super) reported_to: u64,
}

/// The retransmissions of one direction.
#[derive(Debug, Default)]
pub(super) struct Resent {
    recent: VecDeque<ResentSegment>,
    /// Times in which a loss held up the stream: apart from each other and in order.
    delays: VecDeque<(Timestamp, Timestamp)>,
    /// Length of the delays that are no longer listed.
    delayed: Nanos,
}

impl Resent {
    /// Approximate memory in bytes.
    pub(super) fn footprint(&self) -> usize {
        size_of::<Resent>()
            + self.recent.capacity() * size_of::<ResentSegment>()
            + self.delays.capacity() * size_of::<(Timestamp, Timestamp)>()
    }

    /// Adds a retransmission.
    pub(super) fn push(&mut self, segment: ResentSegment) {
        if self.recent.len() == MAX_RESENT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.add_delay(&oldest);
        }
        self.recent.push_back(segment);
    }

    /// A D-SACK reports these bytes: the newest retransmission of them that none reported before was needless. Returns it
    /// if that was not known.
    pub(super) fn reported_twice(&mut self, start: u64, end: u64) -> Option<ResentSegment> {
        let is_reported =
            |known: &&mut ResentSegment| known.reported_to <= start && known.start < end && start < known.end;
        let known = self.recent.iter_mut().rev().find(is_reported)?;
        known.reported_to = end;
        let was_known = std::mem::replace(&mut known.needless, true);
        (!was_known).then_some(*known)
    }

    /// Time in which losses held up the stream.
    pub(super) fn delay(mut self) -> Nanos {
        while let Some(oldest) = self.recent.pop_front() {
            self.add_delay(&oldest);
        }
        self.delays.iter().fold(self.delayed, |sum, (from, to)| Nanos(sum.0.saturating_add((*to - *from).0)))
    }

    fn add_delay(&mut self, segment: &ResentSegment) {
        let Some(mut from) = segment.since.filter(|since| !segment.needless && *since < segment.time) else { return };
        let mut to = segment.time;
        let first = self.delays.partition_point(|(_, end)| *end < from);
        let behind = self.delays.partition_point(|(start, _)| *start <= to);
        for (start, end) in self.delays.drain(first..behind.max(first)) {
            (from, to) = (from.min(start), to.max(end));
        }
        self.delays.insert(first, (from, to));
        if self.delays.len() > MAX_DELAYS
            && let Some((from, to)) = self.delays.pop_front()
        {
            self.delayed = Nanos(self.delayed.0.saturating_add((to - from).0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes 0 to 10, waited for from one time to another.
    fn waited(from: i64, to: i64) -> ResentSegment {
        let (since, time) = (Some(Timestamp(from)), Timestamp(to));
        ResentSegment { start: 0, end: 10, since, time, seen_once: false, needless: false, reported_to: 0 }
    }

    fn delay(segments: &[ResentSegment]) -> i64 {
        let mut resent = Resent::default();
        segments.iter().for_each(|segment| resent.push(*segment));
        resent.delay().0
    }

    #[test]
    fn overlapping_delays_count_once() {
        assert_eq!(delay(&[waited(0, 10), waited(20, 30)]), 20);
        assert_eq!(delay(&[waited(0, 10), waited(5, 30)]), 30);
        assert_eq!(delay(&[waited(5, 10), waited(12, 14), waited(0, 30)]), 30);
        assert_eq!(delay(&[waited(0, 10), waited(10, 20), waited(40, 50), waited(15, 30)]), 40);
        assert_eq!(delay(&[waited(10, 10), waited(10, 5)]), 0);
    }

    #[test]
    fn delays_that_are_no_longer_listed_count() {
        let many: Vec<ResentSegment> = (0..1_000).map(|n| waited(n * 10, n * 10 + 3)).collect();
        assert_eq!(delay(&many), 3_000);
    }

    #[test]
    fn a_needless_copy_delays_nothing_and_is_reported_once() {
        let mut resent = Resent::default();
        resent.push(waited(0, 10));
        resent.push(waited(0, 30));
        let mut reported = |start, end| resent.reported_twice(start, end).map(|known| known.time.0);
        assert_eq!(reported(10, 20), None, "other bytes");
        assert_eq!([reported(0, 5), reported(5, 10)], [Some(30), None], "one copy in two pieces");
        assert_eq!([reported(0, 10), reported(0, 10)], [Some(10), None]);
        assert_eq!(resent.delay(), Nanos(0));
    }

    #[test]
    fn a_report_of_a_copy_that_is_known_as_needless_spares_the_one_before() {
        let mut resent = Resent::default();
        resent.push(waited(0, 10));
        resent.push(ResentSegment { needless: true, ..waited(0, 30) });
        assert!(resent.reported_twice(0, 10).is_none());
        assert_eq!(resent.delay(), Nanos(10));
    }
}

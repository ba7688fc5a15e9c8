//! Retransmissions of one direction: how many were needed, and how long their losses stalled the stream.
//!
//! A D-SACK (RFC 2883) arrives one round trip after the copy that it reports as unneeded, so the latest retransmissions
//! are remembered. This state exists only for directions with retransmissions.

use smbscope_model::{Nanos, Timestamp};
use std::collections::VecDeque;

/// Number of retransmissions that a D-SACK can still refer to.
const MAX_RESENT: usize = 64;
/// Number of stalls that a later one can still overlap.
const MAX_DELAYS: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct ResentSegment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) since: Option<Timestamp>,
    pub(super) time: Timestamp,
    /// The capture contains no other copy.
    pub(super) seen_once: bool,
    pub(super) needless: bool,
    /// Position up to which D-SACKs have reported it: a large segment is reported in pieces.
    pub(super) reported_to: u64,
}

#[derive(Debug, Default)]
pub(super) struct Resent {
    recent: VecDeque<ResentSegment>,
    /// Stall periods, disjoint and sorted.
    delays: VecDeque<(Timestamp, Timestamp)>,
    /// Total length of stalls that have been dropped from `delays`.
    delayed: Nanos,
}

impl Resent {
    pub(super) fn footprint(&self) -> usize {
        size_of::<Resent>()
            + self.recent.capacity() * size_of::<ResentSegment>()
            + self.delays.capacity() * size_of::<(Timestamp, Timestamp)>()
    }

    pub(super) fn push(&mut self, segment: ResentSegment) {
        if self.recent.len() == MAX_RESENT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.add_delay(&oldest);
        }
        self.recent.push_back(segment);
    }

    /// Handles a D-SACK for these bytes: marks the newest unreported retransmission of them as unneeded. Returns it if
    /// that is news.
    pub(super) fn reported_twice(&mut self, start: u64, end: u64) -> Option<ResentSegment> {
        let is_reported =
            |known: &&mut ResentSegment| known.reported_to <= start && known.start < end && start < known.end;
        let known = self.recent.iter_mut().rev().find(is_reported)?;
        known.reported_to = end;
        let was_known = std::mem::replace(&mut known.needless, true);
        (!was_known).then_some(*known)
    }

    /// Returns the total time during which losses stalled the stream.
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

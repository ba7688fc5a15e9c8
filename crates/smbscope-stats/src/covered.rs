//! Length of a union of overlapping time intervals.

use smbscope_model::{Nanos, Timestamp};

/// Waits kept apart per fact; the nearest two are joined.
pub const STRETCHES_MAX: usize = 3;

/// Length of a union of intervals, given in any order, in bounded memory. Exact unless one begins or ends in a joined
/// stretch, which then counts in proportion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covered {
    /// In time order, disjoint. Only the first `count` are valid.
    stretches: [CoveredInterval; STRETCHES_MAX],
    count: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CoveredInterval {
    start: Timestamp,
    end: Timestamp,
    /// Covered time in the stretch: all of it unless the stretch was joined from several.
    covered: i64,
}

impl Covered {
    #[inline]
    pub fn add(&mut self, start: Timestamp, end: Timestamp) -> Nanos {
        let end = end.max(start);
        let new = CoveredInterval { start, end, covered: (end - start).0 };
        match self.known().last() {
            Some(last) if start <= last.end => self.insert(new),
            _ => {
                self.put(usize::from(self.count), new);
                Nanos(new.covered)
            }
        }
    }

    fn known(&self) -> &[CoveredInterval] {
        &self.stretches[..usize::from(self.count)]
    }

    fn insert(&mut self, new: CoveredInterval) -> Nanos {
        let from = self.known().partition_point(|stretch| stretch.end < new.start);
        let touched = self.known()[from..].iter().take_while(|stretch| stretch.start <= new.end).count();
        let (mut whole, mut known) = (CoveredInterval { covered: 0, ..new }, 0);
        for stretch in &self.known()[from..from + touched] {
            known = stretch.covered_between(new.start, new.end).saturating_add(known);
            whole = whole.with(stretch);
        }
        // The proportion is an estimate; covered time must not exceed the stretch.
        let free = (whole.end - whole.start).0 - whole.covered;
        let more = new.covered.saturating_sub(known).clamp(0, free.max(0));
        whole.covered += more;
        self.stretches.copy_within(from + touched..usize::from(self.count), from);
        self.count -= touched as u8;
        self.put(from, whole);
        Nanos(more)
    }

    #[inline]
    fn put(&mut self, at: usize, new: CoveredInterval) {
        let count = usize::from(self.count);
        if count < STRETCHES_MAX {
            self.stretches.copy_within(at..count, at + 1);
            self.stretches[at] = new;
            self.count += 1;
            return;
        }
        let mut all = [new; STRETCHES_MAX + 1];
        all[..at].copy_from_slice(&self.stretches[..at]);
        all[at + 1..].copy_from_slice(&self.stretches[at..]);
        let gap = |at: &usize| all[at + 1].start - all[*at].end;
        let nearest = (0..STRETCHES_MAX).min_by_key(gap).unwrap_or(0);
        all[nearest] = all[nearest].with(&all[nearest + 1]);
        all.copy_within(nearest + 2.., nearest + 1);
        self.stretches.copy_from_slice(&all[..STRETCHES_MAX]);
    }
}

impl CoveredInterval {
    fn with(&self, other: &CoveredInterval) -> CoveredInterval {
        CoveredInterval {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            covered: self.covered.saturating_add(other.covered),
        }
    }

    fn covered_between(&self, start: Timestamp, end: Timestamp) -> i64 {
        let length = (self.end - self.start).0;
        let shared = (self.end.min(end) - self.start.max(start)).0;
        match length {
            0 => 0,
            length => (i128::from(self.covered) * i128::from(shared) / i128::from(length)) as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn sum(intervals: &[(i64, i64)]) -> i64 {
        let mut covered = Covered::default();
        intervals
            .iter()
            .map(|(start, end)| covered.add(Timestamp(*start), Timestamp(*end)).0)
            .fold(0, i64::saturating_add)
    }

    #[test]
    fn a_long_interval_covers_the_gaps_between_short_ones() {
        assert_eq!(sum(&[(1, 2), (3, 4), (5, 6), (0, 10)]), 10);
        // 0–10 and 5–12 cover 12, 20–30 another 10.
        assert_eq!(sum(&[(0, 10), (5, 12), (20, 30)]), 22);
        assert_eq!(sum(&[(5, 5), (7, 5)]), 0);
        // An earlier interval that arrives late does not cover the gap.
        assert_eq!(sum(&[(100, 110), (5, 6)]), 11);
    }

    #[test]
    fn it_does_so_for_thousands_of_short_ones() {
        let mut intervals: Vec<(i64, i64)> = (0..5_000).map(|n| (n * 10 + 5, n * 10 + 6)).collect();
        intervals.push((0, 50_000));
        assert_eq!(sum(&intervals), 50_000);
    }

    #[test]
    fn times_from_end_to_end_of_a_clock_do_not_overflow() {
        let (least, most) = (i64::MIN, i64::MAX);
        assert!(sum(&[(least, -1), (1, most), (least, least), (0, 0), (least, most)]) >= 0);
    }

    #[test]
    fn within_joined_stretches_the_proportion_counts() {
        // A tenth of 5–49,996 is covered. The new interval spans half of that, so about nine tenths of 25,000 are new.
        let mut intervals: Vec<(i64, i64)> = (0..5_000).map(|n| (n * 10 + 5, n * 10 + 6)).collect();
        intervals.push((25_000, 50_000));
        assert!((27_490..=27_510).contains(&sum(&intervals)), "{}", sum(&intervals));
    }

    proptest! {
        #[test]
        fn each_moment_counts_once(intervals in prop::collection::vec((0i64..60, 0i64..30), 0..12)) {
            let intervals: Vec<(i64, i64)> = intervals.iter().map(|(start, long)| (*start, start + long)).collect();
            let all: BTreeSet<i64> = intervals.iter().flat_map(|(start, end)| *start..*end).collect();
            let whole: BTreeSet<i64> = intervals.iter().flat_map(|(start, end)| [*start, *end]).collect();
            let counted = sum(&intervals);
            if intervals.len() <= STRETCHES_MAX {
                prop_assert_eq!(counted, all.len() as i64);
            }
            let span = whole.last().zip(whole.first()).map_or(0, |(last, first)| last - first);
            prop_assert!(counted <= span);
        }
    }
}

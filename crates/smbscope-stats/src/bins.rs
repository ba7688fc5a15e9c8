//! Intervals of time in bounded memory: bins of equal width, which doubles when too many bins are occupied, and the
//! length of a union of overlapping intervals.
//!
//! Bins are aligned to multiples of their width from an origin, such as the Unix epoch, and empty bins take no space.
//! The width depends only on the recorded times, so the merge of any partition equals the whole.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use std::collections::HashMap;

pub trait BinValue: Default + Clone {
    fn add(&mut self, other: &Self);
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    into = "Saved<B>",
    try_from = "Saved<B>",
    bound(serialize = "B: BinValue + Serialize", deserialize = "B: BinValue + Deserialize<'de>")
)]
pub struct BinTable<B> {
    origin: i64,
    unit: i64,
    /// The width is 2^doublings units.
    doublings: u32,
    capacity: usize,
    slots: HashMap<i64, usize, ahash::RandomState>,
    bins: Vec<(i64, B)>,
    /// Last bin used, and its bounds (`to` is exclusive). Consecutive exchanges usually share one; division is slow.
    last: usize,
    from: i64,
    to: i64,
}

#[derive(Serialize, Deserialize)]
struct Saved<B> {
    origin: i64,
    unit: i64,
    doublings: u32,
    capacity: usize,
    bins: Vec<(i64, B)>,
}

impl<B: BinValue> From<BinTable<B>> for Saved<B> {
    fn from(table: BinTable<B>) -> Saved<B> {
        let BinTable { origin, unit, doublings, capacity, mut bins, .. } = table;
        bins.sort_by_key(|(index, _)| *index);
        Saved { origin, unit, doublings, capacity, bins }
    }
}

impl<B: BinValue> TryFrom<Saved<B>> for BinTable<B> {
    type Error = &'static str;

    fn try_from(saved: Saved<B>) -> Result<BinTable<B>, &'static str> {
        let Saved { origin, unit, doublings, capacity, bins } = saved;
        if unit <= 0 || capacity == 0 || unit.leading_zeros() <= doublings {
            return Err("intervals of no width");
        }
        let mut table: BinTable<B> = BinTable::with_origin(Timestamp(origin), Nanos(unit), capacity);
        table.doublings = doublings;
        for (index, bin) in bins {
            table.at(Timestamp(table.start(index))).add(&bin);
        }
        Ok(table)
    }
}

impl<B: BinValue> BinTable<B> {
    pub fn new(unit: Nanos, capacity: usize) -> BinTable<B> {
        BinTable::with_origin(Timestamp(0), unit, capacity)
    }

    pub fn with_origin(origin: Timestamp, unit: Nanos, capacity: usize) -> BinTable<B> {
        assert!(unit.0 > 0 && capacity > 0, "bins have a width, and there is room for one");
        let (origin, unit) = (origin.0, unit.0);
        let (slots, bins) = (HashMap::default(), Vec::new());
        BinTable { origin, unit, doublings: 0, capacity, slots, bins, last: 0, from: 0, to: 0 }
    }

    #[inline]
    pub fn at(&mut self, time: Timestamp) -> &mut B {
        if time.0 < self.from || self.to <= time.0 {
            self.last = self.slot(time.0, self.index(time.0));
            let index = self.index(time.0);
            (self.from, self.to) = (self.start(index), self.start(index.saturating_add(1)));
        }
        &mut self.bins[self.last].1
    }

    /// Splits the interval at bin boundaries and calls `add` with each bin and the length of the interval within it.
    #[inline]
    pub fn spread(&mut self, from: i64, to: i64, mut add: impl FnMut(&mut B, i64)) {
        if self.from <= from && from < to && to <= self.to {
            return add(&mut self.bins[self.last].1, to - from);
        }
        self.spread_far(from, to, add);
    }

    fn spread_far(&mut self, from: i64, to: i64, mut add: impl FnMut(&mut B, i64)) {
        // Widen first: an interval longer than the capacity can't fit, whatever else the table holds.
        let capacity = i64::try_from(self.capacity).unwrap_or(i64::MAX);
        while self.index(to).saturating_sub(self.index(from)) >= capacity {
            self.widen(self.doublings + 1);
        }
        let mut at = from;
        while at < to {
            // `at` may widen the table, so the end of the bin is known only afterwards.
            self.at(Timestamp(at));
            let end = self.start(self.index(at).saturating_add(1)).min(to).max(at + 1);
            add(&mut self.bins[self.last].1, end - at);
            at = end;
        }
    }

    pub fn merge(&mut self, other: &BinTable<B>) {
        debug_assert_eq!((self.origin, self.unit), (other.origin, other.unit));
        self.widen(other.doublings);
        for (index, bin) in &other.bins {
            let time = other.start(*index);
            self.at(Timestamp(time)).add(bin);
        }
    }

    pub fn width(&self) -> Nanos {
        Nanos(self.unit << self.doublings)
    }

    pub fn finish(&self) -> Vec<(Timestamp, B)> {
        let mut bins: Vec<(Timestamp, B)> =
            self.bins.iter().map(|(index, bin)| (Timestamp(self.start(*index)), bin.clone())).collect();
        bins.sort_by_key(|(start, _)| *start);
        bins
    }

    fn index(&self, time: i64) -> i64 {
        time.saturating_sub(self.origin).div_euclid(self.unit) >> self.doublings
    }

    fn start(&self, index: i64) -> i64 {
        index.saturating_mul(self.unit << self.doublings).saturating_add(self.origin)
    }

    fn slot(&mut self, time: i64, index: i64) -> usize {
        if let Some(slot) = self.slots.get(&index) {
            return *slot;
        }
        self.slots.insert(index, self.bins.len());
        self.bins.push((index, B::default()));
        while self.bins.len() > self.capacity {
            self.widen(self.doublings + 1);
        }
        self.slots[&self.index(time)]
    }

    fn widen(&mut self, doublings: u32) {
        if doublings <= self.doublings {
            return;
        }
        let shift = doublings - self.doublings;
        self.doublings = doublings;
        self.slots.clear();
        (self.last, self.from, self.to) = (0, 0, 0);
        for (index, bin) in std::mem::take(&mut self.bins) {
            let index = index >> shift;
            let slot = *self.slots.entry(index).or_insert_with(|| {
                self.bins.push((index, B::default()));
                self.bins.len() - 1
            });
            self.bins[slot].1.add(&bin);
        }
    }
}

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

    impl BinValue for i64 {
        fn add(&mut self, other: &i64) {
            *self += other;
        }
    }

    fn shown(table: &BinTable<i64>) -> (i64, Vec<(i64, i64)>) {
        (table.width().0, table.finish().into_iter().map(|(start, sum)| (start.0, sum)).collect())
    }

    #[test]
    fn one_bin_too_many_doubles_the_width() {
        let mut table = BinTable::new(Nanos(10), 4);
        (0..4).for_each(|n| *table.at(Timestamp(10 * n)) += 1);
        assert_eq!(shown(&table), (10, vec![(0, 1), (10, 1), (20, 1), (30, 1)]));
        *table.at(Timestamp(49)) += 1;
        assert_eq!(shown(&table), (20, vec![(0, 2), (20, 2), (40, 1)]));
    }

    #[test]
    fn bins_are_aligned_to_the_origin() {
        let mut table = BinTable::with_origin(Timestamp(7), Nanos(10), 4);
        [6, 7, 16, 17].into_iter().for_each(|time| *table.at(Timestamp(time)) += 1);
        assert_eq!(shown(&table), (10, vec![(-3, 1), (7, 2), (17, 1)]));
        [27, 37].into_iter().for_each(|time| *table.at(Timestamp(time)) += 1);
        assert_eq!(shown(&table), (20, vec![(-13, 1), (7, 3), (27, 2)]));
    }

    #[test]
    fn a_stretch_is_spread_over_the_bins_that_it_touches() {
        let mut table = BinTable::new(Nanos(10), 4);
        table.spread(-5, 27, |bin, length| *bin += length);
        assert_eq!(shown(&table), (10, vec![(-10, 5), (0, 10), (10, 10), (20, 7)]));
    }

    #[test]
    fn a_stretch_of_years_widens_the_bins_before_it_fills_them() {
        let mut table = BinTable::new(Nanos(1), 4);
        table.spread(0, 1 << 60, |bin, length| *bin += length);
        assert_eq!(shown(&table), (1 << 59, vec![(0, 1 << 59), (1 << 59, 1 << 59)]));
    }

    proptest! {
        #[test]
        fn tables_of_any_partition_merge_to_the_whole(
            stretches in prop::collection::vec((-40i64..4_000, 0i64..60, any::<bool>()), 0..80)
        ) {
            let mut whole = BinTable::new(Nanos(1), 8);
            let mut parts = [BinTable::new(Nanos(1), 8), BinTable::new(Nanos(1), 8)];
            let mut total = 0;
            for (from, length, part) in stretches {
                whole.spread(from, from + length, |bin: &mut i64, length| *bin += length);
                parts[usize::from(part)].spread(from, from + length, |bin: &mut i64, length| *bin += length);
                total += length;
            }
            let [mut left, right] = parts;
            left.merge(&right);
            prop_assert_eq!(shown(&left), shown(&whole));
            prop_assert_eq!(shown(&whole).1.iter().map(|(_, sum)| sum).sum::<i64>(), total);
        }
    }

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

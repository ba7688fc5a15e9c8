//! Time bins of equal width, which doubles when too many bins are occupied.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}

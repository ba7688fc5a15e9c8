//! A bounded table that keeps the keys with the most response time: Space-Saving (Metwally, Agrawal and El Abbadi,
//! "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005), with evictions in batches (as
//! Anderson et al., "A High-Performance Algorithm for Identifying Frequent Items in Data Streams", IMC 2017).
//!
//! The *upper bound* of a key is the sum recorded since it entered the table plus the sum that may have been recorded
//! before. When the table is full, the `kept` keys with the largest upper bounds stay. The largest upper bound of the
//! evicted keys becomes the new *floor*: no key outside the table has a larger total. Hence
//!
//! * a key whose total is above the floor is in the table;
//! * a key's total is at least the sum in its entry, and at most that plus `missed_at_most`;
//! * the floor is at most a (`kept` + 1)th of the total of all keys.
//!
//! A table with too many bytes of names evicts as if it were full, and keeps fewer than `kept` keys if these have more
//! than half of [`SLICE_NAMES_MAX`]; the last guarantee then holds for the number kept.

use super::{SliceFieldValue, SliceStatistics};
use crate::entity::{EntityTally, Keeps};
use crate::summary::{Summary, SummaryPrecision};
use smbscope_model::{Exchange, TimeKind};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Slices of `--by`; then half of them are combined. Up to here everything is exact.
pub const SLICES_MAX: usize = 20_000;

pub const SLICES_KEPT: usize = 10_000;

/// Bytes of their names.
const SLICE_NAMES_MAX: usize = 32 << 20;

#[derive(Debug, Clone)]
pub(super) struct SlicerTable {
    capacity: usize,
    kept: usize,
    index: HashMap<Box<[SliceFieldValue]>, usize, ahash::RandomState>,
    entries: Vec<TalliedSlice>,
    other: SliceTally,
    floor: i128,
    names: usize,
}

#[derive(Debug, Clone)]
struct TalliedSlice {
    key: Box<[SliceFieldValue]>,
    counts: SliceTally,
    missed_at_most: i128,
}

#[derive(Debug, Clone, Default)]
struct SliceTally {
    tally: EntityTally,
    service_time: Option<Box<Summary>>,
}

impl SlicerTable {
    pub(super) fn new(capacity: usize, kept: usize) -> SlicerTable {
        assert!(kept < capacity, "a full table evicts an entry");
        // Fixed seeds: results don't depend on them, but the speed should not vary from run to run either.
        let index = HashMap::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4));
        SlicerTable { capacity, kept, index, entries: Vec::new(), other: SliceTally::default(), floor: 0, names: 0 }
    }

    pub(super) fn record(&mut self, key: &[SliceFieldValue], exchange: &Exchange) {
        let slot = match self.index.get(key) {
            Some(slot) => *slot,
            None => self.admit(key),
        };
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.counts.record(exchange);
    }

    pub(super) fn finish(&self) -> Vec<SliceStatistics> {
        self.entries.iter().map(|entry| entry.counts.finish(entry.key.to_vec(), entry.missed_at_most)).collect()
    }

    pub(super) fn other(&self) -> Option<SliceStatistics> {
        (self.other.tally.count > 0).then(|| self.other.finish(Vec::new(), 0))
    }

    pub(super) fn floor(&self) -> i128 {
        self.floor
    }

    /// Adds a table, whose floor bounds the sum of each key it lacks (Agarwal et al., "Mergeable Summaries", 2012).
    pub(super) fn merge(&mut self, other: &SlicerTable) {
        for entry in &mut self.entries {
            if !other.index.contains_key(&entry.key) {
                entry.missed_at_most += other.floor;
            }
        }
        let mine = self.floor;
        for theirs in &other.entries {
            match self.index.get(&theirs.key).and_then(|slot| self.entries.get_mut(*slot)) {
                Some(entry) => {
                    entry.counts.merge(&theirs.counts);
                    entry.missed_at_most += theirs.missed_at_most;
                }
                None => {
                    let entry = TalliedSlice { missed_at_most: mine + theirs.missed_at_most, ..theirs.clone() };
                    self.names += name_bytes(&entry.key);
                    self.index.insert(entry.key.clone(), self.entries.len());
                    self.entries.push(entry);
                }
            }
        }
        self.other.merge(&other.other);
        self.floor += other.floor;
        if self.entries.len() > self.capacity || self.names > SLICE_NAMES_MAX {
            self.purge();
        }
    }

    fn admit(&mut self, key: &[SliceFieldValue]) -> usize {
        let names = name_bytes(key);
        if self.entries.len() == self.capacity || self.names + names > SLICE_NAMES_MAX {
            self.purge();
        }
        self.names += names;
        let slot = self.entries.len();
        self.index.insert(key.into(), slot);
        self.entries.push(TalliedSlice { key: key.into(), counts: SliceTally::default(), missed_at_most: self.floor });
        slot
    }

    /// Evicts all but the `kept` keys with the largest upper bounds; of equal keys, older ones stay.
    fn purge(&mut self) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|slot| Reverse(self.entries[*slot].upper_bound()));
        let mut stays = vec![false; order.len()];
        let mut names = 0;
        let fits = |slot: &&usize| {
            names += name_bytes(&self.entries[**slot].key);
            names <= SLICE_NAMES_MAX / 2
        };
        let kept = order.iter().take(self.kept).take_while(fits).map(|slot| stays[*slot] = true).count();
        if let Some(highest) = order.get(kept) {
            self.floor = self.floor.max(self.entries[*highest].upper_bound());
        }
        self.index.clear();
        self.names = 0;
        for (entry, stays) in std::mem::take(&mut self.entries).into_iter().zip(stays) {
            if stays {
                self.names += name_bytes(&entry.key);
                self.index.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
            } else {
                self.other.merge(&entry.counts);
            }
        }
    }
}

fn name_bytes(key: &[SliceFieldValue]) -> usize {
    key.iter().map(SliceFieldValue::name_bytes).sum()
}

impl TalliedSlice {
    fn upper_bound(&self) -> i128 {
        self.missed_at_most + self.counts.tally.response_time_sum()
    }
}

impl SliceTally {
    fn record(&mut self, exchange: &Exchange) {
        self.tally.record(exchange, Keeps::Whole(SummaryPrecision::ENTITY));
        let is_timed = exchange.is_complete() && exchange.group.in_headline();
        if let Some(time) = exchange.time(TimeKind::ServiceTime).filter(|_| is_timed) {
            self.service_time.get_or_insert_with(|| Box::new(Summary::new(SummaryPrecision::ENTITY))).record(time);
        }
    }

    fn merge(&mut self, other: &SliceTally) {
        self.tally.merge(&other.tally);
        match (&mut self.service_time, &other.service_time) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    fn finish(&self, key: Vec<SliceFieldValue>, missed_at_most_ns: i128) -> SliceStatistics {
        let service_time = self.service_time.as_ref().map(|summary| summary.figures()).unwrap_or_default();
        SliceStatistics { key, figures: self.tally.finish(), service_time, missed_at_most_ns }
    }
}

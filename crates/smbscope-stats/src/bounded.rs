//! A table with a bound that keeps the same keys whatever the order in which they arrive.
//!
//! When more distinct keys turn up than fit, the table keeps those with the smallest hash (a "bottom-k" sketch; Cohen
//! and Kaplan, "Summarizing Data using Bottom-k Sketches", PODC 2007). A key that was refused or evicted once never
//! comes back, since the largest kept hash only falls; so every kept entry is complete, and tables of any partition
//! merge to the table of the whole.

use std::collections::{BinaryHeap, HashMap};
use std::hash::{Hash, Hasher};

/// At most `capacity` entries by key.
#[derive(Debug, Clone)]
pub(crate) struct Bounded<K, V> {
    capacity: usize,
    index: HashMap<K, usize, ahash::RandomState>,
    values: Vec<V>,
    /// The kept keys, the one to evict first on top.
    order: BinaryHeap<(u64, K)>,
}

impl<K: Hash + Ord + Clone, V: Default> Bounded<K, V> {
    pub(crate) fn new(capacity: usize) -> Bounded<K, V> {
        assert!(capacity > 0, "a table without room keeps nothing");
        // Fixed seeds: the table never iterates in hash order, but runs should not differ even in speed.
        let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
        Bounded { capacity, index: HashMap::with_hasher(hasher), values: Vec::new(), order: BinaryHeap::new() }
    }

    /// The entry of a key, made if new; none when the key does not belong to those kept. An entry that has to make
    /// room is handed to `evicted`.
    pub(crate) fn entry(&mut self, key: &K, evicted: impl FnOnce(K, V)) -> Option<&mut V> {
        if let Some(slot) = self.index.get(key) {
            return self.values.get_mut(*slot);
        }
        let ranked = (stable_hash(key), key.clone());
        let slot = if self.values.len() < self.capacity {
            self.values.push(V::default());
            self.values.len() - 1
        } else {
            let mut worst = self.order.peek_mut()?;
            if *worst < ranked {
                return None;
            }
            let (_, old) = std::mem::replace(&mut *worst, ranked);
            drop(worst);
            let slot = self.index.remove(&old)?;
            evicted(old, std::mem::take(&mut self.values[slot]));
            self.index.insert(key.clone(), slot);
            return self.values.get_mut(slot);
        };
        self.order.push(ranked);
        self.index.insert(key.clone(), slot);
        self.values.get_mut(slot)
    }

    /// Every entry, in the order of its key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut entries: Vec<_> = self.index.iter().map(|(key, slot)| (key, &self.values[*slot])).collect();
        entries.sort_by(|a, b| a.0.cmp(b.0));
        entries.into_iter()
    }
}

/// FNV-1a with a final mix: the same in every process, unlike the hash of a map.
fn stable_hash(key: &impl Hash) -> u64 {
    struct Fnv(u64);
    impl Hasher for Fnv {
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        fn finish(&self) -> u64 {
            let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            mixed ^ (mixed >> 33)
        }
    }
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts keys in a table of four; returns the table and the number of records that went elsewhere.
    fn count(keys: &[u32]) -> (Vec<(u32, u64)>, u64) {
        let mut table: Bounded<u32, u64> = Bounded::new(4);
        let mut other = 0;
        for key in keys {
            let mut evicted = 0;
            match table.entry(key, |_, count| evicted = count) {
                Some(count) => *count += 1,
                None => other += 1,
            }
            other += evicted;
        }
        (table.iter().map(|(key, count)| (*key, *count)).collect(), other)
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(mut keys in prop::collection::vec(0u32..12, 0..60)) {
            let forward = count(&keys);
            keys.reverse();
            prop_assert_eq!(&forward, &count(&keys));
            keys.sort_unstable();
            prop_assert_eq!(&forward, &count(&keys));
        }

        #[test]
        fn nothing_is_lost_and_the_bound_holds(keys in prop::collection::vec(0u32..12, 0..60)) {
            let (kept, other) = count(&keys);
            prop_assert!(kept.len() <= 4);
            prop_assert_eq!(kept.iter().map(|(_, n)| n).sum::<u64>() + other, keys.len() as u64);
            // What is kept is complete.
            for (key, n) in kept {
                prop_assert_eq!(n, keys.iter().filter(|k| **k == key).count() as u64);
            }
        }
    }
}

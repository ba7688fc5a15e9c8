//! A table with a bound that keeps the same keys whatever the order in which they arrive.
//!
//! When more distinct keys turn up than fit, the table keeps those with the smallest hash (a "bottom-k" sketch; Cohen
//! and Kaplan, "Summarizing Data using Bottom-k Sketches", PODC 2007). A key that was refused or evicted once never
//! comes back, since the largest kept hash only falls; so every kept entry is complete, and tables of any partition
//! merge to the table of the whole. Keys may have a weight, such as the bytes of a name: then as many are kept, in the
//! order of their hashes, as the weight allows.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BinaryHeap, HashMap};
use std::hash::{Hash, Hasher};

/// At most `capacity` entries by key.
#[derive(Debug, Clone)]
pub struct BottomKTable<K, V> {
    capacity: usize,
    index: HashMap<K, usize, ahash::RandomState>,
    values: Vec<V>,
    /// Places of values that were evicted.
    free: Vec<usize>,
    /// The kept keys, the one to evict first on top.
    order: BinaryHeap<(u64, K)>,
    /// Keys that were asked for last, and their places: who asks often asks for the same. Those that do not belong to the
    /// kept ones have none, and never will.
    recent: Vec<(K, Option<usize>)>,
    recent_max: usize,
    weigh: fn(&K) -> usize,
    weight: usize,
    weight_max: usize,
    /// The least hash that weight has kept out: nothing from there on comes in again.
    barred: Option<(u64, K)>,
}

impl<K: Hash + Ord + Clone, V: Default> BottomKTable<K, V> {
    /// A table for so many keys.
    pub fn new(capacity: usize) -> BottomKTable<K, V> {
        BottomKTable::weighing(capacity, |_| 0, 0)
    }

    /// The same, and the keys together weigh no more than `weight_max`.
    pub fn weighing(capacity: usize, weigh: fn(&K) -> usize, weight_max: usize) -> BottomKTable<K, V> {
        assert!(capacity > 0, "a table without room keeps nothing");
        // Fixed seeds: the table never iterates in hash order, but runs should not differ even in speed.
        let index = HashMap::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4));
        let (values, free, order) = (Vec::new(), Vec::new(), BinaryHeap::new());
        let (recent, recent_max) = (Vec::new(), 1);
        BottomKTable {
            capacity,
            index,
            values,
            free,
            order,
            recent,
            recent_max,
            weigh,
            weight: 0,
            weight_max,
            barred: None,
        }
    }

    /// The same, and so many keys are found without their hash.
    pub fn remembering(self, recent_max: usize) -> BottomKTable<K, V> {
        BottomKTable { recent_max, ..self }
    }

    /// The same as [`Bounded::entry`] for a key that is made only where it `is` none of the last.
    #[inline]
    pub fn recent_entry(
        &mut self,
        is: impl Fn(&K) -> bool,
        key: impl FnOnce() -> K,
        mut evicted: impl FnMut(K, V),
    ) -> Option<&mut V> {
        let slot = match self.recent.iter().find(|(key, _)| is(key)) {
            Some((_, slot)) => *slot,
            None => self.place(&key(), &mut evicted),
        };
        self.values.get_mut(slot?)
    }

    /// The entry of a key, made if new; none when the key does not belong to those kept. Entries that have to make room
    /// are handed to `evicted`.
    pub fn entry(&mut self, key: &K, mut evicted: impl FnMut(K, V)) -> Option<&mut V> {
        let slot = self.place(key, &mut evicted)?;
        self.values.get_mut(slot)
    }

    /// The place of a key, which is now the last one that was asked for.
    fn place(&mut self, key: &K, evicted: &mut impl FnMut(K, V)) -> Option<usize> {
        let known = self.index.get(key).copied();
        let slot = known.or_else(|| self.admit(stable_hash(key), key, evicted));
        if self.recent.len() == self.recent_max {
            self.recent.remove(0);
        }
        self.recent.push((key.clone(), slot));
        slot
    }

    /// The place of a new key with this hash, unless it does not belong to those kept.
    fn admit(&mut self, hash: u64, key: &K, evicted: &mut impl FnMut(K, V)) -> Option<usize> {
        let ranked = (hash, key.clone());
        let full = self.index.len() == self.capacity && self.order.peek().is_none_or(|worst| *worst < ranked);
        if full || self.barred.as_ref().is_some_and(|barred| *barred <= ranked) {
            return None;
        }
        self.weight += (self.weigh)(key);
        self.order.push(ranked);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.values.push(V::default());
            self.values.len() - 1
        });
        self.index.insert(key.clone(), slot);
        while self.index.len() > self.capacity || self.weight > self.weight_max {
            let too_heavy = self.weight > self.weight_max;
            let (worst, value) = self.evict()?;
            evicted(worst.1.clone(), value);
            if too_heavy {
                self.barred = Some(worst);
            }
        }
        self.index.get(key).copied()
    }

    /// Adds the entries of another table of the same bounds: `add` joins the values of a key that both have. What one of
    /// them evicted has no place in the merged table either; entries without a place are handed to `evicted`.
    pub fn merge(&mut self, mut other: Self, mut add: impl FnMut(&mut V, &V), mut evicted: impl FnMut(K, V)) {
        if let Some(barred) = &other.barred {
            self.bar(barred, &mut evicted);
        }
        // Those with the least hashes come first, so that what is evicted was here before, and nothing comes and goes.
        for (hash, key) in std::mem::take(&mut other.order).into_sorted_vec() {
            let Some(theirs) = other.index.get(&key).map(|slot| std::mem::take(&mut other.values[*slot])) else {
                continue;
            };
            if let Some(slot) = self.index.get(&key) {
                add(&mut self.values[*slot], &theirs);
                continue;
            }
            match self.admit(hash, &key, &mut evicted) {
                Some(mine) => self.values[mine] = theirs,
                None => evicted(key, theirs),
            }
        }
    }

    /// Lets nothing in from this hash on, and evicts what is there.
    fn bar(&mut self, barred: &(u64, K), evicted: &mut impl FnMut(K, V)) {
        if self.barred.as_ref().is_none_or(|mine| barred < mine) {
            self.barred = Some(barred.clone());
        }
        while self.order.peek().is_some_and(|worst| worst >= barred) {
            let Some(((_, key), value)) = self.evict() else { return };
            evicted(key, value);
        }
    }

    /// Takes out the entry with the largest hash.
    fn evict(&mut self) -> Option<((u64, K), V)> {
        self.recent.clear();
        let worst = self.order.pop()?;
        let slot = self.index.remove(&worst.1)?;
        self.weight -= (self.weigh)(&worst.1);
        self.free.push(slot);
        Some((worst, std::mem::take(&mut self.values[slot])))
    }

    /// This empty table with the entries of one that was serialized, which had the same bounds.
    pub fn filled<'de, D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Self, D::Error>
    where
        K: Deserialize<'de>,
        V: Deserialize<'de>,
    {
        let (entries, barred) = <(Vec<(K, V)>, Option<(u64, K)>)>::deserialize(deserializer)?;
        for (key, value) in entries {
            if let Some(place) = self.entry(&key, |_, _| {}) {
                *place = value;
            }
        }
        self.barred = barred;
        Ok(self)
    }

    /// Every entry, in the order of its key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut entries: Vec<_> = self.index.iter().map(|(key, slot)| (key, &self.values[*slot])).collect();
        entries.sort_by(|a, b| a.0.cmp(b.0));
        entries.into_iter()
    }

    /// Every entry, in the order of its key.
    pub fn into_entries(mut self) -> Vec<(K, V)> {
        let slots = self.index.into_iter();
        let mut entries: Vec<(K, V)> = slots.map(|(key, slot)| (key, std::mem::take(&mut self.values[slot]))).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

/// The entries, without the bounds: [`Bounded::filled`] reads them.
impl<K: Hash + Ord + Clone + Serialize, V: Default + Serialize> Serialize for BottomKTable<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<(&K, &V)> = self.iter().collect();
        (entries, &self.barred).serialize(serializer)
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

    /// Counts keys in this table; returns what it holds and the number of records that went elsewhere.
    fn count_in(mut table: BottomKTable<u32, u64>, keys: &[u32]) -> (Vec<(u32, u64)>, u64) {
        let mut other = 0;
        for key in keys {
            let mut evicted = 0;
            match table.recent_entry(|known| known == key, || *key, |_, count| evicted += count) {
                Some(count) => *count += 1,
                None => other += 1,
            }
            other += evicted;
        }
        (table.iter().map(|(key, count)| (*key, *count)).collect(), other)
    }

    fn count(keys: &[u32]) -> (Vec<(u32, u64)>, u64) {
        count_in(BottomKTable::new(4).remembering(2), keys)
    }

    /// Four keys, which together weigh no more than 20; each weighs what it is.
    fn count_weighing(keys: &[u32]) -> (Vec<(u32, u64)>, u64) {
        count_in(BottomKTable::weighing(4, |key| *key as usize, 20), keys)
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
        fn keys_that_weigh_are_kept_in_any_order_of_arrival(mut keys in prop::collection::vec(0u32..12, 0..60)) {
            let forward = count_weighing(&keys);
            prop_assert!(forward.0.iter().map(|(key, _)| key).sum::<u32>() <= 20);
            prop_assert_eq!(forward.0.iter().map(|(_, n)| n).sum::<u64>() + forward.1, keys.len() as u64);
            for (key, n) in &forward.0 {
                prop_assert_eq!(*n, keys.iter().filter(|k| *k == key).count() as u64);
            }
            keys.reverse();
            prop_assert_eq!(&forward, &count_weighing(&keys));
            keys.sort_unstable();
            prop_assert_eq!(&forward, &count_weighing(&keys));
        }

        #[test]
        fn tables_of_any_partition_merge_to_the_whole_in_any_order(
            keys in prop::collection::vec((0u32..12, 0usize..4), 0..60), backwards in any::<bool>(), weigh in any::<bool>()
        ) {
            let table = || if weigh { BottomKTable::weighing(4, |key: &u32| *key as usize, 20) } else { BottomKTable::new(4) };
            let all: Vec<u32> = keys.iter().map(|(key, _)| *key).collect();
            let mut parts: [(BottomKTable<u32, u64>, u64); 4] = std::array::from_fn(|_| (table(), 0));
            for (key, part) in &keys {
                let (part, other) = &mut parts[*part];
                let mut evicted = 0;
                match part.entry(key, |_, count| evicted += count) {
                    Some(count) => *count += 1,
                    None => *other += 1,
                }
                *other += evicted;
            }
            if backwards {
                parts.reverse();
            }
            let [a, b, c, d] = parts;
            let merged = |(mut mine, mut other): (BottomKTable<u32, u64>, u64), (theirs, rest): (BottomKTable<u32, u64>, u64)| {
                mine.merge(theirs, |mine, theirs| *mine += theirs, |_, evicted| other += evicted);
                (mine, other + rest)
            };
            let (whole, other) = merged(merged(a, b), merged(c, d));
            let entries: Vec<(u32, u64)> = whole.iter().map(|(key, count)| (*key, *count)).collect();
            prop_assert_eq!((entries, other), count_in(table(), &all));
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

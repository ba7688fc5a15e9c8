//! Bounded containers: a map that evicts its oldest entry, and a list that keeps the smallest keys.

use ahash::RandomState;
use serde::{Deserialize, Serialize};
use smbscope_model::{ClockStep, EncapsulatedTraffic, Endpoints, ForeignReply, PacketRef, SeenTwice, Timestamp};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

pub(crate) const ENTRY_BYTES: usize = 128;

pub(crate) trait HeapBytes {
    fn heap_bytes(&self) -> usize;
}

#[derive(Debug, Clone)]
pub(crate) struct FifoMap<K, V> {
    entries: HashMap<K, FifoMapEntry<V>, RandomState>,
    /// Keys and insertion numbers, oldest first. Keys of removed entries are purged when they outnumber the others.
    order: VecDeque<(u64, K)>,
    count: u64,
    limit: usize,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct FifoMapEntry<V> {
    number: u64,
    value: V,
}

impl<K: Hash + Eq + Copy, V: HeapBytes> FifoMap<K, V> {
    pub(crate) fn new(limit: usize) -> FifoMap<K, V> {
        FifoMap { entries: HashMap::default(), order: VecDeque::new(), count: 0, limit, bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    pub(crate) fn resized(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
    }

    pub(crate) fn only_key(&self) -> Option<K> {
        self.entries.keys().next().copied().filter(|_| self.entries.len() == 1)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> u64 {
        self.insert_with(key, value, |_, _| {})
    }

    pub(crate) fn insert_with(&mut self, key: K, value: V, mut forget: impl FnMut(K, V)) -> u64 {
        self.bytes += ENTRY_BYTES + value.heap_bytes();
        if let Some(entry) = self.entries.get_mut(&key) {
            let old = std::mem::replace(&mut entry.value, value);
            self.bytes -= ENTRY_BYTES + old.heap_bytes();
            return 0;
        }
        self.count += 1;
        self.entries.insert(key, FifoMapEntry { number: self.count, value });
        if self.order.len() >= 2 * self.entries.len() + 16 {
            let entries = &self.entries;
            self.order.retain(|(number, key)| entries.get(key).is_some_and(|entry| entry.number == *number));
        }
        self.order.push_back((self.count, key));
        let mut forgotten = 0;
        while self.entries.len() > self.limit {
            let Some((key, value)) = self.remove_oldest() else { break };
            forgotten += 1;
            forget(key, value);
        }
        forgotten
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.entries.remove(key)?.value;
        self.bytes -= ENTRY_BYTES + old.heap_bytes();
        Some(old)
    }

    pub(crate) fn remove_oldest(&mut self) -> Option<(K, V)> {
        loop {
            let (number, key) = self.order.pop_front()?;
            if self.entries.get(&key).is_some_and(|entry| entry.number == number) {
                return self.remove(&key).map(|value| (key, value));
            }
        }
    }
}

/// List of the values with the smallest keys, at most `MOST`, whatever the order of insertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Serialize, V: Serialize",
    deserialize = "K: Ord + Deserialize<'de>, V: Deserialize<'de>"
))]
pub(crate) struct Least<const MOST: usize, K, V = ()>(BTreeMap<K, V>);

impl<const MOST: usize, K, V> Default for Least<MOST, K, V> {
    fn default() -> Self {
        Least(BTreeMap::new())
    }
}

impl<const MOST: usize, K: Ord, V> Least<MOST, K, V> {
    pub(crate) fn add(&mut self, key: K, value: V) {
        self.0.entry(key).or_insert(value);
        if self.0.len() > MOST {
            self.0.pop_last();
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(key, value)| self.add(key, value));
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.values()
    }
}

/// Sums by key. Keeps the smallest keys, each with the sum of all its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Serialize + Ord, V: Serialize",
    deserialize = "K: Deserialize<'de> + Ord, V: Deserialize<'de>"
))]
pub(crate) struct SmallestSums<const MOST: usize, K, V>(BTreeMap<K, V>);

impl<const MOST: usize, K, V> Default for SmallestSums<MOST, K, V> {
    fn default() -> Self {
        SmallestSums(BTreeMap::new())
    }
}

impl<const MOST: usize, K: Ord> SmallestSums<MOST, K, (u64, u64)> {
    /// Adds to both sums of the key. A key that was evicted has enough smaller ones before it to stay out.
    pub(crate) fn add(&mut self, key: K, value: (u64, u64)) {
        let sums = self.0.entry(key).or_default();
        *sums = (sums.0 + value.0, sums.1 + value.1);
        if self.0.len() > MOST {
            self.0.pop_last();
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(key, value)| self.add(key, value));
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (K, (u64, u64))> {
        self.0.into_iter()
    }
}

/// The first clock steps, by the packets around them. Each connection that sees a step has its own packets.
pub(crate) type ClockSteps = Least<256, (PacketRef, PacketRef), ClockStep>;
/// Connections and packets by the headers around them.
pub(crate) type Encapsulations = SmallestSums<{ EncapsulatedTraffic::MAX_LISTED }, Arc<str>, (u64, u64)>;
pub(crate) type ForeignReplies = Least<{ ForeignReply::MAX_LISTED }, ForeignReply>;
pub(crate) type Routed = Least<{ SeenTwice::MAX_NAMED }, Endpoints>;

impl ClockSteps {
    pub(crate) fn note(&mut self, step: ClockStep) {
        self.add((step.after.packet, step.before.packet), step);
    }
}

pub(crate) type Initials = ([u32; 2], Timestamp, Endpoints);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_oldest_name_is_forgotten_and_counted() {
        let mut names: FifoMap<u8, Arc<str>> = FifoMap::new(2);
        assert_eq!(names.insert(1, "a".into()) + names.insert(2, "b".into()) + names.insert(1, "c".into()), 0);
        assert_eq!(names.insert(3, "d".into()), 1);
        let kept = [1, 2, 3].map(|key| names.get(&key).map(|name| &**name));
        assert_eq!(kept, [None, Some("b"), Some("d")]);
        assert_eq!(names.bytes(), 2 * (ENTRY_BYTES + 1));
    }

    #[test]
    fn a_key_that_comes_and_goes_takes_no_more_with_every_time() {
        // A server may assign the same file id to every open.
        let mut names: FifoMap<u8, Arc<str>> = FifoMap::new(1000);
        names.insert(1, "stays".into());
        for _ in 0..100_000 {
            names.insert(7, "x".into());
            assert!(names.order.len() <= 22, "{}", names.order.len());
            names.remove(&7);
        }
        names.insert(7, "x".into());
        assert_eq!(names.remove_oldest().map(|(key, _)| key), Some(1), "the key is as old as its last entry");
    }

    proptest! {
        #[test]
        fn lists_of_any_partition_merge_to_the_whole(values in prop::collection::vec((0u32..20, 0usize..3), 0..40)) {
            let mut whole: Least<5, u32> = Least::default();
            let mut parts: [Least<5, u32>; 3] = Default::default();
            for (value, part) in &values {
                whole.add(*value, ());
                parts[*part].add(*value, ());
            }
            let [mut a, b, c] = parts;
            a.merge(c);
            a.merge(b);
            prop_assert_eq!(a, whole);
        }
    }
}

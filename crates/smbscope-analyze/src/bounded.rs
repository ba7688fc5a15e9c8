//! Bounded containers: a map that evicts its oldest entry when full.

use ahash::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Approximate size of a map entry without its value.
pub(crate) const ENTRY_BYTES: usize = 128;

pub(crate) trait HeapBytes {
    fn heap_bytes(&self) -> usize;
}

#[derive(Debug)]
pub(crate) struct FifoMap<K, V> {
    entries: HashMap<K, FifoMapEntry<V>, RandomState>,
    /// Keys and insertion numbers, oldest first. Stale entries of removed keys are purged when they outnumber the
    /// others.
    order: VecDeque<(u64, K)>,
    count: u64,
    limit: usize,
    bytes: usize,
}

#[derive(Debug)]
struct FifoMapEntry<V> {
    /// Distinguishes an entry from a later one with the same key.
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

    /// Returns a value for modification. The caller reports a change of its size to [`Self::resized`].
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
        self.insert_telling(key, value, |_, _| {})
    }

    pub(crate) fn insert_telling(&mut self, key: K, value: V, mut forget: impl FnMut(K, V)) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

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
}

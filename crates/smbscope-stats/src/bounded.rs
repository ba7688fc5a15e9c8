//! Bounded sets whose content does not depend on the order of arrival: a table of keys, and the slowest exchanges, to be
//! looked up in the capture.
//!
//! When there are more distinct keys than fit, the table keeps those with the smallest hashes (a "bottom-k" sketch;
//! Cohen and Kaplan, "Summarizing Data using Bottom-k Sketches", PODC 2007). The largest kept hash only falls, so a
//! refused or evicted key never returns: every kept entry is complete, and the merge of any partition equals the whole.
//! Keys may have a weight, such as the length of a name, whose total is limited as well.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smbscope_model::{CommandGroup, Exchange, TimeKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{Hash, Hasher};

#[derive(Debug, Clone)]
pub struct BottomKTable<K, V> {
    capacity: usize,
    index: HashMap<K, usize, ahash::RandomState>,
    values: Vec<V>,
    free: Vec<usize>,
    order: BinaryHeap<(u64, K)>,
    /// Most recently requested keys and their slots, since callers tend to repeat a key. Refused keys have no slot.
    recent: Vec<(K, Option<usize>)>,
    recent_max: usize,
    weigh: fn(&K) -> usize,
    weight: usize,
    weight_max: usize,
    /// Smallest hash excluded by weight. Keys from this hash on are refused.
    barred: Option<(u64, K)>,
}

impl<K: Hash + Ord + Clone, V: Default> BottomKTable<K, V> {
    pub fn new(capacity: usize) -> BottomKTable<K, V> {
        BottomKTable::weighing(capacity, |_| 0, 0)
    }

    pub fn weighing(capacity: usize, weigh: fn(&K) -> usize, weight_max: usize) -> BottomKTable<K, V> {
        assert!(capacity > 0, "a table needs room for one entry");
        // Fixed seeds: the table never iterates in hash order, but its speed should not vary from run to run either.
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

    pub fn remembering(self, recent_max: usize) -> BottomKTable<K, V> {
        BottomKTable { recent_max, ..self }
    }

    /// Like [`entry`](BottomKTable::entry), but builds the key only if `is` matches none of the recent keys.
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

    /// Inserts a default. Returns `None` for a refused key. Passes evicted entries to `evicted`.
    pub fn entry(&mut self, key: &K, mut evicted: impl FnMut(K, V)) -> Option<&mut V> {
        let slot = self.place(key, &mut evicted)?;
        self.values.get_mut(slot)
    }

    fn place(&mut self, key: &K, evicted: &mut impl FnMut(K, V)) -> Option<usize> {
        let known = self.index.get(key).copied();
        let slot = known.or_else(|| self.admit(stable_hash(key), key, evicted));
        if self.recent.len() == self.recent_max {
            self.recent.remove(0);
        }
        self.recent.push((key.clone(), slot));
        slot
    }

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

    /// Adds the entries of a table with the same bounds, joining values of common keys with `add`. A key that either
    /// table evicted is not kept in the result either. Passes entries that do not fit to `evicted`.
    pub fn merge(&mut self, mut other: Self, mut add: impl FnMut(&mut V, &V), mut evicted: impl FnMut(K, V)) {
        if let Some(barred) = &other.barred {
            self.bar(barred, &mut evicted);
        }
        // In order of hashes, so that every evicted entry was here before and none is inserted only to be evicted.
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

    fn bar(&mut self, barred: &(u64, K), evicted: &mut impl FnMut(K, V)) {
        if self.barred.as_ref().is_none_or(|mine| barred < mine) {
            self.barred = Some(barred.clone());
        }
        while self.order.peek().is_some_and(|worst| worst >= barred) {
            let Some(((_, key), value)) = self.evict() else { return };
            evicted(key, value);
        }
    }

    fn evict(&mut self) -> Option<((u64, K), V)> {
        self.recent.clear();
        let worst = self.order.pop()?;
        let slot = self.index.remove(&worst.1)?;
        self.weight -= (self.weigh)(&worst.1);
        self.free.push(slot);
        Some((worst, std::mem::take(&mut self.values[slot])))
    }

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

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the values in any order. Free slots hold defaults.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut entries: Vec<_> = self.index.iter().map(|(key, slot)| (key, &self.values[*slot])).collect();
        entries.sort_by(|a, b| a.0.cmp(b.0));
        entries.into_iter()
    }

    pub fn into_entries(mut self) -> Vec<(K, V)> {
        let slots = self.index.into_iter();
        let mut entries: Vec<(K, V)> = slots.map(|(key, slot)| (key, std::mem::take(&mut self.values[slot]))).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

impl<K: Hash + Ord + Clone + Serialize, V: Default + Serialize> Serialize for BottomKTable<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<(&K, &V)> = self.iter().collect();
        (entries, &self.barred).serialize(serializer)
    }
}

/// FNV-1a with a final mix. Identical in every process, unlike the hasher of a map.
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

/// The slowest exchanges among those recorded; expected waits are excluded. Every method takes the number to keep.
///
/// The number may vary as long as none is smaller than the last. As exchanges have a total order, the result then
/// depends neither on their order of arrival nor on their distribution over several sets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Slowest {
    found: Vec<Exchange>,
    floor: i64,
}

fn rank(exchange: &Exchange) -> impl Ord + use<> {
    let time = exchange.time(TimeKind::ResponseTime);
    let packet = exchange.request.first.map(|stamp| (stamp.packet.capture(), stamp.packet.number()));
    (Reverse(time), exchange.start(), exchange.flow, packet, exchange.message_id, exchange.command)
}

impl Slowest {
    /// Returns true if the exchange may belong to the slowest.
    #[inline]
    pub fn takes(&self, exchange: &Exchange) -> bool {
        exchange.group != CommandGroup::Waiting
            && exchange.is_complete()
            && exchange.time(TimeKind::ResponseTime).is_some_and(|time| time.0 >= self.floor)
    }

    pub fn record(&mut self, exchange: &Exchange, max: usize) {
        if self.takes(exchange) {
            self.add(exchange.clone(), max);
        }
    }

    /// Adds an exchange that [`takes`](Slowest::takes) accepts. Holds up to twice `max`, so that few are sorted.
    pub fn add(&mut self, exchange: Exchange, max: usize) {
        self.found.push(exchange);
        if self.found.len() >= 2 * max {
            self.trim(max);
        }
    }

    pub fn merge(&mut self, other: &Slowest, max: usize) {
        self.found.extend(other.found.iter().cloned());
        self.trim(max);
    }

    /// Returns the number of exchanges held: up to twice the number to keep.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the slowest exchanges, slowest first.
    pub fn finish(&self, max: usize) -> Vec<Exchange> {
        let mut all = self.found.clone();
        all.sort_by_cached_key(rank);
        all.truncate(max);
        all
    }

    /// Drops all but the slowest.
    pub fn trim(&mut self, max: usize) {
        if self.found.len() <= max {
            return;
        }
        self.found.sort_by_cached_key(rank);
        self.found.truncate(max);
        let last = self.found.last().and_then(|last| last.time(TimeKind::ResponseTime));
        self.floor = self.floor.max(last.map_or(0, |time| time.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smbscope_testkit::exchange::read;

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
            for (key, n) in kept {
                prop_assert_eq!(n, keys.iter().filter(|k| **k == key).count() as u64);
            }
        }
    }

    fn times(exchanges: &[Exchange]) -> Vec<i64> {
        exchanges.iter().filter_map(|exchange| exchange.time(TimeKind::ResponseTime)).map(|time| time.0).collect()
    }

    #[test]
    fn expected_waits_and_commands_without_a_response_are_left_out() {
        let mut slowest = Slowest::default();
        let (mut waiting, mut lost) = (read(0, 900), read(0, 800));
        waiting.group = CommandGroup::Waiting;
        lost.outcome = smbscope_model::ExchangeOutcome::ResponseEndMissing;
        [waiting, lost, read(0, 700)].iter().for_each(|exchange| slowest.record(exchange, 5));
        assert_eq!(times(&slowest.finish(5)), [700]);
    }

    proptest! {
        #[test]
        fn any_partition_keeps_the_same_while_the_number_to_keep_falls(
            lasted in prop::collection::vec((0i64..40, 0usize..3), 0..300), kept in 0usize..12, more in 0usize..30,
        ) {
            let exchanges: Vec<Exchange> =
                (0i64..).zip(&lasted).map(|(start, (time, _))| read(start, *time)).collect();
            let mut parts = [(); 3].map(|()| Slowest::default());
            for (at, (exchange, (_, part))) in exchanges.iter().zip(&lasted).enumerate() {
                parts[*part].record(exchange, kept + more * (lasted.len() - at) / lasted.len());
            }
            let [mut mine, left, right] = parts;
            mine.merge(&right, kept + more);
            mine.merge(&left, kept);
            let mut all = exchanges;
            all.sort_by_cached_key(rank);
            all.truncate(kept);
            prop_assert_eq!(mine.finish(kept), all);
        }
    }
}

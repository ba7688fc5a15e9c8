//! A bounded list whose contents don't depend on the order of insertion.

use serde::{Deserialize, Serialize};
use smbscope_model::{ClockStep, Endpoints, ForeignReply, PacketRef, SeenTwice, Timestamp};
use std::collections::BTreeMap;

/// The values with the smallest keys, at most `MOST`.
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

/// The first clock steps, by the packets around them. Each connection that sees a step has its own packets.
pub(crate) type ClockSteps = Least<256, (PacketRef, PacketRef), ClockStep>;
pub(crate) type ForeignReplies = Least<{ ForeignReply::MAX_LISTED }, ForeignReply>;
pub(crate) type Routed = Least<{ SeenTwice::MAX_NAMED }, Endpoints>;

impl ClockSteps {
    pub(crate) fn note(&mut self, step: ClockStep) {
        self.add((step.after.packet, step.before.packet), step);
    }
}

/// Initial sequence numbers of client and server, time of the first packet, and endpoints.
pub(crate) type Initials = ([u32; 2], Timestamp, Endpoints);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

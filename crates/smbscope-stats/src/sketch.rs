//! Percentiles of very many sets of durations in little memory: a histogram whose bucket width grows with the value.
//!
//! As in DDSketch (Masson, Rim and Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-Error
//! Guarantees", PVLDB 12(12), 2019), the relative error is bounded, and the merge of any partition equals the whole.
//! Buckets divide each power of two into [`PER_OCTAVE`] equal parts, as in HdrHistogram, which needs no logarithm. Only
//! occupied buckets take memory (8 bytes each), a few dozen for one file or client; available crates also keep the
//! empty ones in between.

use serde::{Deserialize, Serialize};

/// Buckets per power of two. The relative error is at most 1/(2 · `PER_OCTAVE`), 1.6%.
const PER_OCTAVE: u64 = 1 << BITS;
const BITS: u32 = 5;
/// Low bits of an entry that hold the count. The bits above hold the bucket.
const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sketch {
    entries: Vec<u64>,
}

fn bucket(value: u64) -> u64 {
    if value < PER_OCTAVE {
        return value;
    }
    let octave = value.ilog2() - BITS;
    // The leading one of the value increments the octave.
    (u64::from(octave) << BITS) + (value >> octave)
}

fn middle(bucket: u64) -> u64 {
    if bucket < 2 * PER_OCTAVE {
        return bucket;
    }
    let octave = (bucket >> BITS) - 1;
    let least = (PER_OCTAVE + bucket % PER_OCTAVE) << octave;
    least + (1 << octave) / 2
}

impl Sketch {
    pub(crate) fn record(&mut self, value: i64) {
        self.add(bucket(value.max(0) as u64), 1);
    }

    pub(crate) fn merge(&mut self, other: &Sketch) {
        other.entries.iter().for_each(|entry| self.add(entry >> COUNT_BITS, entry & COUNT));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.entries.iter().map(|entry| (middle(entry >> COUNT_BITS), entry & COUNT))
    }

    fn add(&mut self, bucket: u64, count: u64) {
        match self.entries.binary_search_by_key(&bucket, |entry| entry >> COUNT_BITS) {
            // 2^48 commands are 8 years at a million per second.
            Ok(at) => self.entries[at] += count.min(COUNT - (self.entries[at] & COUNT)),
            Err(at) => self.entries.insert(at, bucket << COUNT_BITS | count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(values: &[i64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|value| sketch.record(*value));
        sketch
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        // Below 64 each value has its own bucket; from 64 to 127 two share one, from 128 to 255 four.
        assert_eq!([0, 31, 32, 63, 64, 65, 66, 127, 128].map(bucket), [0, 31, 32, 63, 64, 64, 65, 95, 96]);
        assert_eq!([63, 64, 95, 96].map(middle), [63, 65, 127, 130]);
        assert!(bucket(u64::MAX) < 1 << (64 - COUNT_BITS));
    }

    #[test]
    fn the_middle_of_a_bucket_is_within_a_64th_of_each_of_its_values() {
        for octave in BITS..63 {
            let (first, last) = (1u64 << octave, (1u64 << (octave + 1)) - 1);
            for value in [first, first + 1, first + first / 3, last] {
                assert!(middle(bucket(value)).abs_diff(value) <= value / 64 + 1, "{value}");
            }
        }
    }

    proptest! {
        #[test]
        fn merges_are_those_of_the_whole_in_any_order_and_grouping(
            parts in prop::array::uniform3(prop::collection::vec(-5i64..20_000_000_000, 0..60))
        ) {
            let [a, b, c] = parts.each_ref().map(|part| sketch(part));
            let merged = |first: &Sketch, second: &Sketch| {
                let mut all = first.clone();
                all.merge(second);
                all
            };
            let whole = sketch(&parts.concat());
            prop_assert_eq!(&merged(&merged(&a, &b), &c), &whole);
            prop_assert_eq!(&merged(&a, &merged(&b, &c)), &whole);
            prop_assert_eq!(&merged(&merged(&c, &a), &b), &whole);
            prop_assert_eq!(whole.iter().map(|(_, count)| count).sum::<u64>(), parts.concat().len() as u64);
        }
    }
}

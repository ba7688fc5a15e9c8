//! Outstanding requests in the order in which they were sent: the oldest one, and those in a stretch of the client's
//! stream, are found without going through all of them.

use std::collections::VecDeque;

/// Keys of requests by the position at which each begins. Requests that are over stay until they are many.
#[derive(Debug)]
pub(crate) struct SentOrder<K> {
    entries: VecDeque<(u64, K)>,
}

impl<K> Default for SentOrder<K> {
    fn default() -> SentOrder<K> {
        SentOrder { entries: VecDeque::new() }
    }
}

impl<K: Copy> SentOrder<K> {
    /// Adds a request that begins at `start`, which is not before those that were added before: messages come in the
    /// order of the stream. `alive` tells whether an entry is still outstanding, `outstanding` how many are.
    #[inline]
    pub(crate) fn push(&mut self, start: u64, key: K, outstanding: usize, alive: impl Fn(u64, K) -> bool) {
        if self.entries.len() >= 2 * outstanding + 16 {
            self.entries.retain(|(start, key)| alive(*start, *key));
        }
        self.entries.push_back((start, key));
    }

    /// The oldest request that is still outstanding.
    pub(crate) fn oldest(&mut self, alive: impl Fn(u64, K) -> bool) -> Option<K> {
        while let Some((start, key)) = self.entries.front().copied() {
            if alive(start, key) {
                return Some(key);
            }
            self.entries.pop_front();
        }
        None
    }

    /// The requests that begin before `end`, and the last one that begins before `start`, which may reach into the
    /// stretch. Some may be over.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = K> {
        let first = self.entries.partition_point(|(begin, _)| *begin <= start);
        // The members of a compound all begin where their frame does.
        let frame = first.checked_sub(1).map_or(start, |before| self.entries[before].0);
        let first = self.entries.partition_point(|(begin, _)| *begin < frame);
        self.entries.iter().skip(first).take_while(move |(begin, _)| *begin < end).map(|(_, key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_of_a_stretch_are_found() {
        let mut order = SentOrder::default();
        for (start, key) in [(0, 'a'), (100, 'b'), (100, 'c'), (200, 'd'), (300, 'e')] {
            order.push(start, key, 5, |_, _| true);
        }
        let within = |start, end| order.within(start, end).collect::<String>();
        assert_eq!(within(150, 160), "bc", "both members of the compound that begins at 100 may reach there");
        assert_eq!(within(100, 201), "bcd");
        assert_eq!(within(250, 1000), "de");
    }

    #[test]
    fn requests_that_are_over_do_not_stay_for_ever() {
        let mut order = SentOrder::default();
        for start in 0..10_000u64 {
            order.push(start, start, 1, |_, key| key == 0);
        }
        assert!(order.entries.len() <= 18, "{}", order.entries.len());
        assert_eq!(order.oldest(|_, key| key == 0), Some(0));
        assert_eq!(order.oldest(|_, _| false), None);
    }
}

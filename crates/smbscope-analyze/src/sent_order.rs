//! Order in which outstanding requests were sent. Finds the oldest request, and the requests in a range of the client's
//! stream, without inspecting all of them.

use std::collections::VecDeque;

/// Keys of requests by start position. Entries of finished requests are purged when they outnumber the others.
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
    /// Adds a request. `start` must not decrease, since messages arrive in stream order. `alive` returns true for
    /// entries that are still outstanding, of which there are `outstanding`.
    #[inline]
    pub(crate) fn push(&mut self, start: u64, key: K, outstanding: usize, alive: impl Fn(u64, K) -> bool) {
        if self.entries.len() >= 2 * outstanding + 16 {
            self.entries.retain(|(start, key)| alive(*start, *key));
        }
        self.entries.push_back((start, key));
    }

    pub(crate) fn oldest(&mut self, alive: impl Fn(u64, K) -> bool) -> Option<K> {
        while let Some((start, key)) = self.entries.front().copied() {
            if alive(start, key) {
                return Some(key);
            }
            self.entries.pop_front();
        }
        None
    }

    /// Iterates over the requests that begin before `end`, starting with the last one that begins at or before `start`
    /// and may reach into the range. Some may be finished.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = K> {
        let first = self.entries.partition_point(|(begin, _)| *begin <= start);
        // The members of a compound all have the start position of their frame.
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

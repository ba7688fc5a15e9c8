//! Bounded memory of a flow: a ring of the newest entries, and the queue of segments that wait for a hole to be filled.
//! The queue is indexed by arrival and by position to avoid linear searches.

use crate::segment::TcpSegment;
use smbscope_model::FlowDirection;
use std::collections::{BTreeMap, BTreeSet};

/// Keeps the newest `LIMIT` entries. Grows on demand, because most flows are short.
#[derive(Debug, Clone)]
pub(super) struct Ring<T, const LIMIT: usize> {
    entries: Vec<T>,
    oldest: usize,
}

impl<T, const LIMIT: usize> Default for Ring<T, LIMIT> {
    fn default() -> Self {
        Ring { entries: Vec::new(), oldest: 0 }
    }
}

impl<T, const LIMIT: usize> Ring<T, LIMIT> {
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        if self.entries.len() < LIMIT {
            self.entries.push(entry);
            return;
        }
        self.entries[self.oldest] = entry;
        self.oldest = (self.oldest + 1) % LIMIT;
    }

    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.entries.capacity() * size_of::<T>()
    }

    #[inline]
    pub(super) fn find(&self, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.entries.iter().find(|entry| is(entry))
    }

    pub(super) fn newest(&self) -> Option<&T> {
        match self.oldest {
            0 => self.entries.last(),
            oldest => self.entries.get(oldest - 1),
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (newer, older) = self.entries.split_at(self.oldest);
        older.iter().chain(newer)
    }
}

#[derive(Clone)]
pub(super) struct OutOfOrderSegment {
    pub(super) direction: FlowDirection,
    pub(super) position: u64,
    pub(super) bytes: Box<[u8]>,
    pub(super) segment: TcpSegment<'static>,
    pub(super) acknowledged: Option<u64>,
    pub(super) known_received: bool,
    pub(super) sent_again: bool,
}

impl OutOfOrderSegment {
    fn end(&self) -> u64 {
        self.position + u64::from(self.segment.payload_length)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival(i64);

impl Arrival {
    pub(super) const LAST: Arrival = Arrival(i64::MAX);
}

#[derive(Clone, Default)]
pub(super) struct OutOfOrderQueue {
    queue: BTreeMap<Arrival, OutOfOrderSegment>,
    places: BTreeSet<(usize, u64, Arrival)>,
    bytes: usize,
}

impl OutOfOrderQueue {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.bytes + self.queue.len() * (size_of::<OutOfOrderSegment>() + 2 * size_of::<(usize, u64, Arrival)>())
    }

    pub(super) fn push(&mut self, held: OutOfOrderSegment) {
        let last = self.queue.last_key_value().map_or(0, |(arrival, _)| arrival.0);
        self.insert(Arrival(last + 1), held);
    }

    pub(super) fn push_first(&mut self, held: OutOfOrderSegment) {
        let first = self.queue.first_key_value().map_or(0, |(arrival, _)| arrival.0);
        self.insert(Arrival(first - 1), held);
    }

    fn insert(&mut self, arrival: Arrival, held: OutOfOrderSegment) {
        self.bytes += held.bytes.len();
        self.places.insert((held.direction.index(), held.position, arrival));
        self.queue.insert(arrival, held);
    }

    pub(super) fn first(&self) -> Option<Arrival> {
        self.queue.first_key_value().map(|(arrival, _)| *arrival)
    }

    pub(super) fn first_two(&self) -> [Option<(Arrival, &OutOfOrderSegment)>; 2] {
        let mut both = self.queue.iter().map(|(arrival, held)| (*arrival, held));
        [both.next(), both.next()]
    }

    pub(super) fn take(&mut self, arrival: Arrival) -> Option<OutOfOrderSegment> {
        let held = self.queue.remove(&arrival)?;
        self.places.remove(&(held.direction.index(), held.position, arrival));
        self.bytes -= held.bytes.len();
        Some(held)
    }

    pub(super) fn successor(
        &self,
        direction: FlowDirection,
        position: u64,
        arrival: Arrival,
    ) -> Option<&OutOfOrderSegment> {
        let follows = |held: &&OutOfOrderSegment| held.direction == direction && held.position > position;
        self.queue.range(..arrival).map(|(_, held)| held).find(follows)
    }

    pub(super) fn filler(&self, direction: FlowDirection, next: u64) -> Option<Arrival> {
        let index = direction.index();
        let before = self.places.range((index, 0, Arrival(i64::MIN))..=(index, next, Arrival::LAST));
        let holds = |arrival: &Arrival| self.queue.get(arrival).is_some_and(|held| held.end() > next);
        before.map(|(_, _, arrival)| *arrival).filter(holds).min()
    }

    pub(super) fn next_position(&self, direction: FlowDirection, next: u64) -> Option<u64> {
        let index = direction.index();
        let behind = self.places.range((index, next + 1, Arrival(i64::MIN))..);
        behind.take_while(|(of, _, _)| *of == index).map(|(_, position, _)| *position).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entries_are_kept_in_their_order() {
        let mut ring: Ring<u32, 3> = Ring::default();
        assert_eq!(ring.newest(), None);
        let mut seen = Vec::new();
        for entry in 1..=5 {
            ring.push(entry);
            assert_eq!(ring.newest(), Some(&entry));
            seen.push(ring.iter().copied().collect::<Vec<_>>());
        }
        assert_eq!(seen, [vec![1], vec![1, 2], vec![1, 2, 3], vec![2, 3, 4], vec![3, 4, 5]]);
        assert_eq!(ring.iter().rev().copied().collect::<Vec<_>>(), [5, 4, 3]);
    }
}

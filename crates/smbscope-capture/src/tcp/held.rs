//! Segments that wait behind a hole: in the order in which they came, and by position, so that finding the one that fills
//! a hole does not mean going through all of them.

use crate::segment::TcpSegment;
use smbscope_model::FlowDirection;
use std::collections::{BTreeMap, BTreeSet};

/// A segment that waits, with its own copy of the captured bytes.
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

/// When a segment came, as a number that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival(i64);

impl Arrival {
    /// Behind everything that waits.
    pub(super) const LAST: Arrival = Arrival(i64::MAX);
}

/// All that waits of a flow.
#[derive(Default)]
pub(super) struct OutOfOrderQueue {
    queue: BTreeMap<Arrival, OutOfOrderSegment>,
    places: BTreeSet<(usize, u64, Arrival)>,
    bytes: usize,
}

impl OutOfOrderQueue {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Captured bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Approximate memory in bytes.
    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.bytes + self.queue.len() * (size_of::<OutOfOrderSegment>() + 2 * size_of::<(usize, u64, Arrival)>())
    }

    /// Holds a segment behind the others.
    pub(super) fn push(&mut self, held: OutOfOrderSegment) {
        let last = self.queue.last_key_value().map_or(0, |(arrival, _)| arrival.0);
        self.insert(Arrival(last + 1), held);
    }

    /// Holds a segment in front of the others.
    pub(super) fn push_first(&mut self, held: OutOfOrderSegment) {
        let first = self.queue.first_key_value().map_or(0, |(arrival, _)| arrival.0);
        self.insert(Arrival(first - 1), held);
    }

    fn insert(&mut self, arrival: Arrival, held: OutOfOrderSegment) {
        self.bytes += held.bytes.len();
        self.places.insert((held.direction.index(), held.position, arrival));
        self.queue.insert(arrival, held);
    }

    /// The one that came first.
    pub(super) fn first(&self) -> Option<Arrival> {
        self.queue.first_key_value().map(|(arrival, _)| *arrival)
    }

    /// The two that came first.
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

    /// The first of those that came before `arrival` and lie behind `position`.
    pub(super) fn successor(
        &self,
        direction: FlowDirection,
        position: u64,
        arrival: Arrival,
    ) -> Option<&OutOfOrderSegment> {
        let follows = |held: &&OutOfOrderSegment| held.direction == direction && held.position > position;
        self.queue.range(..arrival).map(|(_, held)| held).find(follows)
    }

    /// Of those that hold the byte at `next`, the one that came first.
    pub(super) fn filler(&self, direction: FlowDirection, next: u64) -> Option<Arrival> {
        let index = direction.index();
        let before = self.places.range((index, 0, Arrival(i64::MIN))..=(index, next, Arrival::LAST));
        let holds = |arrival: &Arrival| self.queue.get(arrival).is_some_and(|held| held.end() > next);
        before.map(|(_, _, arrival)| *arrival).filter(holds).min()
    }

    /// Where the nearest of those behind `next` begins.
    pub(super) fn next_position(&self, direction: FlowDirection, next: u64) -> Option<u64> {
        let index = direction.index();
        let behind = self.places.range((index, next + 1, Arrival(i64::MIN))..);
        behind.take_while(|(of, _, _)| *of == index).map(|(_, position, _)| *position).next()
    }
}

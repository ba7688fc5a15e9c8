//! Finds the flow of a segment by 5-tuple, in a bounded table that handles port reuse.

use super::flow::{SegmentDisposition, TcpFlow};
use super::{Directed, FlowView, StreamSink};
use crate::segment::TcpSegment;
use ahash::RandomState;
use smbscope_model::{FlowDirection, FlowId, MemoryBudget, Role, Timestamp};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

const PLACE_BYTES: usize = 2 * size_of::<(FlowKey, usize)>();
/// Time an ended flow stays in the table, to recognise its late packets.
const LINGER_NS: i64 = 10_000_000_000;

/// Flows of a shard found without hashing. It is the size of the direct-mapped cache in front of the hash table.
const AT_HAND: usize = 64;

/// Both ends of a flow, the smaller one first, so that both directions have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FlowKey {
    addresses: [u128; 2],
    ports: u64,
}

impl FlowKey {
    #[inline]
    fn from_segment(segment: &TcpSegment<'_>) -> FlowKey {
        let pack = |end: SocketAddr| match end.ip() {
            IpAddr::V4(address) => (u128::from(address.to_bits()), u64::from(end.port()) | 1 << 16),
            IpAddr::V6(address) => (address.to_bits(), u64::from(end.port())),
        };
        let (one, other) = (pack(segment.source), pack(segment.destination));
        let (low, high) = if one <= other { (one, other) } else { (other, one) };
        FlowKey { addresses: [low.0, high.0], ports: low.1 << 32 | high.1 }
    }

    /// Returns the cache slot of the flow. A collision costs only a hash lookup.
    #[inline]
    fn slot(&self) -> usize {
        let mixed = (self.ports ^ self.addresses[0] as u64 ^ (self.addresses[1] as u64).rotate_left(24))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % AT_HAND
    }
}

pub struct FlowTable<K: StreamSink> {
    sink: K,
    /// Index into `flows` by connection. The hash is keyed, so a crafted capture can't cause collisions.
    places: HashMap<FlowKey, usize, RandomState>,
    flows: Vec<Option<TcpFlow<K::Flow>>>,
    free: Vec<usize>,
    at_hand: Box<[Option<(FlowKey, usize)>; AT_HAND]>,
    over: VecDeque<(Timestamp, FlowKey)>,
    /// Approximate memory in bytes, and its limit, beyond which the least recently active flows are evicted.
    used: usize,
    budget: usize,
    place: Option<Role>,
}

impl<K: StreamSink> FlowTable<K> {
    pub fn new(sink: K) -> FlowTable<K> {
        FlowTable::within(sink, MemoryBudget::default().flows)
    }

    pub fn within(sink: K, budget: usize) -> FlowTable<K> {
        FlowTable {
            sink,
            places: HashMap::with_hasher(RandomState::new()),
            flows: Vec::new(),
            free: Vec::new(),
            at_hand: Box::new([None; AT_HAND]),
            over: VecDeque::new(),
            used: 0,
            budget,
            place: None,
        }
    }

    /// For packets captured on both sides of a router, counts only the copies nearer to this side.
    pub fn beside(self, place: Option<Role>) -> FlowTable<K> {
        FlowTable { place, ..self }
    }

    pub fn sink_mut(&mut self) -> &mut K {
        &mut self.sink
    }

    pub fn sink(&self) -> &K {
        &self.sink
    }

    /// Processes the next segment; segments must come in time order.
    #[inline]
    pub fn segment(&mut self, segment: &TcpSegment<'_>) {
        self.expire(segment.stamp.time);
        self.take(segment);
    }

    /// Like [`FlowTable::segment`]. Returns true if segments of the flow are held back for later delivery.
    pub fn follow(&mut self, segment: &TcpSegment<'_>) -> bool {
        self.expire(segment.stamp.time);
        let place = self.take(segment);
        self.flows[place].as_ref().is_some_and(TcpFlow::holds_back)
    }

    /// Processes segments of a period, in any order across connections. Flows that expired before it are removed first.
    pub fn stretch<'s>(&mut self, begins: Timestamp, segments: impl Iterator<Item = TcpSegment<'s>>) {
        self.expire(begins);
        segments.for_each(|segment| _ = self.take(&segment));
    }

    #[inline]
    fn take(&mut self, segment: &TcpSegment<'_>) -> usize {
        let key = FlowKey::from_segment(segment);
        let slot = key.slot();
        let place = match &self.at_hand[slot] {
            Some((known, place)) if *known == key => *place,
            _ => {
                let known = self.places.get(&key).copied();
                let place = known.unwrap_or_else(|| self.open(key, segment));
                self.at_hand[slot] = Some((key, place));
                place
            }
        };
        let mut place = place;
        if self.offer(key, place, segment) == Some(SegmentDisposition::NewConnection) {
            self.close(key, false);
            place = self.open(key, segment);
            self.at_hand[slot] = Some((key, place));
            self.offer(key, place, segment);
        }
        if self.used > self.budget {
            self.evict();
        }
        place
    }

    /// Ends all flows in the order of their first packets and returns the sink.
    pub fn finish(mut self) -> K {
        let mut flows: Vec<_> = self.flows.drain(..).flatten().collect();
        flows.sort_by_key(|flow| flow.view.id);
        for flow in flows {
            flow.finish(false, &mut self.sink);
        }
        self.sink
    }

    /// Ends copies of all flows, in the order of their first packets, for `sink`: what [`FlowTable::finish`] would
    /// report now. The flows continue.
    pub fn look<L: StreamSink<Flow = K::Flow>>(&self, sink: &mut L)
    where
        K::Flow: Clone,
    {
        let mut flows: Vec<_> = self.flows.iter().flatten().collect();
        flows.sort_by_key(|flow| flow.view.id);
        flows.into_iter().for_each(|flow| flow.clone().finish(false, sink));
    }

    /// Ends the flows without a packet since this time, as if the capture ended.
    pub fn end_silent(&mut self, since: Timestamp) {
        for (_, _, key) in self.by_age().into_iter().take_while(|(last, ..)| *last < since) {
            self.close(key, false);
        }
    }

    #[inline]
    fn offer(&mut self, key: FlowKey, place: usize, segment: &TcpSegment<'_>) -> Option<SegmentDisposition> {
        let flow = self.flows.get_mut(place)?.as_mut()?;
        let direction =
            if segment.source == flow.view.source { FlowDirection::Forward } else { FlowDirection::Backward };
        let was_over = flow.is_over();
        let verdict = flow.segment(Directed { direction, segment }, self.place, &mut self.sink);
        if flow.needs_charge() {
            let takes = flow.footprint() + self.sink.footprint(&flow.state) + PLACE_BYTES;
            self.used = self.used + takes - flow.charged;
            flow.charged = takes;
        }
        if !was_over && flow.is_over() {
            self.over.push_back((segment.stamp.time, key));
        }
        Some(verdict)
    }

    fn open(&mut self, key: FlowKey, segment: &TcpSegment<'_>) -> usize {
        let opener = match (segment.flags.syn(), segment.flags.ack()) {
            (true, false) => Some(FlowDirection::Forward),
            (true, true) => Some(FlowDirection::Backward),
            _ => None,
        };
        let view = FlowView {
            id: FlowId(segment.ordinal),
            source: segment.source,
            destination: segment.destination,
            first: segment.first,
            midstream: !segment.flags.syn(),
            opener,
            begins: [false, false],
            round_trip: [None, None],
            acknowledged: [None, None],
            clock_step: None,
        };
        let flow = TcpFlow::new(view, self.sink.opened(&view));
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.flows.push(None);
                self.flows.len() - 1
            }
        };
        self.flows[place] = Some(flow);
        self.places.insert(key, place);
        place
    }

    fn close(&mut self, key: FlowKey, evicted: bool) {
        let at_hand = &mut self.at_hand[key.slot()];
        if at_hand.is_some_and(|(known, _)| known == key) {
            *at_hand = None;
        }
        let Some(place) = self.places.remove(&key) else { return };
        self.free.push(place);
        if let Some(flow) = self.flows[place].take() {
            self.used -= flow.charged;
            flow.finish(evicted, &mut self.sink);
        }
    }

    fn flow(&self, key: &FlowKey) -> Option<&TcpFlow<K::Flow>> {
        self.flows[*self.places.get(key)?].as_ref()
    }

    fn expire(&mut self, now: Timestamp) {
        while let Some((since, key)) = self.over.front().copied() {
            if (now - since).0 < LINGER_NS {
                return;
            }
            self.over.pop_front();
            let silent = |flow: &TcpFlow<K::Flow>| flow.is_over() && (now - flow.last.time).0 >= LINGER_NS;
            match self.flow(&key) {
                Some(flow) if silent(flow) => self.close(key, false),
                Some(flow) if flow.is_over() => self.over.push_back((flow.last.time.max(since), key)),
                _ => {}
            }
        }
    }

    /// Returns all flows with the times of their last packets, the least recently active first.
    fn by_age(&self) -> Vec<(Timestamp, FlowId, FlowKey)> {
        let age = |(key, place): (&FlowKey, &usize)| {
            let flow = self.flows[*place].as_ref()?;
            Some((flow.last.time, flow.view.id, *key))
        };
        let mut by_age: Vec<_> = self.places.iter().filter_map(age).collect();
        by_age.sort_unstable_by_key(|(time, id, _)| (*time, *id));
        by_age
    }

    /// Evicts the least recently active flows until an eighth of the budget is free. Keeps at least one.
    fn evict(&mut self) {
        let mut by_age = self.by_age();
        by_age.pop();
        for (_, _, key) in by_age {
            if self.used <= self.budget / 8 * 7 {
                return;
            }
            let unfinished = self.flow(&key).is_some_and(|flow| !flow.is_over());
            self.close(key, unfinished);
        }
    }
}

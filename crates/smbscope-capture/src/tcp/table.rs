//! The flow of a segment: by 5-tuple, with ports that are used again, in a table with a bound.

use super::flow::{Flow, Verdict};
use super::{Directed, FlowView, StreamSink};
use crate::segment::TcpSegment;
use ahash::RandomState;
use smbscope_model::{Direction, FlowId, Timestamp};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Flows followed at once. Beyond that, the flow that was silent longest is given up and counted.
pub const MAX_FLOWS: usize = 65_536;
/// How long a flow that is over stays in the table, to recognise late packets of it.
const LINGER_NS: i64 = 10_000_000_000;

/// Both ends of a flow, the smaller one first, so that both directions have one key.
type Key = (SocketAddr, SocketAddr);

/// Every flow of a capture, and the sink that follows them.
pub struct FlowTable<K: StreamSink> {
    sink: K,
    /// Where in `flows` a connection is followed. The hash is keyed: a capture can't be made to collide.
    places: HashMap<Key, usize, RandomState>,
    flows: Vec<Option<Flow<K::Flow>>>,
    free: Vec<usize>,
    /// The flow of the last segment: packets come in trains.
    latest: Option<(Key, usize)>,
    over: VecDeque<(Timestamp, Key)>,
    max_flows: usize,
}

impl<K: StreamSink> FlowTable<K> {
    /// An empty table.
    pub fn new(sink: K) -> FlowTable<K> {
        FlowTable {
            sink,
            places: HashMap::with_hasher(RandomState::new()),
            flows: Vec::new(),
            free: Vec::new(),
            latest: None,
            over: VecDeque::new(),
            max_flows: MAX_FLOWS,
        }
    }

    /// The sink, to read what it has gathered so far.
    pub fn sink_mut(&mut self) -> &mut K {
        &mut self.sink
    }

    /// Takes the next segment, in time order.
    pub fn segment(&mut self, segment: &TcpSegment<'_>) {
        self.let_go(segment.stamp.time);
        let forward = segment.source <= segment.destination;
        let key = if forward { (segment.source, segment.destination) } else { (segment.destination, segment.source) };
        let known = self.latest.filter(|(latest, _)| *latest == key).map(|(_, place)| place);
        let place = match known.or_else(|| self.places.get(&key).copied()) {
            Some(place) => place,
            None => self.open(key, segment),
        };
        self.latest = Some((key, place));
        if self.offer(key, place, segment) == Some(Verdict::NewConnection) {
            self.close(key, false);
            let place = self.open(key, segment);
            self.latest = Some((key, place));
            self.offer(key, place, segment);
        }
    }

    /// Ends every flow, in the order of their first packets, and returns the sink.
    pub fn finish(mut self) -> K {
        let mut flows: Vec<_> = self.flows.drain(..).flatten().collect();
        flows.sort_by_key(|flow| flow.view.id);
        for flow in flows {
            flow.finish(false, &mut self.sink);
        }
        self.sink
    }

    fn offer(&mut self, key: Key, place: usize, segment: &TcpSegment<'_>) -> Option<Verdict> {
        let flow = self.flows.get_mut(place)?.as_mut()?;
        let direction = if segment.source == flow.view.source { Direction::Forward } else { Direction::Backward };
        let was_over = flow.is_over();
        let verdict = flow.segment(Directed { direction, segment: *segment }, &mut self.sink);
        if !was_over && flow.is_over() {
            self.over.push_back((segment.stamp.time, key));
        }
        Some(verdict)
    }

    /// Begins to follow a flow; returns its place.
    fn open(&mut self, key: Key, segment: &TcpSegment<'_>) -> usize {
        if self.places.len() >= self.max_flows {
            self.evict();
        }
        let opener = match (segment.flags.syn(), segment.flags.ack()) {
            (true, false) => Some(Direction::Forward),
            (true, true) => Some(Direction::Backward),
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
        };
        let flow = Flow::new(view, self.sink.opened(&view));
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

    fn close(&mut self, key: Key, evicted: bool) {
        self.latest = None;
        let Some(place) = self.places.remove(&key) else { return };
        self.free.push(place);
        if let Some(flow) = self.flows[place].take() {
            flow.finish(evicted, &mut self.sink);
        }
    }

    fn flow(&self, key: &Key) -> Option<&Flow<K::Flow>> {
        self.flows[*self.places.get(key)?].as_ref()
    }

    /// Lets go of flows that have been over for a while.
    fn let_go(&mut self, now: Timestamp) {
        while let Some((since, key)) = self.over.front().copied() {
            if (now - since).0 < LINGER_NS {
                return;
            }
            self.over.pop_front();
            let silent = |flow: &Flow<K::Flow>| flow.is_over() && (now - flow.last.time).0 >= LINGER_NS;
            match self.flow(&key) {
                Some(flow) if silent(flow) => self.close(key, false),
                Some(flow) if flow.is_over() => self.over.push_back((flow.last.time.max(since), key)),
                _ => {}
            }
        }
    }

    /// Gives up the flows that were silent longest: an eighth of the table, so that the search pays.
    fn evict(&mut self) {
        let age = |(key, place): (&Key, &usize)| {
            let flow = self.flows[*place].as_ref()?;
            Some((flow.last.time, flow.view.id, *key))
        };
        let mut by_age: Vec<_> = self.places.iter().filter_map(age).collect();
        by_age.sort_unstable_by_key(|(time, id, _)| (*time, *id));
        for (_, _, key) in by_age.into_iter().take((self.max_flows / 8).max(1)) {
            let unfinished = self.flow(&key).is_some_and(|flow| !flow.is_over());
            self.close(key, unfinished);
        }
    }
}

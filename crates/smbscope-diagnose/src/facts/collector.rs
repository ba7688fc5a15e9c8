//! Collects facts from exchanges, by client and server, by path, and over time.

use super::activity::{BusyOverTime, ResponsesOverTime, TrafficOverTime, WriteStream};
use super::counts::{ExchangeSample, PairFacts, PeakWindowCount};
use super::path::{COPY_WINDOW, Closed, PathFacts, RecentPaths};
use super::waits::{Attempted, CommandClass, Wait, server_time};
use crate::classify::{Fact, FactSet, SIXTY_FOUR_K, facts_of, is_close};
use crate::episodes::{Episode, EpisodeWaits, Episodes};
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{
    Command, CommandGroup, ConnectionSummary, Exchange, ExchangeOutcome, FlowId, Nanos, TimeKind, Timestamp,
};
use smbscope_stats::{BottomKTable, Covered};
use smbscope_wire::{smb1, smb2};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Shorter pauses come from programs: the simplest human reaction takes 105 to 380 ms (Card, Moran and Newell, "The
/// Psychology of Human-Computer Interaction", 1983).
const PERSON_LEAST: Nanos = Nanos(100_000_000);
const USER_PAUSE: Nanos = Nanos(700_000_000);
/// Client-server pairs searched for causes.
pub(crate) const PAIRS_MAX: usize = 4_096;
/// Clients, and client-server pairs, with a timeline.
pub(crate) const TIMELINES_MAX: usize = 512;
/// Servers with a timeline.
pub(crate) const SERVERS_MAX: usize = 256;
/// Paths opened again or listed.
pub(crate) const PATHS_MAX: usize = 16_384;
/// Bytes of their names.
pub(crate) const PATH_NAMES_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct PairKey {
    pub(crate) client: IpAddr,
    pub(crate) server: SocketAddr,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct PathKey {
    pub(crate) pair: PairKey,
    pub(crate) share: Option<Arc<str>>,
    pub(crate) path: Arc<str>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Collector {
    /// Open connections. Not serialized; see [`Collector::is_settled`].
    #[serde(skip)]
    flows: HashMap<FlowId, Box<FlowFacts>, ahash::RandomState>,
    #[serde(deserialize_with = "pairs")]
    pairs: BottomKTable<PairKey, PairFacts>,
    #[serde(deserialize_with = "paths")]
    paths: BottomKTable<PathKey, PathFacts>,
    timelines: Timelines,
    episodes: Episodes,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Timelines {
    #[serde(deserialize_with = "timelines")]
    traffic: BottomKTable<PairKey, TrafficOverTime>,
    #[serde(deserialize_with = "timelines")]
    busy: BottomKTable<IpAddr, BusyOverTime>,
    #[serde(deserialize_with = "servers")]
    responses: BottomKTable<SocketAddr, ResponsesOverTime>,
}

impl Default for Timelines {
    fn default() -> Timelines {
        Timelines {
            traffic: BottomKTable::new(TIMELINES_MAX),
            busy: BottomKTable::new(TIMELINES_MAX),
            responses: BottomKTable::new(SERVERS_MAX),
        }
    }
}

fn pairs<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<PairKey, PairFacts>, D::Error> {
    BottomKTable::new(PAIRS_MAX).filled(entries)
}

fn paths<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<PathKey, PathFacts>, D::Error> {
    no_paths().filled(entries)
}

fn timelines<'de, K, V, D>(entries: D) -> Result<BottomKTable<K, V>, D::Error>
where
    K: std::hash::Hash + Ord + Clone + Deserialize<'de>,
    V: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    BottomKTable::new(TIMELINES_MAX).filled(entries)
}

fn servers<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<SocketAddr, ResponsesOverTime>, D::Error> {
    BottomKTable::new(SERVERS_MAX).filled(entries)
}

fn no_paths() -> BottomKTable<PathKey, PathFacts> {
    let weigh = |key: &PathKey| key.path.len() + key.share.as_ref().map_or(0, |share| share.len());
    BottomKTable::weighing(PATHS_MAX, weigh, PATH_NAMES_MAX)
}

#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) pairs: Vec<(PairKey, PairFacts)>,
    pub(crate) paths: Vec<(PathKey, PathFacts)>,
    pub(crate) traffic: Vec<(PairKey, TrafficOverTime)>,
    pub(crate) busy: Vec<(IpAddr, BusyOverTime)>,
    pub(crate) responses: Vec<(SocketAddr, ResponsesOverTime)>,
    pub(crate) paces: Vec<(IpAddr, EpisodeWaits)>,
}

#[derive(Debug, Clone)]
struct FlowFacts {
    pair: PairKey,
    covered: [Covered; Fact::ALL.len()],
    paths: RecentPaths,
    attempted: Attempted,
    small_files: PeakWindowCount,
    notified: PeakWindowCount,
    writes: Option<Box<WriteStream>>,
    worked: Option<Timestamp>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            flows: HashMap::default(),
            pairs: BottomKTable::new(PAIRS_MAX),
            paths: no_paths(),
            timelines: Timelines::default(),
            episodes: Episodes::default(),
        }
    }
}

impl Collector {
    /// Adds an exchange. Exchanges of a connection must come in the order in which they end.
    pub fn exchange(&mut self, exchange: &Exchange) {
        let facts = facts_of(exchange);
        let seen = ExchangeSample::new(exchange);
        let pair = PairKey { client: exchange.endpoints.client.ip(), server: exchange.endpoints.server };
        let flow = self.flows.entry(exchange.flow).or_insert_with(|| Box::new(FlowFacts::new(pair)));
        let known = self.pairs.recent_entry(|known| *known == pair, || pair, |_, _| {});
        let mut ignored = None;
        let counts = known.unwrap_or_else(|| ignored.insert(PairFacts::default()));
        let waited = flow.count(counts, exchange, facts, &seen);
        let service = note_served(counts, exchange);
        note_events(counts, exchange);
        if let Some(wait) = Wait::from_exchange(exchange) {
            counts.waits.add(wait);
        }
        flow.attempted.record(exchange, &mut counts.refused);
        if let Some(end) = exchange.response.last {
            self.timelines.record(pair, exchange, service, (end.time, waited));
        }
        self.episodes.record(exchange, facts, waited, &mut flow.worked);
        note_think_time(counts, exchange);
        if facts.has(Fact::Write) && facts.has(Fact::Transfer) {
            flow.write(counts, exchange);
        }
        let Some(start) = exchange.start() else { return };
        if facts.has(Fact::Notified) {
            flow.notify(counts, exchange, start);
        }
        if !facts.has(Fact::Command) || exchange.path.is_none() {
            return;
        }
        let paths = &mut self.paths;
        let closed =
            flow.paths.record(exchange, &seen, facts, &mut |share, path, facts| keep(paths, pair, share, path, facts));
        if let Some(closed) = closed.filter(|closed| (1..=SIXTY_FOUR_K).contains(&closed.moved)) {
            flow.close_small_file(counts, &closed, &seen, start);
        }
    }

    pub fn closed(&mut self, connection: &ConnectionSummary) {
        if let Some(flow) = self.flows.remove(&connection.flow) {
            self.settle(*flow);
        }
    }

    fn settle(&mut self, flow: FlowFacts) {
        let pair = flow.pair;
        let slowdown = flow.writes.as_ref().and_then(|stream| stream.slowdown());
        if let Some(known) = self.pairs.entry(&pair, |_, _| {}) {
            known.note_slowdown(slowdown);
            flow.attempted.finish(&mut known.refused);
        }
        let paths = &mut self.paths;
        flow.paths.finish(&mut |share, path, facts| keep(paths, pair, share, path, facts));
    }

    /// Takes the facts since the last call. Connections go on.
    pub fn take_part(&mut self) -> Collector {
        let flows = std::mem::take(&mut self.flows);
        std::mem::replace(self, Collector { flows, ..Collector::default() })
    }

    pub fn merge(&mut self, other: Collector) {
        self.flows.extend(other.flows);
        self.episodes.merge(other.episodes);
        self.pairs.merge(other.pairs, PairFacts::merge, |_, _| {});
        self.paths.merge(other.paths, PathFacts::merge, |_, _| {});
        self.timelines.merge(other.timelines);
    }

    /// Returns true if no connection is open, so that the collector can be serialized.
    pub fn is_settled(&self) -> bool {
        self.flows.is_empty()
    }

    pub fn episodes(&self) -> Vec<Episode> {
        self.episodes.finish()
    }

    pub(crate) fn finish(&self) -> Collected {
        let mut all = self.clone();
        let mut open: Vec<(FlowId, Box<FlowFacts>)> = all.flows.drain().collect();
        open.sort_by_key(|(flow, _)| *flow);
        open.into_iter().for_each(|(_, flow)| all.settle(*flow));
        Collected {
            pairs: all.pairs.into_entries(),
            paths: all.paths.into_entries(),
            traffic: all.timelines.traffic.into_entries(),
            busy: all.timelines.busy.into_entries(),
            responses: all.timelines.responses.into_entries(),
            paces: all.episodes.paces(),
        }
    }
}

impl Timelines {
    fn record(&mut self, pair: PairKey, exchange: &Exchange, light: Option<Nanos>, waited: (Timestamp, Nanos)) {
        if exchange.group == CommandGroup::Waiting || !exchange.is_complete() {
            return;
        }
        if let Some(traffic) = self.traffic.recent_entry(|known| *known == pair, || pair, |_, _| {}) {
            traffic.record(exchange, light);
        }
        let (end, more) = waited;
        if let Some(busy) = self.busy.recent_entry(|known| *known == pair.client, || pair.client, |_, _| {}) {
            busy.0.spread(end.0.saturating_sub(more.0), end.0, |busy, part| busy.0 += part);
        }
        let server = pair.server;
        if let Some(responses) = self.responses.recent_entry(|known| *known == server, || server, |_, _| {}) {
            responses.0.at(end).0 += 1;
        }
    }

    fn merge(&mut self, other: Timelines) {
        self.traffic.merge(other.traffic, TrafficOverTime::merge, |_, _| {});
        self.busy.merge(other.busy, BusyOverTime::merge, |_, _| {});
        self.responses.merge(other.responses, ResponsesOverTime::merge, |_, _| {});
    }
}

#[inline]
fn note_served(counts: &mut PairFacts, exchange: &Exchange) -> Option<Nanos> {
    let kind = CommandClass::from_exchange(exchange).filter(|_| exchange.is_complete())?;
    counts.served_mut(kind).record(server_time(exchange)?);
    let is_light = CommandClass::LIGHT.contains(&kind) || kind == CommandClass::Open;
    exchange.time(TimeKind::ServiceTime).filter(|_| is_light)
}

#[inline]
fn note_events(counts: &mut PairFacts, exchange: &Exchange) {
    match exchange.command {
        Command::Smb2(smb2::Smb2Command::OPLOCK_BREAK) | Command::Smb1(smb1::Smb1Command::LOCKING_ANDX)
            if exchange.outcome == ExchangeOutcome::ServerInitiated =>
        {
            let told = exchange.response.last.or(exchange.response.first);
            told.into_iter().for_each(|stamp| counts.breaks.add(stamp.time, &exchange.path));
        }
        Command::Smb2(smb2::Smb2Command::LOCK) | Command::Smb1(smb1::Smb1Command::LOCKING_ANDX)
            if exchange.group == CommandGroup::Locking =>
        {
            exchange.start().into_iter().for_each(|start| counts.releases.add(start, &exchange.path));
        }
        _ if counts.count(Fact::Lock) > 0 && is_close(exchange) => {
            exchange.start().into_iter().for_each(|start| counts.releases.add(start, &exchange.path));
        }
        _ => {}
    }
}

impl FlowFacts {
    fn new(pair: PairKey) -> FlowFacts {
        FlowFacts {
            pair,
            covered: std::array::from_fn(|_| Covered::default()),
            paths: RecentPaths::default(),
            attempted: Attempted::default(),
            small_files: PeakWindowCount::default(),
            notified: PeakWindowCount::default(),
            writes: None,
            worked: None,
        }
    }

    /// Counts an exchange under each of its facts. Returns the waiting time that no earlier command covers.
    #[inline]
    fn count(
        &mut self,
        counts: &mut PairFacts,
        exchange: &Exchange,
        facts: FactSet,
        seen: &ExchangeSample<'_>,
    ) -> Nanos {
        // Set in the loop: each exchange that counts is either a command or encrypted.
        let mut waited = Nanos(0);
        for fact in facts.iter() {
            let covered = &mut self.covered[fact as usize];
            let is_timed = fact.is_timed();
            let covers = |start, end| if is_timed { covered.add(start, end) } else { Nanos(0) };
            // A delayed acknowledgment holds back one message: count its transfer time, not the response time.
            let half = match fact {
                Fact::HeldRequest => Some(&exchange.request),
                Fact::HeldResponse => Some(&exchange.response),
                _ => None,
            };
            let held = half.map(|half| ExchangeSample { took: half.transfer().map(|time| time.0), ..*seen });
            let more = counts.counted_mut(fact).record(held.as_ref().unwrap_or(seen), covers);
            if matches!(fact, Fact::Command | Fact::Encrypted) {
                waited = more;
            }
        }
        waited
    }

    #[inline]
    fn write(&mut self, counts: &mut PairFacts, write: &Exchange) {
        if self.writes.as_mut().is_some_and(|stream| stream.takes(write)) {
            return;
        }
        if let Some(over) = std::mem::replace(&mut self.writes, WriteStream::begin(write).map(Box::new)) {
            counts.note_slowdown(over.slowdown());
        }
    }

    fn notify(&mut self, counts: &mut PairFacts, exchange: &Exchange, start: Timestamp) {
        // A subscription may be outstanding for hours; the response notifies the client.
        let told = exchange.response.last.map_or(start, |stamp| stamp.time);
        self.notified.record(told, Nanos(1_000_000_000));
        counts.notified.merge(&self.notified);
    }

    fn close_small_file(
        &mut self,
        counts: &mut PairFacts,
        closed: &Closed,
        seen: &ExchangeSample<'_>,
        start: Timestamp,
    ) {
        let fact = if closed.again { Fact::SmallFileAgain } else { Fact::SmallFile };
        counts.counted_mut(fact).record(&ExchangeSample { bytes: closed.moved, ..*seen }, |_, _| Nanos(closed.waited));
        if !closed.again {
            self.small_files.record(start, COPY_WINDOW);
            counts.small_files.merge(&self.small_files);
        }
    }
}

#[inline]
fn note_think_time(counts: &mut PairFacts, exchange: &Exchange) {
    let Some(think) = exchange.think_time else { return };
    match think {
        _ if think < PERSON_LEAST => counts.quick_think = counts.quick_think.saturating_add(think.0),
        _ if think >= USER_PAUSE => counts.user_pauses += 1,
        _ => {}
    }
}

fn keep(
    paths: &mut BottomKTable<PathKey, PathFacts>,
    pair: PairKey,
    share: &Option<Arc<str>>,
    path: &Arc<str>,
    facts: &PathFacts,
) {
    let key = PathKey { pair, share: share.clone(), path: Arc::clone(path) };
    if let Some(known) = paths.entry(&key, |_, _| {}) {
        known.merge(facts);
    }
}

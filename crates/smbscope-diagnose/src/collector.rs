//! Exchanges in, facts out: what detectors go by, by client and by path.

use crate::client::{ClientFacts, Seen, Window};
use crate::episodes::{Episode, Episodes};
use crate::facts::{Fact, SIXTY_FOUR_K, facts_of};
use crate::path::{COPY_WINDOW, PathFacts, RecentPaths};
use crate::writes::WriteStream;
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{Connection, Exchange, FlowId, Nanos, Timestamp};
use smbscope_stats::{Bounded, Covered};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A shorter pause is that of a program: a person takes longer to see and act (Card, Moran and Newell, "The Psychology of
/// Human-Computer Interaction", 1983: 105 to 380 ms for the simplest reaction).
const PERSON_LEAST: Nanos = Nanos(100_000_000);
/// Clients that are distinguished.
pub(crate) const CLIENTS_MAX: usize = 4_096;
/// Paths that were opened again or listed, of all clients.
pub(crate) const PATHS_MAX: usize = 16_384;
/// Bytes of their names.
pub(crate) const PATH_NAMES_MAX: usize = 4 << 20;

/// A path of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct PathKey {
    pub(crate) client: IpAddr,
    pub(crate) share: Option<Arc<str>>,
    pub(crate) path: Arc<str>,
}

/// What detectors need to know of the exchanges so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Collector {
    /// Connections that are not over. They are not serialized.
    #[serde(skip)]
    flows: HashMap<FlowId, Box<Flow>, ahash::RandomState>,
    #[serde(deserialize_with = "clients")]
    clients: Bounded<IpAddr, ClientFacts>,
    #[serde(deserialize_with = "paths")]
    paths: Bounded<PathKey, PathFacts>,
    episodes: Episodes,
}

fn clients<'de, D: Deserializer<'de>>(entries: D) -> Result<Bounded<IpAddr, ClientFacts>, D::Error> {
    no_clients().filled(entries)
}

fn paths<'de, D: Deserializer<'de>>(entries: D) -> Result<Bounded<PathKey, PathFacts>, D::Error> {
    no_paths().filled(entries)
}

fn no_clients() -> Bounded<IpAddr, ClientFacts> {
    Bounded::new(CLIENTS_MAX)
}

fn no_paths() -> Bounded<PathKey, PathFacts> {
    let weigh = |key: &PathKey| key.path.len() + key.share.as_ref().map_or(0, |share| share.len());
    Bounded::weighing(PATHS_MAX, weigh, PATH_NAMES_MAX)
}

/// What was collected, by client and by path.
pub(crate) type Found = (Vec<(IpAddr, ClientFacts)>, Vec<(PathKey, PathFacts)>);

/// A connection that is followed.
#[derive(Debug, Clone)]
struct Flow {
    client: IpAddr,
    /// The time of each fact.
    covered: [Covered; Fact::ALL.len()],
    paths: RecentPaths,
    small_files: Window,
    notified: Window,
    writes: Option<Box<WriteStream>>,
    /// The end of the last command that belongs to an episode.
    worked: Option<Timestamp>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector { flows: HashMap::default(), clients: no_clients(), paths: no_paths(), episodes: Episodes::default() }
    }
}

impl Collector {
    /// Takes an exchange of a connection, in the order in which they end.
    pub fn exchange(&mut self, exchange: &Exchange) {
        let facts = facts_of(exchange);
        let seen = Seen::of(exchange);
        let client = exchange.endpoints.client.ip();
        let flow = self.flows.entry(exchange.flow).or_insert_with(|| Box::new(Flow::of(client)));
        let known = self.clients.recent_entry(|known| *known == client, || client, |_, _| {});
        let mut ignored = None;
        let counts = known.unwrap_or_else(|| ignored.insert(ClientFacts::default()));
        // All of them are commands, or encrypted.
        let mut waited = Nanos(0);
        for fact in facts.iter() {
            let covered = &mut flow.covered[fact as usize];
            let is_timed = fact.is_timed();
            let covers = |start, end| if is_timed { covered.add(start, end) } else { Nanos(0) };
            let more = counts.of_mut(fact).record(&seen, covers);
            if matches!(fact, Fact::Command | Fact::Encrypted) {
                waited = more;
            }
        }
        self.episodes.record(exchange, facts, waited, &mut flow.worked);
        if let Some(think) = exchange.think_time.filter(|think| *think < PERSON_LEAST) {
            counts.quick_think = counts.quick_think.saturating_add(think.0);
        }
        if facts.has(Fact::Write)
            && facts.has(Fact::Transfer)
            && let Some(over) = flow.write(exchange)
        {
            counts.note_slowdown(over.slowdown());
        }
        let Some(start) = exchange.start() else { return };
        if facts.has(Fact::Notified) {
            // A subscription may have been outstanding for hours: the client is told with the response.
            let told = exchange.response.last.map_or(start, |stamp| stamp.time);
            flow.notified.record(told, Nanos(1_000_000_000));
            counts.notified.merge(&flow.notified);
        }
        if !facts.has(Fact::Command) || exchange.path.is_none() {
            return;
        }
        let paths = &mut self.paths;
        let closed = flow
            .paths
            .record(exchange, &seen, facts, &mut |share, path, facts| keep(paths, client, share, path, facts));
        let Some(closed) = closed.filter(|closed| (1..=SIXTY_FOUR_K).contains(&closed.moved)) else { return };
        let fact = if closed.again { Fact::SmallFileAgain } else { Fact::SmallFile };
        counts.of_mut(fact).record(&Seen { bytes: closed.moved, ..seen }, |_, _| Nanos(closed.waited));
        if !closed.again {
            flow.small_files.record(start, COPY_WINDOW);
            counts.small_files.merge(&flow.small_files);
        }
    }

    /// A connection is over.
    pub fn closed(&mut self, connection: &Connection) {
        if let Some(flow) = self.flows.remove(&connection.flow) {
            self.settle(*flow);
        }
    }

    fn settle(&mut self, flow: Flow) {
        if let Some(slowdown) = flow.writes.as_ref().and_then(|stream| stream.slowdown())
            && let Some(known) = self.clients.entry(&flow.client, |_, _| {})
        {
            known.note_slowdown(Some(slowdown));
        }
        let paths = &mut self.paths;
        flow.paths.finish(&mut |share, path, facts| keep(paths, flow.client, share, path, facts));
    }

    /// Adds what another collector took, of other connections.
    pub fn merge(&mut self, other: Collector) {
        self.flows.extend(other.flows);
        self.episodes.merge(other.episodes);
        self.clients.merge(other.clients, ClientFacts::merge, |_, _| {});
        self.paths.merge(other.paths, PathFacts::merge, |_, _| {});
    }

    /// Whether all connections are over: what it took can then be serialized.
    pub fn is_settled(&self) -> bool {
        self.flows.is_empty()
    }

    /// The episodes that are worth telling, in the order of time.
    pub fn episodes(&self) -> Vec<Episode> {
        self.episodes.finish()
    }

    /// What was collected, connections that are not over included: by client, and by path.
    pub(crate) fn finish(&self) -> Found {
        let mut all = self.clone();
        let mut open: Vec<(FlowId, Box<Flow>)> = all.flows.drain().collect();
        open.sort_by_key(|(flow, _)| *flow);
        open.into_iter().for_each(|(_, flow)| all.settle(*flow));
        let clients = all.clients.iter().map(|(client, facts)| (*client, facts.clone()));
        let paths = all.paths.iter().map(|(key, facts)| (key.clone(), facts.clone()));
        (clients.collect(), paths.collect())
    }
}

impl Flow {
    fn of(client: IpAddr) -> Flow {
        Flow {
            client,
            covered: std::array::from_fn(|_| Covered::default()),
            paths: RecentPaths::default(),
            small_files: Window::default(),
            notified: Window::default(),
            writes: None,
            worked: None,
        }
    }

    /// Takes a write of file data; the stream of writes that is over with it.
    fn write(&mut self, write: &Exchange) -> Option<Box<WriteStream>> {
        if self.writes.as_mut().is_some_and(|stream| stream.takes(write)) {
            return None;
        }
        std::mem::replace(&mut self.writes, WriteStream::of(write).map(Box::new))
    }
}

fn keep(
    paths: &mut Bounded<PathKey, PathFacts>,
    client: IpAddr,
    share: &Option<Arc<str>>,
    path: &Arc<str>,
    facts: &PathFacts,
) {
    let key = PathKey { client, share: share.clone(), path: Arc::clone(path) };
    if let Some(known) = paths.entry(&key, |_, _| {}) {
        known.merge(facts);
    }
}

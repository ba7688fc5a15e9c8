//! Time attribution of all connections, and sums by client and server.

use super::TimeSplit;
use super::sweep::Sweeper;
use crate::bounded::BottomKTable;
use crate::entity::ENTITIES_MAX;
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{ConnectionSummary, Exchange, FlowId, Settled};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

/// Connections with a time split of their own.
pub(super) const SPLITS_MAX: usize = 100_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Splits {
    pub whole: TimeSplit,
    pub connections: Vec<(FlowId, TimeSplit)>,
    pub clients: Vec<(IpAddr, TimeSplit)>,
    pub servers: Vec<(SocketAddr, TimeSplit)>,
}

impl Splits {
    pub fn connection(&self, flow: FlowId) -> Option<&TimeSplit> {
        find(&self.connections, &flow)
    }

    pub fn client(&self, client: &IpAddr) -> Option<&TimeSplit> {
        find(&self.clients, client)
    }

    pub fn server(&self, server: &SocketAddr) -> Option<&TimeSplit> {
        find(&self.servers, server)
    }
}

fn find<'a, K: Ord>(entries: &'a [(K, TimeSplit)], key: &K) -> Option<&'a TimeSplit> {
    entries.binary_search_by(|(found, _)| found.cmp(key)).ok().map(|at| &entries[at].1)
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SplitTable {
    /// Bounded by the analysis. Not serialized, because it is empty at the end of an analysis.
    #[serde(skip)]
    flows: HashMap<FlowId, Box<Sweeper>, ahash::RandomState>,
    whole: TimeSplit,
    #[serde(deserialize_with = "connections")]
    connections: BottomKTable<FlowId, TimeSplit>,
    #[serde(deserialize_with = "entities")]
    clients: BottomKTable<IpAddr, TimeSplit>,
    #[serde(deserialize_with = "entities")]
    servers: BottomKTable<SocketAddr, TimeSplit>,
}

fn connections<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<FlowId, TimeSplit>, D::Error> {
    BottomKTable::new(SPLITS_MAX).filled(entries)
}

fn entities<'de, K, D>(entries: D) -> Result<BottomKTable<K, TimeSplit>, D::Error>
where
    K: Hash + Ord + Clone + Deserialize<'de>,
    D: Deserializer<'de>,
{
    BottomKTable::new(ENTITIES_MAX).filled(entries)
}

impl SplitTable {
    pub(crate) fn new() -> SplitTable {
        SplitTable {
            flows: HashMap::default(),
            whole: TimeSplit::default(),
            connections: BottomKTable::new(SPLITS_MAX),
            clients: BottomKTable::new(ENTITIES_MAX),
            servers: BottomKTable::new(ENTITIES_MAX),
        }
    }

    /// Adds an exchange. A connection enters the sums if one of its exchanges `counts`, or if it has none.
    pub(crate) fn follow(&mut self, exchange: &Exchange, counts: bool, busy: &mut impl FnMut(i64, i64)) {
        let sweeper = self.flows.entry(exchange.flow).or_default();
        if counts {
            sweeper.has_counted = true;
        } else {
            sweeper.has_filtered_out = true;
        }
        sweeper.follow(exchange, counts, busy);
    }

    pub(crate) fn settled(&mut self, settled: &Settled, busy: &mut impl FnMut(i64, i64)) {
        if let Some(sweeper) = self.flows.get_mut(&settled.flow) {
            sweeper.settled(settled, busy);
        }
    }

    pub(crate) fn closed(&mut self, connection: &ConnectionSummary, busy: &mut impl FnMut(i64, i64)) {
        let sweeper = self.flows.remove(&connection.flow).unwrap_or_default();
        let counts = sweeper.has_counted || !sweeper.has_filtered_out;
        let split = sweeper.finish(connection, busy);
        if counts {
            self.whole.add(&split);
            if let Some(entry) = self.connections.entry(&connection.flow, |_, _| {}) {
                entry.add(&split);
            }
            if let Some(entry) = self.clients.entry(&connection.endpoints.client.ip(), |_, _| {}) {
                entry.add(&split);
            }
            if let Some(entry) = self.servers.entry(&connection.endpoints.server, |_, _| {}) {
                entry.add(&split);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: SplitTable) {
        self.flows.extend(other.flows);
        self.whole.add(&other.whole);
        self.connections.merge(other.connections, TimeSplit::add, |_, _| {});
        self.clients.merge(other.clients, TimeSplit::add, |_, _| {});
        self.servers.merge(other.servers, TimeSplit::add, |_, _| {});
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.flows.is_empty()
    }

    pub(crate) fn finish(&self) -> Splits {
        Splits {
            whole: self.whole,
            connections: self.connections.iter().map(|(flow, split)| (*flow, *split)).collect(),
            clients: self.clients.iter().map(|(client, split)| (*client, *split)).collect(),
            servers: self.servers.iter().map(|(server, split)| (*server, *split)).collect(),
        }
    }
}

//! Time attribution: divides the time of connections so that none of it is counted twice. `sweep` has the algorithm.
//!
//! Every moment from the first packet of a connection to its last belongs to one [`TimePart`]:
//!
//! * **Commands are outstanding.** The moment is divided equally among them, and each share goes to the current phase
//!   of its command. Of the service time, the round trip between capture point and server belongs to the network, half
//!   at the beginning and half at the end; if it is unknown, the two are not separated. An incoming response and the
//!   retransmission of a lost segment block the connection and take the whole moment, and so does a server that stops
//!   during a transfer ([`Exchange::standstill`]).
//! * **Nothing is outstanding**, between a response and the next request. Up to [`THINK_MAX`] this is the client's
//!   think time, less the round trip between capture point and client. Longer pauses are idle.
//! * **Expected waits** take moments in which nothing else is outstanding. While only a change notification request is
//!   pending ([`Exchange::is_subscription`]), think time still counts as such.
//! * After an unanswered request, the rest of the connection belongs to the server, or to the network if TCP did not
//!   acknowledge the request.
//! * If the beginning or end of a command was not captured, the time between it and its neighbours is unknown.
//!
//! If a filter selected some of the commands, a moment with at least one of them outstanding is divided among these,
//! and think time before one of them belongs to the client. All other time with work is filtered out.

mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use sweep::CommandSpan;
pub use sweep::THINK_MAX;

use self::sweep::Sweeper;
use crate::bounded::BottomKTable;
use crate::entity::ENTITIES_MAX;
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{ConnectionSummary, Exchange, FlowId, Nanos, Settled};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimePart {
    Think,
    RequestTransfer,
    /// Round trips, and waits for retransmissions.
    Network,
    /// Service time less the round trip.
    Server,
    /// Service time if the round trip is unknown.
    ServerOrNetwork,
    ResponseTransfer,
    Waiting,
    /// Long pauses, and the time before the first request and after the last response.
    Idle,
    Unknown,
    /// Only commands excluded by the filter were outstanding, or the client was thinking before one of them.
    FilteredOut,
}

impl TimePart {
    pub const ALL: [TimePart; 10] = [
        TimePart::Think,
        TimePart::RequestTransfer,
        TimePart::Network,
        TimePart::Server,
        TimePart::ServerOrNetwork,
        TimePart::ResponseTransfer,
        TimePart::Waiting,
        TimePart::Idle,
        TimePart::Unknown,
        TimePart::FilteredOut,
    ];
}

/// Time of connections by phase. Each moment is divided equally among the commands outstanding on a connection, and
/// each share belongs to the phase of its command. While a response is arriving, the whole moment counts as transfer;
/// while a lost segment is being retransmitted, as network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeSplit {
    /// Number of connections in the sum; 1 for a single connection.
    pub connections: u64,
    /// First to last packet, summed over connections. Equals the sum of the parts below.
    pub elapsed_ns: Nanos,
    /// Time of the client itself: nothing outstanding, for at most 10 s between a response and the next request.
    pub think_ns: Nanos,
    /// First to last packet of requests.
    pub request_transfer_ns: Nanos,
    /// Round trips between client, capture point and server, and retransmission delays.
    pub network_ns: Nanos,
    /// Service time minus the round-trip time.
    pub server_ns: Nanos,
    /// Service time if the round-trip time is unknown.
    pub server_or_network_ns: Nanos,
    /// First to last packet of responses.
    pub response_transfer_ns: Nanos,
    /// Only expected waits outstanding.
    pub waiting_ns: Nanos,
    /// Nothing outstanding for more than 10 s, before the first request, or after the last response.
    pub idle_ns: Nanos,
    /// A command outstanding whose end is not in the capture.
    pub unknown_ns: Nanos,
    /// Only commands excluded by the filter outstanding, or think time before such a command. 0 without a filter.
    pub filtered_out_ns: Nanos,
    /// At least one command outstanding, except for expected waits.
    pub busy_ns: Nanos,
    /// Outstanding time, summed over commands. Divided by `busy_ns`, it is the mean concurrency.
    pub outstanding_ns: Nanos,
    /// Round trips that the client waited for one after the other: the largest number of commands of a connection that
    /// did not overlap, without expected waits, summed over connections. A compound counts once.
    pub round_trips: u64,
}

impl TimeSplit {
    fn part_mut(&mut self, part: TimePart) -> &mut Nanos {
        match part {
            TimePart::Think => &mut self.think_ns,
            TimePart::RequestTransfer => &mut self.request_transfer_ns,
            TimePart::Network => &mut self.network_ns,
            TimePart::Server => &mut self.server_ns,
            TimePart::ServerOrNetwork => &mut self.server_or_network_ns,
            TimePart::ResponseTransfer => &mut self.response_transfer_ns,
            TimePart::Waiting => &mut self.waiting_ns,
            TimePart::Idle => &mut self.idle_ns,
            TimePart::Unknown => &mut self.unknown_ns,
            TimePart::FilteredOut => &mut self.filtered_out_ns,
        }
    }

    pub fn part(mut self, part: TimePart) -> Nanos {
        *self.part_mut(part)
    }

    fn add_to_part(&mut self, part: TimePart, time: Nanos) {
        let sum = self.part_mut(part);
        *sum = Nanos(sum.0.saturating_add(time.0));
        self.elapsed_ns = Nanos(self.elapsed_ns.0.saturating_add(time.0));
    }

    /// Time with a command outstanding according to the parts: server, network and transfers.
    pub fn waited(&self) -> Nanos {
        let parts = [
            TimePart::RequestTransfer,
            TimePart::Network,
            TimePart::Server,
            TimePart::ServerOrNetwork,
            TimePart::ResponseTransfer,
        ];
        Nanos(parts.into_iter().fold(0, |sum: i64, part| sum.saturating_add(self.part(part).0)))
    }

    pub fn transfers(&self) -> Nanos {
        let [request, response] = [TimePart::RequestTransfer, TimePart::ResponseTransfer].map(|part| self.part(part).0);
        Nanos(request.saturating_add(response))
    }

    pub fn active(&self) -> Nanos {
        Nanos(self.waited().0.saturating_add(self.think_ns.0))
    }

    pub fn concurrency(&self) -> Option<f64> {
        (self.busy_ns.0 > 0).then(|| self.outstanding_ns.0 as f64 / self.busy_ns.0 as f64)
    }

    pub fn add(&mut self, other: &TimeSplit) {
        self.connections += other.connections;
        self.round_trips += other.round_trips;
        self.busy_ns = Nanos(self.busy_ns.0.saturating_add(other.busy_ns.0));
        self.outstanding_ns = Nanos(self.outstanding_ns.0.saturating_add(other.outstanding_ns.0));
        for part in TimePart::ALL {
            self.add_to_part(part, other.part(part));
        }
    }
}

const PARTS: usize = TimePart::ALL.len();

/// Sums of time by part without rounding loss: undivided time in nanoseconds, shares in units of 2⁻³² ns.
#[derive(Debug, Clone, Default)]
struct Shares {
    whole: [i64; PARTS],
    shared: [u128; PARTS],
    divided: i64,
}

impl Shares {
    fn add(&mut self, part: TimePart, length: i64) {
        self.whole[part as usize] += length;
    }

    fn divide(&mut self, counts: &[u32; PARTS], length: i64) {
        let total: u128 = counts.iter().map(|count| u128::from(*count)).sum();
        let Some(share) = ((length.unsigned_abs() as u128) << 32).checked_div(total) else { return };
        self.divided += length;
        for (sum, count) in self.shared.iter_mut().zip(counts) {
            *sum += share * u128::from(*count);
        }
    }

    /// Writes whole nanoseconds that add up to the recorded time; those lost in rounding go to the largest fractions.
    fn finish(&self, split: &mut TimeSplit) {
        let mut parts: [i64; PARTS] = std::array::from_fn(|part| (self.shared[part] >> 32) as i64);
        let mut by_rest: Vec<usize> = (0..PARTS).filter(|part| self.shared[*part] > 0).collect();
        by_rest.sort_by_key(|part| std::cmp::Reverse(self.shared[*part] as u32));
        let left = self.divided - parts.iter().sum::<i64>();
        for part in by_rest.into_iter().cycle().take(left.max(0) as usize) {
            parts[part] += 1;
        }
        for (part, (shared, whole)) in TimePart::ALL.into_iter().zip(parts.iter().zip(self.whole)) {
            split.add_to_part(part, Nanos(shared + whole));
        }
    }
}

/// Connections with a time split of their own.
const SPLITS_MAX: usize = 100_000;

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
            self.add(connection, &split);
        }
    }

    fn add(&mut self, connection: &ConnectionSummary, split: &TimeSplit) {
        self.whole.add(split);
        if let Some(entry) = self.connections.entry(&connection.flow, |_, _| {}) {
            entry.add(split);
        }
        if let Some(entry) = self.clients.entry(&connection.endpoints.client.ip(), |_, _| {}) {
            entry.add(split);
        }
        if let Some(entry) = self.servers.entry(&connection.endpoints.server, |_, _| {}) {
            entry.add(split);
        }
    }

    /// Takes the time attributed since the last call. The time of a connection without a counted exchange so far is taken
    /// once it has one.
    pub(crate) fn take_part(&mut self, open: &[ConnectionSummary]) -> SplitTable {
        for connection in open {
            let Some(sweeper) = self.flows.get_mut(&connection.flow).filter(|sweeper| sweeper.has_counted) else {
                continue;
            };
            let split = sweeper.take_part();
            self.add(connection, &split);
        }
        let flows = std::mem::take(&mut self.flows);
        std::mem::replace(self, SplitTable { flows, ..SplitTable::new() })
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

//! Facts for the detectors, counted by [`Collector`] while exchanges pass, then joined with the rest in
//! [`DiagnosisFacts`].

mod activity;
mod collector;
mod counts;
mod path;
mod waits;

pub(crate) use activity::Traffic;
pub use collector::Collector;
pub(crate) use collector::PathKey;
pub(crate) use counts::Count;
pub(crate) use path::PathFacts;
pub(crate) use waits::{CommandClass, RefusalReason, ServerTimeHistogram, Wait};

use crate::catalogue::Catalogue;
use crate::episodes::EpisodeWaits;
use crate::slow::Slow;
use activity::TrafficOverTime;
use collector::{Collected, PairKey};
use counts::PairFacts;
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::prose::{clean, prose_percent, unbroken};
use smbscope_model::units::short_bytes;
use smbscope_model::{CaptureInfo, ConnectAttempts, ConnectionSummary, Nanos, Quality, Timestamp, UntimedShare};
use smbscope_stats::sides::SidesFigures;
use smbscope_stats::{Aggregate, EntityStatistics, THINK_MAX, TimePart, TimeSplit};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Characters of a path in evidence.
const NAME_MAX: usize = 60;
/// Users named per client and server.
const USERS_MAX: usize = 8;

#[derive(Debug, Clone, Copy)]
pub struct DiagnosisContext<'a> {
    pub catalogue: &'a Catalogue,
    pub slow: &'a Slow,
    pub aggregate: &'a Aggregate,
    pub connections: &'a [ConnectionSummary],
    pub attempts: &'a ConnectAttempts,
    pub quality: &'a Quality,
    pub not_timed: UntimedShare,
    pub captures: &'a [CaptureInfo],
    pub last: Option<Timestamp>,
    pub filter: Option<&'a str>,
    /// The way between capture points, if there are several.
    pub sides: Option<&'a SidesFigures>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientWaits {
    pub(crate) waited: Nanos,
    pub(crate) active: Nanos,
    /// `waited` divided by the sum of waits over connections: below 1 if connections overlap.
    pub(crate) scale: f64,
    pub(crate) pace: EpisodeWaits,
}

#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) context: &'a DiagnosisContext<'a>,
    pub(crate) client: IpAddr,
    pub(crate) server: SocketAddr,
    pub(crate) facts: &'a PairFacts,
    pub(crate) paths: &'a [(PathKey, PathFacts)],
    pub(crate) traffic: Option<&'a TrafficOverTime>,
    pub(crate) connections: Vec<&'a ConnectionSummary>,
    pub(crate) split: TimeSplit,
    pub(crate) whole: ClientWaits,
}

#[derive(Debug)]
pub(crate) struct DiagnosisFacts<'a> {
    pub(crate) context: &'a DiagnosisContext<'a>,
    pub(crate) pairs: Vec<Pair<'a>>,
    /// Bin width, and responses by bin start, of each server.
    pub(crate) responses: BTreeMap<SocketAddr, (Nanos, Vec<(Timestamp, u64)>)>,
}

pub(crate) struct CollectedFacts(Collected);

impl CollectedFacts {
    pub(crate) fn new(collector: &Collector) -> CollectedFacts {
        CollectedFacts(collector.finish())
    }
}

impl<'a> DiagnosisFacts<'a> {
    pub(crate) fn least_time(&self) -> Option<Nanos> {
        CaptureInfo::least_time(self.context.captures)
    }

    pub(crate) fn new(gathered: &'a CollectedFacts, context: &'a DiagnosisContext<'a>) -> DiagnosisFacts<'a> {
        let CollectedFacts(collected) = gathered;
        let mut connections: HashMap<PairKey, Vec<&ConnectionSummary>> = HashMap::new();
        for connection in context.connections {
            let (client, server) = (connection.endpoints.client.ip(), connection.endpoints.server);
            connections.entry(PairKey { client, server }).or_default().push(connection);
        }
        let clients = clients(collected, context);
        let pairs = collected.pairs.iter().map(|(key, facts)| {
            let from = collected.paths.partition_point(|(path, _)| path.pair < *key);
            let to = collected.paths.partition_point(|(path, _)| path.pair <= *key);
            let connections = connections.remove(key).unwrap_or_default();
            let split = sum(context, &connections);
            let traffic = collected.traffic.binary_search_by(|(known, _)| known.cmp(key)).ok();
            Pair {
                context,
                client: key.client,
                server: key.server,
                facts,
                paths: &collected.paths[from..to],
                traffic: traffic.map(|at| &collected.traffic[at].1),
                split,
                connections,
                whole: clients.get(&key.client).copied().unwrap_or(ClientWaits {
                    waited: split.waited(),
                    active: split.active(),
                    scale: 1.0,
                    pace: EpisodeWaits::default(),
                }),
            }
        });
        let responses = collected.responses.iter().map(|(server, bins)| {
            let counts = bins.0.finish().into_iter().map(|(start, responses)| (start, responses.0)).collect();
            (*server, (bins.0.width(), counts))
        });
        DiagnosisFacts { context, pairs: pairs.collect(), responses: responses.collect() }
    }

    pub(crate) fn of_server(&self, server: SocketAddr) -> impl Iterator<Item = &Pair<'a>> {
        self.pairs.iter().filter(move |pair| pair.server == server)
    }

    pub(crate) fn pair(&self, client: IpAddr, server: SocketAddr) -> Option<&Pair<'a>> {
        self.of_server(server).find(|pair| pair.client == client)
    }

    pub(crate) fn of_client(&self, client: IpAddr) -> Option<&Pair<'a>> {
        self.pairs.iter().find(|pair| pair.client == client)
    }

    pub(crate) fn servers(&self) -> Vec<SocketAddr> {
        let attempted = self.context.attempts.listed.iter().map(|attempt| attempt.server);
        let mut servers: Vec<SocketAddr> = self.pairs.iter().map(|pair| pair.server).chain(attempted).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    pub(crate) fn bytes_between(&self, server: SocketAddr, from: Timestamp, to: Timestamp) -> u64 {
        let of_pair = |pair: &Pair<'_>| -> u64 {
            let Some(traffic) = pair.traffic else { return 0 };
            let width = traffic.0.width().0;
            let inside = |start: Timestamp| start >= from && Timestamp(start.0.saturating_add(width)) <= to;
            traffic.0.finish().iter().filter(|(start, _)| inside(*start)).map(|(_, bin)| bin.up + bin.down).sum()
        };
        self.of_server(server).map(of_pair).sum()
    }

    pub(crate) fn responses_between(&self, server: SocketAddr, from: Timestamp, to: Timestamp) -> u64 {
        let Some((width, bins)) = self.responses.get(&server) else { return 0 };
        let inside = |start: Timestamp| start >= from && Timestamp(start.0.saturating_add(width.0)) <= to;
        bins.iter().filter(|(start, _)| inside(*start)).map(|(_, count)| count).sum()
    }
}

fn sum(context: &DiagnosisContext<'_>, connections: &[&ConnectionSummary]) -> TimeSplit {
    let mut sum = TimeSplit::default();
    for connection in connections {
        context.aggregate.splits.connection(connection.flow).into_iter().for_each(|split| sum.add(split));
    }
    sum
}

fn clients(collected: &Collected, context: &DiagnosisContext<'_>) -> BTreeMap<IpAddr, ClientWaits> {
    let mut connections: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for connection in context.connections {
        *connections.entry(connection.endpoints.client.ip()).or_default() += 1;
    }
    let paces: BTreeMap<IpAddr, EpisodeWaits> = collected.paces.iter().copied().collect();
    let mut clients = BTreeMap::new();
    for (client, count) in connections {
        let split = context.aggregate.splits.client(&client).copied().unwrap_or_default();
        let at = collected.busy.binary_search_by(|(known, _)| known.cmp(&client)).ok();
        let (waited, active) = match at.filter(|_| count > 1) {
            Some(at) => union(&collected.busy[at].1, &split),
            None => (split.waited(), split.active()),
        };
        let scale = if split.waited().0 > 0 { waited.0 as f64 / split.waited().0 as f64 } else { 1.0 };
        let pace = paces.get(&client).copied().unwrap_or_default();
        clients.insert(client, ClientWaits { waited, active, scale: scale.clamp(0.0, 1.0), pace });
    }
    clients
}

fn union(busy: &activity::BusyOverTime, split: &TimeSplit) -> (Nanos, Nanos) {
    let width = busy.0.width().0;
    let bins = busy.0.finish();
    let total = bins.iter().map(|(_, busy)| busy.0).fold(0i64, i64::saturating_add);
    // Unanswered requests are in the split but not in the bins.
    let unanswered = (split.waited().0 - total).max(0);
    let waited = busy.union().0.saturating_add(unanswered).min(split.waited().0);
    let mut thought = 0i64;
    for pair in bins.windows(2) {
        let ((one, busy), (next, _)) = (pair[0], pair[1]);
        let pause = (next - one).0 - width;
        if pause <= THINK_MAX.0 {
            thought = thought.saturating_add(pause).saturating_add((width - busy.0).max(0));
        }
    }
    let thought = thought.min(split.think_ns.0.saturating_add(split.idle_ns.0));
    (Nanos(waited), Nanos(waited.saturating_add(thought)))
}

impl<'a> Pair<'a> {
    pub(crate) fn threshold(&self, id: &str, name: &str) -> f64 {
        self.context.catalogue.threshold(id, name)
    }

    pub(crate) fn time(&self, id: &str, name: &str) -> Nanos {
        self.context.catalogue.time(id, name)
    }

    pub(crate) fn served(&self, kind: CommandClass) -> &ServerTimeHistogram {
        self.facts.served(kind)
    }

    /// Scales a sum over connections so that overlaps count once.
    pub(crate) fn once(&self, time: Nanos) -> Nanos {
        Nanos((time.0 as f64 * self.whole.scale) as i64)
    }

    pub(crate) fn part(&self, part: TimePart) -> Nanos {
        self.once(self.split.part(part))
    }

    pub(crate) fn transfers(&self) -> Nanos {
        Nanos(self.part(TimePart::RequestTransfer).0.saturating_add(self.part(TimePart::ResponseTransfer).0))
    }

    pub(crate) fn depth(&self) -> f64 {
        let busy = self.split.busy_ns.0 as f64 * self.whole.scale;
        if busy > 0.0 { self.split.outstanding_ns.0 as f64 / busy } else { 0.0 }
    }

    pub(crate) fn transfer_share(&self) -> f64 {
        self.split.transfers().0 as f64 / self.split.waited().0.max(1) as f64
    }

    pub(crate) fn round_trip(&self) -> Option<Nanos> {
        let mut trips: Vec<Nanos> = self.connections.iter().filter_map(|connection| connection.round_trip()).collect();
        trips.sort_unstable();
        trips.get(trips.len() / 2).copied()
    }

    pub(crate) fn yardstick(&self) -> Nanos {
        let light = self.facts.served_together(&CommandClass::LIGHT);
        match light.count {
            5.. => light.median(),
            _ => self.served(CommandClass::Open).median().min(Nanos(1_000_000)),
        }
    }

    /// Returns true if throughput is close to the bound that the loss rate imposes: TCP halves its window at each loss
    /// (Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm", CCR 1997).
    pub(crate) fn is_loss_limited(&self, bytes_per_second: f64) -> bool {
        const SEGMENT: f64 = 1_448.0;
        let (segments, lost) = self.segments();
        let Some(trip) = self.round_trip().filter(|trip| trip.0 > 0) else { return false };
        if lost < 5 || segments == 0 {
            return false;
        }
        let share = lost as f64 / segments as f64;
        let allowed = SEGMENT * 1.22 / share.sqrt() * 1e9 / trip.0 as f64;
        bytes_per_second >= 0.4 * allowed
    }

    pub(crate) fn transfer_rate(&self) -> f64 {
        let bytes: u64 =
            self.connections.iter().map(|connection| connection.to_server.bytes.max(connection.to_client.bytes)).sum();
        bytes as f64 * 1e9 / self.split.transfers().0.max(1) as f64
    }

    pub(crate) fn held_up_by_itself(&self) -> Nanos {
        self.waited_in(|wait| self.is_held_up_by_itself(wait))
    }

    pub(crate) fn held_up_by_handles(&self) -> Nanos {
        self.waited_in(|wait| self.is_held_up_by_handles(wait))
    }

    pub(crate) fn is_held_up_by_handles(&self, wait: &Wait) -> bool {
        wait.is_conflict() || self.is_held_up_by_itself(wait)
    }

    fn waited_in(&self, counts: impl Fn(&Wait) -> bool) -> Nanos {
        let waits = self.facts.waits.iter().filter(|wait| counts(wait));
        Nanos(waits.map(|wait| self.length(wait).0).fold(0, i64::saturating_add))
    }

    fn is_held_up_by_itself(&self, wait: &Wait) -> bool {
        /// A server breaks the oplock as soon as the request arrives.
        const SOON: i64 = 200_000_000;
        /// A refusal may be due to a handle whose oplock was broken earlier.
        const BEFORE: i64 = 10_000_000_000;
        let from = wait.from.time;
        let held_before = |path: &Option<Arc<str>>| wait.is_conflict() && path.is_some() && *path == wait.path;
        self.facts.breaks.iter().any(|(time, path)| {
            let since = (*time - from).0;
            (0..=SOON).contains(&since) || (-BEFORE..0).contains(&since) && held_before(path)
        })
    }

    /// Returns the duration of a wait. Without a response it ends when the connection or the capture ends.
    pub(crate) fn length(&self, wait: &Wait) -> Nanos {
        let connection = self.connections.iter().find(|connection| connection.flow == wait.flow);
        let closed = connection.filter(|connection| connection.end != ConnectionEnd::Open).map(|one| one.last);
        let end = wait.to.map(|to| to.time).or(closed).or(self.context.last);
        (end.unwrap_or_default() - wait.from.time).max(Nanos(0))
    }

    pub(crate) fn resend_delay(&self) -> Nanos {
        let delays =
            self.connections.iter().map(|one| one.to_server.resend_delay_ns.0.max(one.to_client.resend_delay_ns.0));
        Nanos(delays.fold(0, i64::saturating_add))
    }

    pub(crate) fn times(&self) -> Option<&'a EntityStatistics> {
        let clients = &self.context.aggregate.clients.entries;
        clients.iter().find(|(client, _)| *client == self.client).map(|(_, entity)| entity)
    }

    pub(crate) fn segments(&self) -> (u64, u64) {
        let counts = self.connections.iter().flat_map(|connection| [&connection.to_server, &connection.to_client]);
        counts.fold((0, 0), |(all, lost), counts| {
            let again = counts.retransmitted.saturating_sub(counts.needless) + counts.lost_before_capture;
            (all + counts.packets, lost + again)
        })
    }

    pub(crate) fn users(&self) -> Vec<Arc<str>> {
        let mut users: Vec<Arc<str>> = Vec::new();
        for user in self.connections.iter().flat_map(|connection| &connection.users) {
            if users.len() < USERS_MAX && !users.contains(user) {
                users.push(Arc::clone(user));
            }
        }
        users
    }

    pub(crate) fn server_name(&self) -> String {
        server_name(self.server)
    }

    pub(crate) fn address_filter(&self) -> String {
        address_filter(self.client)
    }
}

pub(crate) fn server_name(server: SocketAddr) -> String {
    match server.port() {
        445 | 139 => server.ip().to_string(),
        _ => server.to_string(),
    }
}

pub(crate) fn address_filter(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("ip.addr == {address}"),
        IpAddr::V6(address) => format!("ipv6.addr == {address}"),
    }
}

/// Formats a path for a sentence, truncating long ones at the start: the end distinguishes files.
pub(crate) fn named(path: &str) -> String {
    if matches!(path, "" | "\\") {
        return "the share's root".to_owned();
    }
    let path = clean(path);
    match path.chars().count().checked_sub(NAME_MAX) {
        Some(over @ 1..) => format!("…{}", path.chars().skip(over + 1).collect::<String>()),
        _ => path,
    }
}

pub(crate) fn file_name(path: &Option<Arc<str>>) -> String {
    path.as_deref().map_or_else(|| "a file".to_owned(), named)
}

pub(crate) fn percent(share: f64) -> String {
    prose_percent((share.clamp(0.0, 1.0) * 1e6).round() as u64, 1_000_000)
}

pub(crate) fn bytes(count: u64) -> String {
    unbroken(short_bytes(count as f64))
}

pub(crate) fn bit_rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    unbroken(match bits {
        1e9.. => format!("{:.1} Gbit/s", bits / 1e9),
        1e7.. => format!("{:.0} Mbit/s", bits / 1e6),
        1e6.. => format!("{:.1} Mbit/s", bits / 1e6),
        _ => format!("{:.0} kbit/s", bits / 1e3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_path_the_file_is_named() {
        let long = format!("{}\\settings.ini", "d".repeat(60));
        let name = named(&long);
        assert!(name.starts_with("…ddd") && name.ends_with("\\settings.ini"), "{name}");
        assert_eq!(name.chars().count(), NAME_MAX);
        let fits = "d".repeat(NAME_MAX);
        assert_eq!([named(&fits), named("\\")], [fits.clone(), "the share's root".to_owned()]);
    }

    #[test]
    fn rates_are_those_of_links() {
        let rates = [12_500.0, 1_250_000.0, 12_500_000.0, 125_000_000.0].map(bit_rate);
        assert_eq!(
            rates.map(|rate| rate.replace('\u{a0}', " ")),
            ["100 kbit/s", "10 Mbit/s", "100 Mbit/s", "1.0 Gbit/s"]
        );
    }
}

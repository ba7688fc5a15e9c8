//! Who is slow: each server and each client by what its users waited for, and which of them the headline is about.

use super::stall::{self, Stall};
use super::work::{Work, is_at_least};
use super::{STALL_SHARE, Thresholds};
use crate::Report;
use smbscope_model::{Exchange, Group, Nanos, TimeKind};
use smbscope_stats::{Figures, TimeSplit};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Whose commands are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whom {
    /// All of them.
    Whole,
    Server(SocketAddr),
    Client(IpAddr),
}

impl Whom {
    pub(super) fn includes(self, exchange: &Exchange) -> bool {
        match self {
            Whom::Whole => true,
            Whom::Server(server) => exchange.endpoints.server == server,
            Whom::Client(client) => exchange.endpoints.client.ip() == client,
        }
    }
}

/// A threshold that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    P95 { group: Group, p95: Nanos, threshold: Nanos },
    Longest { time: Nanos },
    Share { waited: Nanos, active: Nanos },
}

/// A server, a client, or the whole, and what is slow about it.
#[derive(Debug, Clone)]
pub(super) struct Judged<'a> {
    pub(super) whom: Whom,
    pub(super) work: Work,
    pub(super) reasons: Vec<Reason>,
    /// Commands that were held up, for a good part of the active time.
    pub(super) stall: Option<Stall<'a>>,
    /// Median and 95th percentile of the headline groups.
    pub(super) times: Figures,
}

impl Judged<'_> {
    pub(super) fn is_slow(&self) -> bool {
        !self.reasons.is_empty() || self.stall.is_some()
    }

    /// Only single commands are slow.
    pub(super) fn only_single(&self) -> bool {
        self.stall.is_none() && self.reasons.iter().all(|reason| matches!(reason, Reason::Longest { .. }))
    }
}

/// Everybody, judged.
pub(super) struct Judgement<'a> {
    pub(super) whole: Judged<'a>,
    pub(super) servers: Vec<Judged<'a>>,
    pub(super) clients: Vec<Judged<'a>>,
}

impl<'a> Judgement<'a> {
    pub(super) fn of(report: &'a Report) -> Judgement<'a> {
        let aggregate = &report.aggregate;
        let splits = &aggregate.splits;
        let groups: Vec<(Group, Figures)> = aggregate
            .groups
            .iter()
            .filter(|row| row.group.in_headline())
            .map(|row| (row.group, *row.row.time(TimeKind::ResponseTime)))
            .collect();
        let total = *aggregate.total.time(TimeKind::ResponseTime);
        let whole = judge(report, Whom::Whole, &groups, total, Some(&splits.whole));
        let servers = aggregate.servers.entries.iter().map(|(server, entity)| {
            let split = splits.server(server);
            judge(report, Whom::Server(*server), &entity.groups, entity.response_time, split)
        });
        let clients = aggregate.clients.entries.iter().map(|(client, entity)| {
            let split = splits.client(client);
            judge(report, Whom::Client(*client), &entity.groups, entity.response_time, split)
        });
        Judgement { whole, servers: in_order(servers), clients: in_order(clients) }
    }

    /// Whom the headline is about, if anybody is slow: one server of several, or else one client of several, unless at
    /// least half of them are slow.
    pub(super) fn worst(&self, report: &Report) -> Option<&Judged<'a>> {
        let slow_servers: Vec<&Judged> = self.servers.iter().filter(|server| server.is_slow()).collect();
        let server = slow_servers.first().copied().filter(|_| slow_servers.len() < self.servers.len());
        let clients = self.clients_of(report, server.map(|server| server.whom));
        let slow_clients: Vec<&Judged> = clients.iter().copied().filter(|client| client.is_slow()).collect();
        let client = slow_clients.first().copied().filter(|_| slow_clients.len() * 2 < clients.len());
        let uniform =
            || (self.whole.is_slow() || !slow_servers.is_empty() || !slow_clients.is_empty()).then_some(&self.whole);
        client.or(server).or_else(uniform)
    }

    /// The clients that have commands on a server, or all.
    fn clients_of(&self, report: &Report, server: Option<Whom>) -> Vec<&Judged<'a>> {
        let Some(Whom::Server(server)) = server else { return self.clients.iter().collect() };
        let connections = report.connections.iter().filter(|connection| connection.endpoints.server == server);
        let using: BTreeSet<IpAddr> = connections.map(|connection| connection.endpoints.client.ip()).collect();
        self.clients.iter().filter(|one| matches!(one.whom, Whom::Client(client) if using.contains(&client))).collect()
    }
}

/// Those that waited longest first.
fn in_order<'a>(judged: impl Iterator<Item = Judged<'a>>) -> Vec<Judged<'a>> {
    let mut all: Vec<Judged<'a>> = judged.collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.work.waited()), one.whom));
    all
}

fn judge<'a>(
    report: &'a Report,
    whom: Whom,
    groups: &[(Group, Figures)],
    times: Figures,
    split: Option<&TimeSplit>,
) -> Judged<'a> {
    let thresholds: &Thresholds = &report.slow;
    let work = split.map(Work::of).unwrap_or_default();
    let mut reasons: Vec<Reason> = groups
        .iter()
        .filter_map(|(group, figures)| {
            let (p95, threshold) = (figures.p95?, thresholds.p95(*group)?);
            (p95 > threshold).then_some(Reason::P95 { group: *group, p95, threshold })
        })
        .collect();
    reasons.extend(times.max.filter(|max| *max > thresholds.longest).map(|time| Reason::Longest { time }));
    let (waited, active) = (work.waited(), work.active());
    // Shares of several clients are a mean, which says nothing of any of them.
    let is_one = matches!(whom, Whom::Client(_));
    if is_one && waited >= thresholds.total && is_at_least(waited, thresholds.share.into(), active) {
        reasons.push(Reason::Share { waited, active });
    }
    let stall = stall::longest(report, whom).filter(|stall| is_at_least(stall.total, STALL_SHARE, active));
    Judged { whom, work, reasons, stall, times }
}

/// The servers that a client waited for, with how long: the longest first.
pub(super) fn servers_of(report: &Report, client: IpAddr) -> Vec<(SocketAddr, Work)> {
    let mut sums: BTreeMap<SocketAddr, Work> = BTreeMap::new();
    for connection in report.connections.iter().filter(|connection| connection.endpoints.client.ip() == client) {
        let Some(split) = report.aggregate.splits.connection(connection.flow) else { continue };
        let (sum, part) = (sums.entry(connection.endpoints.server).or_default(), Work::of(split));
        sum.server.0 += part.server.0;
        sum.network.0 += part.network.0;
        sum.unclear.0 += part.unclear.0;
    }
    let mut all: Vec<(SocketAddr, Work)> = sums.into_iter().collect();
    all.sort_by_key(|(server, work)| (std::cmp::Reverse(work.waited()), *server));
    all
}

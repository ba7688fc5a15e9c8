//! Exchanges in, tables out: the one place where an exchange is counted.
//!
//! An exchange enters one leaf only, that of its command, subcommand and group; rows of commands, groups and the
//! total are sums of leaves, made by [`Aggregator::finish`]. So sums agree by construction, and a partition of the
//! exchanges gives the same result as the whole.

use crate::aggregate::{Aggregate, CommandRow, GroupRow, GroupSum, SubcommandRow};
use crate::bounded::Bounded;
use crate::entity::{EntityTable, FileKey, Keeps};
use crate::heatmap::HeatTable;
use crate::row::Tally;
use crate::slowest::Slowest;
use crate::split::SplitTable;
use crate::summary::Limit;
use crate::timeline::TimelineTable;
use smbscope_model::{Command, Connection, Exchange, Group, Nanos, Outcome, Settled, Subcommand, Timestamp};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Distinct combinations of command, subcommand and group that are told apart. Real traffic has a few hundred; what
/// a hostile capture adds beyond is counted in its group and not per command.
pub const LEAVES_MAX: usize = 2_048;

/// Statistics of the exchanges recorded so far.
#[derive(Debug, Clone)]
pub struct Aggregator {
    leaves: Bounded<Leaf, Tally>,
    /// Leaves beyond [`LEAVES_MAX`], by group.
    folded: BTreeMap<Group, Tally>,
    shares: EntityTable<Arc<str>>,
    files: EntityTable<FileKey>,
    clients: EntityTable<IpAddr>,
    servers: EntityTable<SocketAddr>,
    users: EntityTable<Arc<str>>,
    timeline: TimelineTable,
    heat: HeatTable,
    slowest: Slowest,
    splits: SplitTable,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Leaf {
    command: Command,
    subcommand: Option<Subcommand>,
    group: Group,
}

impl Leaf {
    fn of(exchange: &Exchange) -> Leaf {
        let subcommand = match exchange.outcome {
            Outcome::ServerInitiated => Some(Subcommand::ServerInitiated),
            _ => exchange.subcommand,
        };
        Leaf { command: exchange.command, subcommand, group: exchange.group }
    }

    /// Not a command of its own: what the server sent unasked, and the second part of a Write_Raw.
    fn is_apart(&self) -> bool {
        matches!(self.subcommand, Some(Subcommand::AsyncPortion | Subcommand::ServerInitiated))
    }
}

impl Default for Aggregator {
    fn default() -> Aggregator {
        Aggregator::new()
    }
}

impl Aggregator {
    /// Statistics of nothing.
    pub fn new() -> Aggregator {
        Aggregator {
            leaves: Bounded::new(LEAVES_MAX),
            folded: BTreeMap::new(),
            shares: EntityTable::new(Keeps::Whole(Limit::ENTITY)),
            files: EntityTable::new(Keeps::Whole(Limit::FILE)),
            clients: EntityTable::new(Keeps::Groups(Limit::FILE)),
            servers: EntityTable::new(Keeps::Groups(Limit::FILE)),
            users: EntityTable::new(Keeps::Whole(Limit::ENTITY)),
            timeline: TimelineTable::new(),
            heat: HeatTable::new(),
            slowest: Slowest::default(),
            splits: SplitTable::new(),
            first: None,
            last: None,
        }
    }

    /// The same with bins of this width on the time line, as long as they are not too many.
    pub fn with_interval(interval: Nanos) -> Aggregator {
        Aggregator { timeline: TimelineTable::with_interval(interval), ..Aggregator::new() }
    }

    /// Counts an exchange.
    pub fn record(&mut self, exchange: &Exchange) {
        let leaf = Leaf::of(exchange);
        let apart = leaf.is_apart();
        let folded = &mut self.folded;
        match self.leaves.entry(&leaf, |old, tally| fold(folded, &old, &tally)) {
            Some(tally) => tally.record(exchange),
            None if !apart => self.folded.entry(leaf.group).or_default().record(exchange),
            None => {}
        }
        self.timeline.record(exchange, !apart);
        let stamps = [exchange.request.first, exchange.request.last, exchange.response.first, exchange.response.last];
        for stamp in stamps.into_iter().flatten() {
            self.first = Some(self.first.map_or(stamp.time, |first| first.min(stamp.time)));
            self.last = self.last.max(Some(stamp.time));
        }
        if apart {
            return;
        }
        self.heat.record(exchange);
        self.slowest.record(exchange);
        self.clients.record(&exchange.endpoints.client.ip(), exchange);
        self.servers.record(&exchange.endpoints.server, exchange);
        if let Some(share) = &exchange.share {
            self.shares.record(share, exchange);
        }
        if let Some(path) = &exchange.path {
            self.files.record(&FileKey { share: exchange.share.clone(), path: path.clone() }, exchange);
        }
        if let Some(user) = &exchange.user {
            self.users.record(user, exchange);
        }
    }

    /// Follows where the time of connections goes. Takes every exchange of a connection, in the order in which they end,
    /// those too that are not recorded; the connection enters the sums when one of them `counts`, with the time of those
    /// that do.
    pub fn follow(&mut self, exchange: &Exchange, counts: bool) {
        self.splits.follow(exchange, counts, &mut |from, to| self.timeline.busy(from, to));
    }

    /// Takes what is settled about a connection whose exchanges are followed.
    pub fn settled(&mut self, settled: &Settled) {
        self.splits.settled(settled, &mut |from, to| self.timeline.busy(from, to));
    }

    /// A connection is over, and so are its exchanges.
    pub fn closed(&mut self, connection: &Connection) {
        self.splits.closed(connection, &mut |from, to| self.timeline.busy(from, to));
    }

    /// Adds what another aggregator counted. The order of merges does not matter.
    pub fn merge(&mut self, other: Aggregator) {
        for (leaf, theirs) in other.leaves.iter() {
            let folded = &mut self.folded;
            match self.leaves.entry(leaf, |old, tally| fold(folded, &old, &tally)) {
                Some(tally) => tally.merge(theirs),
                None => fold(&mut self.folded, leaf, theirs),
            }
        }
        for (group, theirs) in &other.folded {
            self.folded.entry(*group).or_default().merge(theirs);
        }
        self.shares.merge(&other.shares);
        self.files.merge(&other.files);
        self.clients.merge(&other.clients);
        self.servers.merge(&other.servers);
        self.users.merge(&other.users);
        self.timeline.merge(&other.timeline);
        self.heat.merge(&other.heat);
        self.slowest.merge(&other.slowest);
        self.splits.merge(other.splits);
        self.first = match (self.first, other.first) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
    }

    /// The finished tables.
    pub fn finish(&self) -> Aggregate {
        let mut total = Tally::default();
        let mut all = Tally::default();
        let mut other = Tally::default();
        let mut groups: BTreeMap<Group, Tally> = self.folded.clone();
        for (leaf, tally) in self.leaves.iter().filter(|(leaf, _)| !leaf.is_apart()) {
            groups.entry(leaf.group).or_default().merge(tally);
        }
        for (group, tally) in &groups {
            all.merge(tally);
            if group.in_headline() {
                total.merge(tally);
            }
            if group.is_other() {
                other.merge(tally);
            }
        }
        let all = all.finish();
        let other = GroupSum { row: other.finish(), cumulative: other.cumulative() };
        Aggregate {
            count: all.count,
            errors: all.errors,
            untimed: all.untimed(),
            outcomes: all.outcomes,
            total: total.finish(),
            commands: self.commands(),
            groups: groups
                .into_iter()
                .map(|(group, tally)| GroupRow { group, row: tally.finish(), cumulative: tally.cumulative() })
                .collect(),
            other: (other.row.count > 0).then_some(other),
            folded: self.folded.values().map(|tally| tally.finish().count).sum(),
            shares: self.shares.finish(),
            files: self.files.finish(),
            clients: self.clients.finish(),
            servers: self.servers.finish(),
            users: self.users.finish(),
            timeline: self.timeline.finish(),
            heat_map: self.heat.finish(),
            concurrency: self.heat.concurrency(),
            slowest: self.slowest.finish(),
            splits: self.splits.finish(),
            first: self.first,
            last: self.last,
        }
    }

    /// A row a command, with rows below it; waits by design have a row of their own.
    fn commands(&self) -> Vec<CommandRow> {
        #[derive(Default)]
        struct Parts {
            whole: Tally,
            groups: Vec<Group>,
            subcommands: BTreeMap<Subcommand, Tally>,
            apart: BTreeMap<Subcommand, Tally>,
        }
        let mut commands: BTreeMap<(Command, bool), Parts> = BTreeMap::new();
        for (leaf, tally) in self.leaves.iter() {
            let parts = commands.entry((leaf.command, leaf.group == Group::Waiting)).or_default();
            if !parts.groups.contains(&leaf.group) {
                parts.groups.push(leaf.group);
            }
            match leaf.subcommand {
                Some(subcommand) if leaf.is_apart() => parts.apart.entry(subcommand).or_default().merge(tally),
                Some(subcommand) => {
                    parts.subcommands.entry(subcommand).or_default().merge(tally);
                    parts.whole.merge(tally);
                }
                None => parts.whole.merge(tally),
            }
        }
        let rows = |tallies: BTreeMap<Subcommand, Tally>| {
            tallies.into_iter().map(|(subcommand, tally)| SubcommandRow { subcommand, row: tally.finish() }).collect()
        };
        commands
            .into_iter()
            .map(|((command, waiting), mut parts)| {
                parts.groups.sort();
                CommandRow {
                    command,
                    waiting,
                    groups: parts.groups,
                    row: parts.whole.finish(),
                    subcommands: rows(parts.subcommands),
                    apart: rows(parts.apart),
                }
            })
            .collect()
    }
}

/// Keeps the counts of a leaf that has no room, in its group.
fn fold(folded: &mut BTreeMap<Group, Tally>, leaf: &Leaf, tally: &Tally) {
    if !leaf.is_apart() {
        folded.entry(leaf.group).or_default().merge(tally);
    }
}

#[cfg(test)]
mod tests;

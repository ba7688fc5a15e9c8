//! Counts exchanges and computes the tables of a report.
//!
//! Each exchange enters exactly one leaf, identified by its command, subcommand and group. [`Aggregator::finish`] sums
//! leaves into rows and the total, so all sums agree, and the merge of any partition of the exchanges equals the whole.

use crate::aggregate::{Aggregate, CommandRow, GroupRow, GroupSum, SubcommandRow};
use crate::beside::beside;
use crate::bounded::{BottomKTable, Slowest};
use crate::caching::CachingTable;
use crate::entity::{EntityTable, FileKey, Keeps};
use crate::row::{CommandTally, CommandTallyView};
use crate::slices::{Dimension, PartSlicers, SliceSortKey};
use crate::split::{CommandSpan, SplitTable};
use crate::summary::{Summary, SummaryPrecision};
use crate::timeline::{BinnedTimeline, HeatTable, TimelineBinning, TimelineTable};
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{
    Command, CommandGroup, ConnectionSummary, Exchange, ExchangeOutcome, Nanos, Settled, Subcommand, Timestamp,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Combinations of command, subcommand and group; others count per group. Real traffic has a few hundred.
pub const LEAVES_MAX: usize = 2_048;

/// Combinations found without hashing.
const RECENT_LEAVES: usize = 8;

/// Slowest exchanges listed.
pub const SLOWEST_MAX: usize = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Aggregator {
    /// The tables of clients, servers and shares would repeat the total and are not kept.
    of_one_share: bool,
    #[serde(deserialize_with = "leaves")]
    leaves: BottomKTable<CommandRowKey, CommandTally>,
    folded: BTreeMap<CommandGroup, CommandTally>,
    shares: EntityTable<Arc<str>>,
    files: EntityTable<FileKey>,
    clients: EntityTable<IpAddr>,
    servers: EntityTable<SocketAddr>,
    users: EntityTable<Arc<str>>,
    timeline: TimelineTable,
    heat: HeatTable,
    slowest: Slowest,
    caching: CachingTable,
    splits: SplitTable,
    /// Not serialized, because slices depend on the order of exchanges.
    #[serde(skip)]
    slices: Option<(PartSlicers, SliceSortKey)>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

fn leaves<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<CommandRowKey, CommandTally>, D::Error> {
    no_leaves().filled(entries)
}

fn no_leaves() -> BottomKTable<CommandRowKey, CommandTally> {
    BottomKTable::new(LEAVES_MAX).remembering(RECENT_LEAVES)
}

pub type CommandRowKey = (Command, Option<Subcommand>, CommandGroup);

fn kind_of(exchange: &Exchange) -> CommandRowKey {
    let subcommand = match exchange.outcome {
        ExchangeOutcome::ServerInitiated => Some(Subcommand::ServerInitiated),
        _ => exchange.subcommand,
    };
    (exchange.command, subcommand, exchange.group)
}

/// Returns true for messages in no sum: sent by the server without a request, or the second part of a Write_Raw.
pub fn is_apart((_, subcommand, _): &CommandRowKey) -> bool {
    matches!(subcommand, Some(Subcommand::AsyncPortion | Subcommand::ServerInitiated))
}

impl Default for Aggregator {
    fn default() -> Aggregator {
        Aggregator::new()
    }
}

impl Aggregator {
    pub fn new() -> Aggregator {
        Aggregator {
            of_one_share: false,
            leaves: no_leaves(),
            folded: BTreeMap::new(),
            shares: EntityTable::new(Keeps::Whole(SummaryPrecision::ENTITY)),
            files: EntityTable::new(Keeps::Whole(SummaryPrecision::FILE)),
            clients: EntityTable::new(Keeps::Groups(SummaryPrecision::FILE)),
            servers: EntityTable::new(Keeps::Groups(SummaryPrecision::FILE)),
            users: EntityTable::new(Keeps::Whole(SummaryPrecision::ENTITY)),
            timeline: TimelineTable::new(TimelineBinning::default()),
            heat: HeatTable::new(),
            slowest: Slowest::default(),
            caching: CachingTable::new(),
            splits: SplitTable::new(),
            slices: None,
            first: None,
            last: None,
        }
    }

    pub fn with_interval(interval: Nanos) -> Aggregator {
        Aggregator::with_intervals(TimelineBinning { width: interval, ..TimelineBinning::default() })
    }

    /// Sets the bins of the timeline. Only aggregators with equal bins can be merged.
    pub fn with_intervals(intervals: TimelineBinning) -> Aggregator {
        Aggregator { timeline: TimelineTable::new(intervals), ..Aggregator::new() }
    }

    /// Creates a cheaper aggregator for one client on one share of one server, for use while the load client measures
    /// itself. Keeps no tables of clients, servers and shares, and only percentiles of the response and service times.
    pub fn of_one_share(intervals: TimelineBinning) -> Aggregator {
        Aggregator { of_one_share: true, ..Aggregator::with_intervals(intervals) }
    }

    /// Enables slices by a combination of dimensions. Does nothing if `by` is empty.
    pub fn sliced(self, by: &[Dimension], sort: SliceSortKey) -> Aggregator {
        Aggregator { slices: (!by.is_empty()).then(|| (PartSlicers::new(by), sort)), ..self }
    }

    /// Assigns the exchanges that follow to a part of the capture. Each part must be counted by one aggregator: the
    /// slices kept depend only on the order within parts, so parts can be distributed over threads in any way.
    pub fn turn_to(&mut self, part: usize) {
        if let Some((slices, _)) = &mut self.slices {
            slices.turn_to(part);
        }
    }

    pub fn record(&mut self, exchange: &Exchange) {
        let kind = kind_of(exchange);
        let apart = is_apart(&kind);
        self.record_leaf(kind, exchange);
        let stretch = CommandSpan::from_exchange(exchange);
        self.timeline.record(exchange, stretch.as_ref(), !apart);
        let stamps = [exchange.request.first, exchange.request.last, exchange.response.first, exchange.response.last];
        for stamp in stamps.into_iter().flatten() {
            self.first = Some(self.first.map_or(stamp.time, |first| first.min(stamp.time)));
            self.last = self.last.max(Some(stamp.time));
        }
        if apart {
            return;
        }
        if let Some(stretch) = &stretch {
            self.heat.record(exchange, stretch);
        }
        self.slowest.record(exchange, SLOWEST_MAX);
        self.caching.record(exchange);
        if let Some((slices, _)) = &mut self.slices {
            slices.record(exchange);
        }
        if !self.of_one_share {
            let (client, server) = (exchange.endpoints.client.ip(), exchange.endpoints.server);
            self.clients.record(|known| *known == client, || client, exchange);
            self.servers.record(|known| *known == server, || server, exchange);
            if let Some(share) = &exchange.share {
                self.shares.record(|known| Arc::ptr_eq(known, share), || share.clone(), exchange);
            }
        }
        if let Some(path) = &exchange.path {
            let share = &exchange.share;
            let is = |known: &FileKey| {
                Arc::ptr_eq(&known.path, path)
                    && known.share.as_ref().map(Arc::as_ptr) == share.as_ref().map(Arc::as_ptr)
            };
            self.files.record(is, || FileKey { share: share.clone(), path: path.clone() }, exchange);
        }
        if let Some(user) = &exchange.user {
            self.users.record(|known| Arc::ptr_eq(known, user), || user.clone(), exchange);
        }
    }

    #[inline]
    fn record_leaf(&mut self, kind: CommandRowKey, exchange: &Exchange) {
        let folded = &mut self.folded;
        match self.leaves.recent_entry(|known| *known == kind, || kind, |old, tally| fold(folded, &old, &tally)) {
            Some(tally) => {
                if self.of_one_share && tally.is_empty() {
                    *tally = CommandTally::lean();
                }
                tally.record(exchange);
            }
            None if !is_apart(&kind) => self.folded.entry(exchange.group).or_default().record(exchange),
            None => {}
        }
    }

    /// Attributes the time of a connection. Expects all its exchanges, in order of completion, including those that are
    /// filtered out. The connection enters the sums once an exchange `counts`, with the time of counted exchanges only.
    pub fn follow(&mut self, exchange: &Exchange, counts: bool) {
        self.splits.follow(exchange, counts, &mut |from, to| self.timeline.busy(from, to));
    }

    pub fn settled(&mut self, settled: &Settled) {
        self.splits.settled(settled, &mut |from, to| self.timeline.busy(from, to));
    }

    pub fn closed(&mut self, connection: &ConnectionSummary) {
        self.splits.closed(connection, &mut |from, to| self.timeline.busy(from, to));
    }

    /// Takes the counts since the last call; the merge of all parts is the whole. The `open` connections go on. For
    /// aggregators without slices and with a timeline of the usual width.
    pub fn take_part(&mut self, open: &[ConnectionSummary]) -> Aggregator {
        let splits = self.splits.take_part(open);
        let going_on = std::mem::replace(&mut self.splits, splits);
        std::mem::replace(self, Aggregator { splits: going_on, ..Aggregator::new() })
    }

    /// The order of merges is irrelevant unless both hold more slices of one part than are kept.
    pub fn merge(&mut self, other: Aggregator) {
        let folded = &mut self.folded;
        self.leaves.merge(other.leaves, CommandTally::merge, |kind, tally| fold(folded, &kind, &tally));
        for (group, theirs) in &other.folded {
            self.folded.entry(*group).or_default().merge(theirs);
        }
        self.shares.merge(other.shares);
        self.files.merge(other.files);
        self.clients.merge(other.clients);
        self.servers.merge(other.servers);
        self.users.merge(other.users);
        self.timeline.merge(&other.timeline);
        self.heat.merge(&other.heat);
        self.slowest.merge(&other.slowest, SLOWEST_MAX);
        self.caching.merge(other.caching);
        self.splits.merge(other.splits);
        if let (Some((mine, _)), Some((theirs, _))) = (&mut self.slices, other.slices) {
            mine.merge(theirs);
        }
        self.first = match (self.first, other.first) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
    }

    /// Returns true if all connections have ended and there are no slices, so that the state can be serialized.
    pub fn is_settled(&self) -> bool {
        self.splits.is_settled() && self.slices.is_none()
    }

    pub fn kinds(&self) -> impl Iterator<Item = (CommandRowKey, CommandTallyView<'_>)> {
        self.leaves.iter().map(|(kind, tally)| (*kind, tally.counted()))
    }

    pub fn response_times(&self, chooses: impl Fn(&CommandRowKey) -> bool) -> Summary {
        let mut whole = Summary::new(SummaryPrecision::ROW);
        let chosen = self.kinds().filter(|(kind, _)| !is_apart(kind) && chooses(kind));
        chosen.for_each(|(_, counted)| whole.merge(counted.response_time));
        whole
    }

    pub fn timeline(&self) -> BinnedTimeline {
        self.timeline.finish()
    }

    pub fn finish(&self) -> Aggregate {
        // Build these on a second thread: they take longest.
        let named = || (self.files.finish(), self.shares.finish(), self.users.finish());
        let ((files, shares, users), (commands, groups)) = beside(named, || (self.commands(), self.groups()));
        let mut total = CommandTally::default();
        let mut all = CommandTally::default();
        let mut other = CommandTally::default();
        for (group, tally) in &groups {
            all.merge(tally);
            if group.in_headline() {
                total.merge(tally);
            }
            if group.is_other() {
                other.merge(tally);
            }
        }
        let outcomes = all.outcomes().collect();
        let all = all.finish();
        let other = GroupSum { row: other.finish(), cumulative: other.cumulative() };
        Aggregate {
            count: all.count,
            errors: all.errors(),
            untimed: all.untimed(),
            outcomes,
            total: total.finish(),
            commands,
            groups: groups
                .into_iter()
                .map(|(group, tally)| GroupRow { group, row: tally.finish(), cumulative: tally.cumulative() })
                .collect(),
            other: (other.row.count > 0).then_some(other),
            folded: self.folded.values().map(|tally| tally.finish().count).sum(),
            shares,
            files,
            clients: self.clients.finish(),
            servers: self.servers.finish(),
            users,
            timeline: self.timeline.finish(),
            heat_map: self.heat.finish(),
            concurrency: self.heat.concurrency(),
            slowest: self.slowest.finish(SLOWEST_MAX),
            caching: self.caching.finish(),
            splits: self.splits.finish(),
            slices: self.slices.as_ref().map(|(slices, sort)| slices.finish(*sort)),
            first: self.first,
            last: self.last,
        }
    }

    fn groups(&self) -> BTreeMap<CommandGroup, CommandTally> {
        let mut groups = self.folded.clone();
        for (kind, tally) in self.leaves.iter().filter(|(kind, _)| !is_apart(kind)) {
            groups.entry(kind.2).or_default().merge(tally);
        }
        groups
    }

    fn commands(&self) -> Vec<CommandRow> {
        #[derive(Default)]
        struct Parts {
            whole: CommandTally,
            groups: Vec<CommandGroup>,
            subcommands: BTreeMap<Subcommand, CommandTally>,
            apart: BTreeMap<Subcommand, CommandTally>,
        }
        let mut commands: BTreeMap<(Command, bool), Parts> = BTreeMap::new();
        for (kind, tally) in self.leaves.iter() {
            let (command, subcommand, group) = *kind;
            let parts = commands.entry((command, group == CommandGroup::Waiting)).or_default();
            if !parts.groups.contains(&group) {
                parts.groups.push(group);
            }
            match subcommand {
                Some(subcommand) if is_apart(kind) => parts.apart.entry(subcommand).or_default().merge(tally),
                Some(subcommand) => {
                    parts.subcommands.entry(subcommand).or_default().merge(tally);
                    parts.whole.merge(tally);
                }
                None => parts.whole.merge(tally),
            }
        }
        let rows = |tallies: BTreeMap<Subcommand, CommandTally>| {
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

fn fold(folded: &mut BTreeMap<CommandGroup, CommandTally>, kind: &CommandRowKey, tally: &CommandTally) {
    if !is_apart(kind) {
        folded.entry(kind.2).or_default().merge(tally);
    }
}

#[cfg(test)]
mod tests;

//! The finished tables of a report, returned by [`Aggregator::finish`](crate::Aggregator::finish).

use crate::caching::CachingFigures;
use crate::derived;
use crate::entity::{Entities, EntityStatistics, FileKey};
use crate::row::CommandStatistics;
use crate::slices::DimensionBreakdown;
use crate::split::Splits;
use crate::summary::DurationStatistics;
use crate::timeline::{BinnedTimeline, Concurrency, HeatMap, LoadTimes};
use serde::{Deserialize, Serialize};
use smbscope_model::{Command, CommandGroup, Exchange, ExchangeOutcome, Nanos, Subcommand, Timestamp};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Number of commands in all groups: the denominator of every share.
    pub count: u64,
    pub errors: u64,
    /// Commands that should have a response time but have none, such as those without a response.
    pub untimed: u64,
    pub outcomes: Vec<(ExchangeOutcome, u64)>,
    /// Sum of the headline groups, which exclude expected waits and encrypted frames.
    pub total: CommandStatistics,
    pub commands: Vec<CommandRow>,
    pub groups: Vec<GroupRow>,
    /// Attributes, Directory and Locking combined: the *Other* group of Swartz (1997).
    pub other: Option<GroupSum>,
    /// Commands counted in their group but without a row of their own, because the table of rows was full.
    pub folded: u64,
    pub shares: Entities<Arc<str>>,
    pub files: Entities<FileKey>,
    pub clients: Entities<IpAddr>,
    pub servers: Entities<SocketAddr>,
    pub users: Entities<Arc<str>>,
    pub timeline: BinnedTimeline,
    pub heat_map: HeatMap,
    pub concurrency: Vec<Concurrency>,
    pub slowest: Vec<Exchange>,
    pub caching: CachingFigures,
    pub splits: Splits,
    pub slices: Option<DimensionBreakdown>,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CommandRow {
    pub command: Command,
    /// Expected waits ([`CommandGroup::Waiting`]) never share a row with other exchanges.
    pub waiting: bool,
    pub groups: Vec<CommandGroup>,
    pub row: CommandStatistics,
    pub subcommands: Vec<SubcommandRow>,
    /// Not counted in `row`: the asynchronous portion of Write_Raw, and messages that the server sent unprompted.
    pub apart: Vec<SubcommandRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SubcommandRow {
    pub subcommand: Subcommand,
    pub row: CommandStatistics,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    pub group: CommandGroup,
    pub row: CommandStatistics,
    /// Cumulative distribution of the response time: pairs of a value and the fraction of commands at or below it.
    pub cumulative: Vec<(Nanos, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GroupSum {
    pub row: CommandStatistics,
    pub cumulative: Vec<(Nanos, f64)>,
}

impl Aggregate {
    pub fn elapsed(&self) -> Option<Nanos> {
        Some(self.last? - self.first?)
    }
}

impl DurationStatistics {
    fn forget_below(&mut self, step: Nanos) {
        let DurationStatistics { min, max, mean, stddev, p50, p90, p95, p99, p999, .. } = self;
        for time in [min, max, mean, stddev, p50, p90, p95, p99, p999] {
            forget(time, step);
        }
    }
}

fn forget(time: &mut Option<Nanos>, step: Nanos) {
    *time = time.filter(|time| *time >= step);
}

fn forget_in_row(row: &mut CommandStatistics, step: Nanos) {
    row.times_mut().into_iter().for_each(|times| times.forget_below(step));
}

fn forget_in_entity(entity: &mut EntityStatistics, step: Nanos) {
    entity.response_time.forget_below(step);
    entity.groups.iter_mut().for_each(|(_, figures)| figures.forget_below(step));
}

fn forget_in_entities<K>(entities: &mut Entities<K>, step: Nanos) {
    let entries = entities.entries.iter_mut().map(|(_, entity)| entity);
    entries.chain(&mut entities.other).for_each(|entity| forget_in_entity(entity, step));
}

impl Aggregate {
    /// Removes figures below `step`, the resolution of a coarse clock, because they were rounded to nothing.
    pub fn forget_below(&mut self, step: Nanos) {
        let commands = self.commands.iter_mut().flat_map(|command| {
            let parts = command.subcommands.iter_mut().chain(&mut command.apart);
            parts.map(|part| &mut part.row).chain([&mut command.row])
        });
        let groups = self.groups.iter_mut().map(|group| &mut group.row);
        let other = self.other.iter_mut().map(|other| &mut other.row);
        let rows = commands.chain(groups).chain(other).chain([&mut self.total]);
        rows.for_each(|row| forget_in_row(row, step));
        let others = self.other.iter_mut().map(|other| &mut other.cumulative);
        for cumulative in self.groups.iter_mut().map(|group| &mut group.cumulative).chain(others) {
            cumulative.retain(|(time, _)| *time >= step);
        }
        forget_in_entities(&mut self.shares, step);
        forget_in_entities(&mut self.files, step);
        forget_in_entities(&mut self.clients, step);
        forget_in_entities(&mut self.servers, step);
        forget_in_entities(&mut self.users, step);
        if let Some(slices) = &mut self.slices {
            for slice in slices.entries.iter_mut().chain(&mut slices.other) {
                forget_in_entity(&mut slice.figures, step);
                slice.service_time.forget_below(step);
            }
        }
        for (_, bin) in &mut self.timeline.bins {
            for time in [&mut bin.response_time_max, &mut bin.response_time_p50, &mut bin.response_time_p95] {
                forget(time, step);
            }
        }
        for load in &mut self.concurrency {
            let LoadTimes { mean, p50, p95 } = &mut load.response_time;
            [mean, p50, p95].into_iter().for_each(|time| forget(time, step));
        }
    }
}

/// Outcomes of the exchanges of a whole capture, before any filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Census {
    pub exchanges: u64,
    pub encrypted: u64,
    outcomes: [u64; ExchangeOutcome::ALL.len()],
}

impl Census {
    pub fn record(&mut self, exchange: &Exchange) {
        self.exchanges += 1;
        if !derived::is_apart(exchange) {
            self.encrypted += u64::from(exchange.group == CommandGroup::Encrypted);
            self.outcomes[exchange.outcome as usize] += 1;
        }
    }

    pub fn merge(&mut self, other: &Census) {
        self.exchanges += other.exchanges;
        self.encrypted += other.encrypted;
        self.outcomes.iter_mut().zip(other.outcomes).for_each(|(mine, theirs)| *mine += theirs);
    }

    pub fn outcomes(&self) -> impl Iterator<Item = (ExchangeOutcome, u64)> {
        ExchangeOutcome::ALL.into_iter().zip(self.outcomes).filter(|(_, count)| *count > 0)
    }

    pub fn commands(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    pub fn untimed(&self) -> u64 {
        let by_design =
            [ExchangeOutcome::Complete, ExchangeOutcome::NoResponseByDesign, ExchangeOutcome::ServerInitiated];
        self.commands() - by_design.iter().map(|outcome| self.outcomes[*outcome as usize]).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aggregator;
    use smbscope_testkit::exchange::read;

    #[test]
    fn times_below_the_step_are_unknown_and_the_others_stay() {
        let time = |ms: i64| Some(Nanos(ms * 1_000_000));
        let mut figures = DurationStatistics {
            count: 100,
            sum_ns: 400_000_000,
            min: time(0),
            max: time(172),
            mean: time(4),
            stddev: time(20),
            p50: time(0),
            p90: time(15),
            p95: time(16),
            p99: time(172),
            ..DurationStatistics::default()
        };
        figures.forget_below(Nanos(15_600_000));
        let expected = DurationStatistics { min: None, mean: None, p50: None, p90: None, ..figures };
        assert_eq!(figures, expected);
        assert_eq!((figures.max, figures.p95, figures.sum_ns), (time(172), time(16), 400_000_000));
    }

    #[test]
    fn a_census_counts_as_the_tables_do() {
        let mut census = Census::default();
        let mut aggregator = Aggregator::new();
        for (number, outcome) in ExchangeOutcome::ALL.into_iter().enumerate() {
            for _ in 0..=number {
                let mut one = read(0, 1_000);
                one.outcome = outcome;
                one.group = if number % 3 == 0 { CommandGroup::Encrypted } else { CommandGroup::Read };
                one.subcommand = (number == 5).then_some(Subcommand::AsyncPortion);
                census.record(&one);
                aggregator.record(&one);
            }
        }
        let aggregate = aggregator.finish();
        // 1 + 2 + … + 12.
        assert_eq!(census.exchanges, 78);
        assert_eq!((census.commands(), census.untimed()), (aggregate.count, aggregate.untimed));
        assert_eq!(census.outcomes().collect::<Vec<_>>(), aggregate.outcomes);
        let encrypted =
            aggregate.groups.iter().find(|row| row.group == CommandGroup::Encrypted).map(|row| row.row.count);
        assert_eq!(Some(census.encrypted), encrypted);
        let mut twice = census.clone();
        twice.merge(&census);
        assert_eq!((twice.exchanges, twice.untimed()), (156, 2 * census.untimed()));
    }
}

//! The finished tables of a report, returned by [`Aggregator::finish`](crate::Aggregator::finish).

use crate::caching::CachingFigures;
use crate::entity::{Entities, FileKey};
use crate::heatmap::{Concurrency, HeatMap};
use crate::row::CommandStatistics;
use crate::slices::DimensionBreakdown;
use crate::split::Splits;
use crate::timeline::BinnedTimeline;
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
    /// Number of commands per outcome. Outcomes that never occurred are omitted.
    pub outcomes: Vec<(ExchangeOutcome, u64)>,
    /// Sum of the headline groups, which exclude expected waits and encrypted frames.
    pub total: CommandStatistics,
    /// Ordered by protocol and code.
    pub commands: Vec<CommandRow>,
    /// In the order of [`CommandGroup::ALL`]. Empty groups are omitted.
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
    /// The row holds the command's expected waits ([`CommandGroup::Waiting`]), which never share a row with other
    /// exchanges.
    pub waiting: bool,
    pub groups: Vec<CommandGroup>,
    pub row: CommandStatistics,
    /// Exchanges with a subcommand, by subcommand. Exchanges without one appear in `row` only.
    pub subcommands: Vec<SubcommandRow>,
    /// Messages that are not commands and not counted in `row`: the asynchronous portion of Write_Raw, and messages
    /// that the server sent unasked.
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

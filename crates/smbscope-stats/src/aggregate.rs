//! The finished tables that a report prints.

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

/// Everything that [`Aggregator`](crate::Aggregator) counted, finished.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Commands of every group: the whole that shares are shares of.
    pub count: u64,
    /// Commands of every group that got an error response.
    pub errors: u64,
    /// Commands of every group that should have been timed and could not be.
    pub untimed: u64,
    /// How the commands of every group ended; only what occurred.
    pub outcomes: Vec<(ExchangeOutcome, u64)>,
    /// The sum of the headline groups: no expected waits, no encrypted frames.
    pub total: CommandStatistics,
    /// A row a command, in the order of protocol and code.
    pub commands: Vec<CommandRow>,
    /// A row a group that occurred, in the order of [`Group::ALL`].
    pub groups: Vec<GroupRow>,
    /// The paper's *Other*: Attributes, Directory and Locking together.
    pub other: Option<GroupSum>,
    /// Commands that are counted in their group but have no row of their own, because there were too many rows.
    pub folded: u64,
    /// By share.
    pub shares: Entities<Arc<str>>,
    /// By file.
    pub files: Entities<FileKey>,
    /// By client.
    pub clients: Entities<IpAddr>,
    /// By server.
    pub servers: Entities<SocketAddr>,
    /// By user.
    pub users: Entities<Arc<str>>,
    /// Over time.
    pub timeline: BinnedTimeline,
    /// Response times over time.
    pub heat_map: HeatMap,
    /// Response time against load.
    pub concurrency: Vec<Concurrency>,
    /// The slowest exchanges, slowest first.
    pub slowest: Vec<Exchange>,
    /// What clients were allowed to keep, and read again all the same.
    pub caching: CachingFigures,
    /// Where the time went.
    pub splits: Splits,
    /// The commands divided by what was asked for; none where nothing was.
    pub slices: Option<DimensionBreakdown>,
    /// First packet of any exchange.
    pub first: Option<Timestamp>,
    /// Last packet of any exchange.
    pub last: Option<Timestamp>,
}

/// A command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRow {
    /// The command.
    pub command: Command,
    /// The row holds the expected waits of the command (group [`Group::Waiting`]), which are never mixed with others.
    pub waiting: bool,
    /// The groups that its exchanges belong to.
    pub groups: Vec<CommandGroup>,
    /// All exchanges of the command.
    pub row: CommandStatistics,
    /// Those with a subcommand, by it; exchanges without one are in `row` only.
    pub subcommands: Vec<SubcommandRow>,
    /// What is no command of its own and not in `row`: the asynchronous portion of Write_Raw, and what the server
    /// sent of its own accord.
    pub apart: Vec<SubcommandRow>,
}

/// A part of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct SubcommandRow {
    /// The subcommand.
    pub subcommand: Subcommand,
    /// Its exchanges.
    pub row: CommandStatistics,
}

/// A group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    /// The group.
    pub group: CommandGroup,
    /// Its exchanges.
    pub row: CommandStatistics,
    /// The cumulative distribution of its response time: values with the fraction of commands that took no longer.
    pub cumulative: Vec<(Nanos, f64)>,
}

/// Several groups together.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSum {
    /// Their exchanges.
    pub row: CommandStatistics,
    /// As in [`GroupRow`].
    pub cumulative: Vec<(Nanos, f64)>,
}

impl Aggregate {
    /// From the first packet of any exchange to the last.
    pub fn elapsed(&self) -> Option<Nanos> {
        Some(self.last? - self.first?)
    }
}

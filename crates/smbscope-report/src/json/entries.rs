//! Entries of the JSON report, the definitions of its schema. A comparison parses some of them.

use super::offers::NegotiationIndex;
use crate::Report;
use crate::totals::LoadTotals;
use serde::{Deserialize, Serialize};
use smbscope_model::{DirectionCounts, ExchangeOutcome, Nanos, Protocol, Timestamp};
use smbscope_stats::{
    Aggregate, CachingFigures, CommandRow, CommandStatistics, Entities, EntityStatistics, Splits, SubcommandRow,
    TimeSplit,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Totals {
    /// Commands of all groups.
    pub(crate) commands: u64,
    /// Commands that should have a response time but couldn't be timed.
    pub(crate) untimed: u64,
    /// Exchanges by outcome. Only values that occur.
    #[cfg_attr(feature = "schema", schemars(schema_with = "smbscope_stats::outcomes"))]
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) first_ns: Option<Timestamp>,
    pub(crate) last_ns: Option<Timestamp>,
    /// Time from the first to the last packet of the captures.
    pub(crate) elapsed_ns: Option<Nanos>,
    /// Load on the servers.
    pub(crate) load: LoadTotals,
    /// All groups without expected waits and encrypted frames.
    pub(crate) headline: CommandStatistics,
}

impl Totals {
    pub(crate) fn new(report: &Report) -> Totals {
        let aggregate = &report.aggregate;
        Totals {
            commands: aggregate.count,
            untimed: aggregate.untimed,
            outcomes: outcomes(&aggregate.outcomes),
            first_ns: report.first,
            last_ns: report.last,
            elapsed_ns: report.first.zip(report.last).map(|(first, last)| last - first),
            load: LoadTotals::from_report(report),
            headline: aggregate.total.clone(),
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ConnectionEntry<'a> {
    /// Number of the packet that opened the connection, among the packets of all captures in time order, from 1.
    flow_id: u64,
    client: String,
    client_port: u16,
    server: String,
    server_port: u16,
    first_ns: Timestamp,
    last_ns: Timestamp,
    protocol: Option<Protocol>,
    pub(crate) dialect: Option<String>,
    /// The capture does not contain the start of the connection.
    midstream: bool,
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::ends"))]
    end: &'static str,
    /// Index of the negotiation in `negotiations`.
    pub(crate) negotiation: Option<usize>,
    /// The server requires signing. Null if the negotiation was not captured.
    signing_required: Option<bool>,
    pub(crate) signed_messages: u64,
    pub(crate) encrypted_frames: u64,
    compressed_frames: u64,
    pub(crate) messages: u64,
    exchanges: u64,
    max_outstanding: u32,
    pub(crate) max_credits_granted: u16,
    /// Time that the client waited for credits with several requests outstanding. 0 (unknown) if the start or any
    /// message of the connection was not captured or is encrypted.
    credit_wait_ns: Nanos,
    /// Highest number of concurrent requests with an interim response (STATUS_PENDING) and no final one.
    max_asynchronous: u32,
    server_round_trip_ns: Option<Nanos>,
    client_round_trip_ns: Option<Nanos>,
    #[serde(skip_deserializing)]
    users: Vec<&'a str>,
    #[serde(skip_deserializing)]
    shares: Vec<&'a str>,
    /// Headers around its packets other than Ethernet and IP, outermost first. Null for a connection without them.
    #[serde(skip_deserializing)]
    encapsulation: Option<&'a str>,
    /// Proxy that passes the connection on: protocol and, if captured, the requested target.
    #[serde(skip_deserializing)]
    proxy: Option<String>,
    to_server: DirectionCounts,
    to_client: DirectionCounts,
    /// Null for connections without an exchange that matches the filter, and beyond 100,000 connections.
    time_split: Option<TimeSplit>,
}

impl<'a> ConnectionEntry<'a> {
    pub(super) fn new(
        connection: &'a smbscope_model::ConnectionSummary,
        splits: &Splits,
        negotiated: &NegotiationIndex<'_>,
    ) -> ConnectionEntry<'a> {
        let address = |address: SocketAddr| (address.ip().to_string(), address.port());
        let (client, client_port) = address(connection.endpoints.client);
        let (server, server_port) = address(connection.endpoints.server);
        ConnectionEntry {
            flow_id: connection.flow.0,
            client,
            client_port,
            server,
            server_port,
            first_ns: connection.first,
            last_ns: connection.last,
            protocol: connection.dialect.map(|dialect| dialect.protocol()),
            dialect: connection.dialect.map(|dialect| dialect.to_string()),
            midstream: connection.midstream,
            end: connection.end.name(),
            negotiation: negotiated.place(&connection.offers),
            signing_required: connection.dialect.map(|_| connection.signing_required),
            signed_messages: connection.signed_messages,
            encrypted_frames: connection.encrypted_frames,
            compressed_frames: connection.compressed_frames,
            messages: connection.messages,
            exchanges: connection.exchanges,
            max_outstanding: connection.max_outstanding,
            max_credits_granted: connection.max_credits_granted,
            credit_wait_ns: connection.credit_wait,
            max_asynchronous: connection.max_asynchronous,
            server_round_trip_ns: connection.server_round_trip,
            client_round_trip_ns: connection.client_round_trip,
            users: connection.users.iter().map(|name| &**name).collect(),
            shares: connection.shares.iter().map(|name| &**name).collect(),
            encapsulation: connection.encapsulation.as_deref(),
            proxy: connection.proxy.as_ref().map(ToString::to_string),
            to_server: connection.to_server,
            to_client: connection.to_client,
            time_split: splits.connection(connection.flow).copied(),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CommandEntry {
    pub(crate) protocol: Protocol,
    /// Name in the specification, or the code in hexadecimal.
    pub(crate) command: String,
    pub(crate) groups: Vec<smbscope_model::CommandGroup>,
    #[serde(flatten)]
    pub(crate) row: CommandStatistics,
    /// Exchanges by subcommand.
    pub(crate) subcommands: Vec<SubcommandEntry>,
    /// Messages that are not separate commands and not included in the counts of this entry: the second part of
    /// Write_Raw, and unsolicited messages of the server.
    pub(crate) apart: Vec<SubcommandEntry>,
}

impl CommandEntry {
    pub(crate) fn new(command: &CommandRow) -> CommandEntry {
        CommandEntry {
            protocol: command.command.protocol(),
            command: command.command.to_string(),
            groups: command.groups.clone(),
            row: command.row.clone(),
            subcommands: command.subcommands.iter().map(SubcommandEntry::new).collect(),
            apart: command.apart.iter().map(SubcommandEntry::new).collect(),
        }
    }
}

/// Subcommand of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SubcommandEntry {
    pub(crate) subcommand: String,
    #[serde(flatten)]
    pub(crate) row: CommandStatistics,
}

impl SubcommandEntry {
    fn new(part: &SubcommandRow) -> SubcommandEntry {
        SubcommandEntry { subcommand: part.subcommand.to_string(), row: part.row.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct GroupEntry {
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub(crate) group: String,
    pub(crate) headline: bool,
    #[serde(flatten)]
    pub(crate) row: CommandStatistics,
    /// Cumulative distribution of response times: pairs of nanoseconds and the fraction of commands answered within
    /// them, ascending, at most 128.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::cumulative"))]
    pub(crate) cumulative: Vec<(Nanos, f64)>,
    pub(crate) parts: Vec<GroupEntry>,
}

impl GroupEntry {
    pub(crate) fn find<'a>(groups: &'a [GroupEntry], name: &str) -> Option<&'a GroupEntry> {
        groups.iter().flat_map(|group| std::iter::once(group).chain(&group.parts)).find(|group| group.group == name)
    }

    /// Returns the groups that occurred. `Other` holds its parts, so that the entries of the list add up.
    pub(crate) fn all(aggregate: &Aggregate) -> Vec<GroupEntry> {
        let mut result: Vec<GroupEntry> = Vec::new();
        let mut parts: Vec<GroupEntry> = Vec::new();
        for found in &aggregate.groups {
            let group = GroupEntry {
                group: found.group.name().to_owned(),
                headline: found.group.in_headline(),
                row: found.row.clone(),
                cumulative: found.cumulative.clone(),
                parts: Vec::new(),
            };
            if found.group.is_other() { parts.push(group) } else { result.push(group) }
        }
        if let Some(other) = &aggregate.other {
            let at = usize::from(result.first().is_some_and(|group| group.group == "Open/Close"));
            let (row, cumulative) = (other.row.clone(), other.cumulative.clone());
            result.insert(
                at,
                GroupEntry { group: crate::names::OTHER.to_owned(), headline: true, row, cumulative, parts },
            );
        }
        result
    }
}

fn outcomes(outcomes: &[(ExchangeOutcome, u64)]) -> BTreeMap<String, u64> {
    outcomes.iter().map(|(outcome, count)| (outcome.name().to_owned(), *count)).collect()
}

/// Figures of a share, file, client, server or user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "{N}Entity"))]
pub(crate) struct EntityEntry<N> {
    #[serde(flatten)]
    pub(crate) name: N,
    /// The entry is the sum of all names that are not listed.
    pub(crate) is_other: bool,
    #[serde(flatten)]
    pub(crate) figures: EntityStatistics,
}

impl<N> EntityEntry<N> {
    pub(crate) fn table<'a, K>(
        entities: &'a Entities<K>,
        listed: usize,
        name: impl Fn(&'a K) -> N,
        other: impl Fn() -> N,
    ) -> Vec<EntityEntry<N>> {
        let entry = |name, is_other, figures: &EntityStatistics| EntityEntry {
            name,
            is_other,
            figures: EntityStatistics { groups: Vec::new(), ..*figures },
        };
        let kept = entities.entries.iter().take(listed).map(|(key, figures)| entry(name(key), false, figures));
        kept.chain(entities.other.iter().map(|figures| entry(other(), true, figures))).collect()
    }

    /// Returns the number of names. None if not all are listed.
    pub(crate) fn number(entries: &[EntityEntry<N>]) -> Option<usize> {
        entries.iter().all(|entry| !entry.is_other).then_some(entries.len())
    }
}

#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ReportTimeline {
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    width_ns: Nanos,
    /// Bins in which a command started or was outstanding, in time order.
    bins: Vec<TimelineBin>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TimelineBin {
    start_ns: Timestamp,
    commands: u64,
    errors: u64,
    request_bytes: u64,
    response_bytes: u64,
    response_time: TimelineTimes,
    /// Time with at least one command outstanding, summed over connections. Not affected by the filter.
    busy_ns: Nanos,
    /// Outstanding time, summed over commands. Divided by `width_ns`, it is the mean concurrency.
    outstanding_ns: Nanos,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TimelineTimes {
    count: u64,
    sum: i64,
    max: Option<Nanos>,
}

impl ReportTimeline {
    pub(super) fn new(timeline: &smbscope_stats::BinnedTimeline) -> ReportTimeline {
        let bins = timeline.bins.iter().map(|(start, bin)| TimelineBin {
            start_ns: *start,
            commands: bin.commands,
            errors: bin.errors,
            request_bytes: bin.request_bytes,
            response_bytes: bin.response_bytes,
            response_time: TimelineTimes {
                count: bin.timed,
                sum: Nanos::saturating(bin.response_time_sum_ns).0,
                max: bin.response_time_max,
            },
            busy_ns: bin.busy,
            outstanding_ns: bin.outstanding,
        });
        ReportTimeline { width_ns: timeline.width, bins: bins.collect() }
    }
}

/// Returns the figures with at most `listed` clients and files.
pub(super) fn caching(figures: &CachingFigures, listed: usize) -> Cow<'_, CachingFigures> {
    let mut figures = Cow::Borrowed(figures);
    if figures.clients.len().max(figures.files.len()) > listed {
        let CachingFigures { clients, files, .. } = figures.to_mut();
        clients.truncate(listed);
        files.truncate(listed);
    }
    figures
}

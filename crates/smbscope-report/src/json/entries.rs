//! The entries of the JSON report: what the schema calls its definitions.

use super::waits::TimeSplit;
use crate::CaptureEntry;
use crate::load::Load;
use serde::Serialize;
use smbscope_model::{DirectionCounts, Nanos, Outcome, Protocol, TimeKind, Timestamp};
use smbscope_stats::{Aggregate, CommandRow, Entities, Figures, Splits, SubcommandRow};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Serialize)]
pub(super) struct Generator<'a> {
    pub(super) name: &'static str,
    pub(super) version: &'a str,
}

#[derive(Serialize)]
pub(super) struct Totals<'a> {
    pub(super) commands: u64,
    pub(super) untimed: u64,
    pub(super) outcomes: BTreeMap<&'static str, u64>,
    pub(super) first_ns: Option<Timestamp>,
    pub(super) last_ns: Option<Timestamp>,
    pub(super) elapsed_ns: Option<Nanos>,
    pub(super) load: Load,
    pub(super) headline: Row<'a>,
}

#[derive(Serialize)]
pub(super) struct Capture<'a> {
    name: &'a str,
    format: &'a str,
    compression: Option<&'a str>,
    packets: u64,
    bytes: u64,
    first_ns: Option<Timestamp>,
    last_ns: Option<Timestamp>,
    resolution_ns: u64,
    snap_length: Option<u32>,
    link_types: &'a [u32],
    warnings: &'a [String],
}

impl<'a> Capture<'a> {
    pub(super) fn of(entry: &'a CaptureEntry) -> Capture<'a> {
        Capture {
            name: &entry.name,
            format: &entry.format,
            compression: entry.compression.as_deref(),
            packets: entry.packets,
            bytes: entry.bytes,
            first_ns: entry.first,
            last_ns: entry.last,
            resolution_ns: entry.resolution_ns,
            snap_length: entry.snap_length,
            link_types: &entry.link_types,
            warnings: &entry.warnings,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Connection<'a> {
    flow_id: u64,
    client: String,
    client_port: u16,
    server: String,
    server_port: u16,
    first_ns: Timestamp,
    last_ns: Timestamp,
    protocol: Option<Protocol>,
    dialect: Option<String>,
    midstream: bool,
    end: &'static str,
    /// Unknown where the negotiation was not captured.
    signing_required: Option<bool>,
    signed_messages: u64,
    encrypted_frames: u64,
    compressed_frames: u64,
    messages: u64,
    exchanges: u64,
    max_outstanding: u32,
    max_credits_granted: u16,
    server_round_trip_ns: Option<Nanos>,
    client_round_trip_ns: Option<Nanos>,
    users: Vec<&'a str>,
    shares: Vec<&'a str>,
    to_server: Direction,
    to_client: Direction,
    time_split: Option<TimeSplit>,
}

impl<'a> Connection<'a> {
    pub(super) fn of(connection: &'a smbscope_model::Connection, splits: &Splits) -> Connection<'a> {
        let address = |address: SocketAddr| (address.ip().to_string(), address.port());
        let (client, client_port) = address(connection.endpoints.client);
        let (server, server_port) = address(connection.endpoints.server);
        Connection {
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
            signing_required: connection.dialect.map(|_| connection.signing_required),
            signed_messages: connection.signed_messages,
            encrypted_frames: connection.encrypted_frames,
            compressed_frames: connection.compressed_frames,
            messages: connection.messages,
            exchanges: connection.exchanges,
            max_outstanding: connection.max_outstanding,
            max_credits_granted: connection.max_credits_granted,
            server_round_trip_ns: connection.server_round_trip,
            client_round_trip_ns: connection.client_round_trip,
            users: connection.users.iter().map(|name| &**name).collect(),
            shares: connection.shares.iter().map(|name| &**name).collect(),
            to_server: Direction::of(&connection.to_server),
            to_client: Direction::of(&connection.to_client),
            time_split: splits.connection(connection.flow).map(TimeSplit::of),
        }
    }
}

#[derive(Serialize)]
struct Direction {
    packets: u64,
    bytes: u64,
    message_packets: u64,
    continuation_packets: u64,
    pure_acks: u64,
    retransmitted: u64,
    dropped_bytes: u64,
    dropped_packets: u64,
}

impl Direction {
    fn of(counts: &DirectionCounts) -> Direction {
        Direction {
            packets: counts.packets,
            bytes: counts.bytes,
            message_packets: counts.message_packets,
            continuation_packets: counts.continuation_packets,
            pure_acks: counts.pure_acks,
            retransmitted: counts.retransmitted,
            dropped_bytes: counts.dropped_bytes,
            dropped_packets: counts.dropped_packets,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Command<'a> {
    protocol: Protocol,
    command: String,
    groups: &'a [smbscope_model::Group],
    #[serde(flatten)]
    row: Row<'a>,
    subcommands: Vec<Subcommand<'a>>,
    apart: Vec<Subcommand<'a>>,
}

impl<'a> Command<'a> {
    pub(super) fn of(command: &'a CommandRow) -> Command<'a> {
        Command {
            protocol: command.command.protocol(),
            command: command.command.to_string(),
            groups: &command.groups,
            row: Row::of(&command.row),
            subcommands: command.subcommands.iter().map(Subcommand::of).collect(),
            apart: command.apart.iter().map(Subcommand::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct Subcommand<'a> {
    subcommand: String,
    #[serde(flatten)]
    row: Row<'a>,
}

impl<'a> Subcommand<'a> {
    fn of(part: &'a SubcommandRow) -> Subcommand<'a> {
        Subcommand { subcommand: part.subcommand.to_string(), row: Row::of(&part.row) }
    }
}

#[derive(Serialize)]
pub(super) struct Group<'a> {
    group: &'static str,
    headline: bool,
    #[serde(flatten)]
    row: Row<'a>,
    /// Response time with the fraction of commands that took no longer.
    cumulative: &'a [(Nanos, f64)],
    parts: Vec<Group<'a>>,
}

impl<'a> Group<'a> {
    /// The groups that occurred; *Other* holds its parts, so that the entries of the list add up.
    pub(super) fn all(aggregate: &'a Aggregate) -> Vec<Group<'a>> {
        let mut result: Vec<Group> = Vec::new();
        let mut parts: Vec<Group> = Vec::new();
        for found in &aggregate.groups {
            let group = Group {
                group: found.group.name(),
                headline: found.group.in_headline(),
                row: Row::of(&found.row),
                cumulative: &found.cumulative,
                parts: Vec::new(),
            };
            if found.group.is_other() { parts.push(group) } else { result.push(group) }
        }
        if let Some(other) = &aggregate.other {
            let at = usize::from(result.first().is_some_and(|group| group.group == "Open/Close"));
            let (row, cumulative) = (Row::of(&other.row), other.cumulative.as_slice());
            result.insert(at, Group { group: "Other", headline: true, row, cumulative, parts });
        }
        result
    }
}

/// Counts and times of a set of exchanges.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    count: u64,
    timed: u64,
    errors: BTreeMap<String, u64>,
    outcomes: BTreeMap<&'static str, u64>,
    average_packets: Option<f64>,
    request_bytes: u64,
    response_bytes: u64,
    distribution: [u64; 10],
    response_time: Times<'a>,
    service_time: Times<'a>,
    server_time: Times<'a>,
    request_transfer: Times<'a>,
    response_transfer: Times<'a>,
    srt: Times<'a>,
    retransmission_delay: Times<'a>,
    think_time: Times<'a>,
}

impl<'a> Row<'a> {
    pub(super) fn of(row: &'a smbscope_stats::Row) -> Row<'a> {
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for (status, count) in &row.statuses {
            *errors.entry(status.to_string()).or_default() += count;
        }
        if row.other_statuses > 0 {
            errors.insert(super::OTHER.to_owned(), row.other_statuses);
        }
        let time = |kind| Times { figures: row.time(kind) };
        Row {
            count: row.count,
            timed: row.timed,
            errors,
            outcomes: outcomes(&row.outcomes),
            average_packets: row.average_packets(),
            request_bytes: row.request_bytes,
            response_bytes: row.response_bytes,
            distribution: row.distribution.counts(),
            response_time: time(TimeKind::ResponseTime),
            service_time: time(TimeKind::ServiceTime),
            server_time: time(TimeKind::ServerTime),
            request_transfer: time(TimeKind::RequestTransfer),
            response_transfer: time(TimeKind::ResponseTransfer),
            srt: time(TimeKind::Srt),
            retransmission_delay: time(TimeKind::RetransmissionDelay),
            think_time: time(TimeKind::ThinkTime),
        }
    }
}

/// `{count, min, max, mean, stddev, p50, p90, p95, p99, p999}`.
struct Times<'a> {
    figures: &'a Figures,
}

impl Serialize for Times<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let Figures { count, min, max, mean, stddev, p50, p90, p95, p99, p999, .. } = self.figures;
        let mut times = serializer.serialize_struct("Times", 10)?;
        times.serialize_field("count", count)?;
        let named = [
            ("min", min),
            ("max", max),
            ("mean", mean),
            ("stddev", stddev),
            ("p50", p50),
            ("p90", p90),
            ("p95", p95),
            ("p99", p99),
            ("p999", p999),
        ];
        for (name, time) in named {
            times.serialize_field(name, time)?;
        }
        times.end()
    }
}

/// Outcomes by name; only what occurred.
pub(super) fn outcomes(outcomes: &[(Outcome, u64)]) -> BTreeMap<&'static str, u64> {
    outcomes.iter().map(|(outcome, count)| (outcome.name(), *count)).collect()
}

/// A share, file, client, server or user.
#[derive(Serialize)]
pub(super) struct Entity<N> {
    #[serde(flatten)]
    name: N,
    /// Everything that was not told apart.
    is_other: bool,
    count: u64,
    timed: u64,
    errors: u64,
    bytes_read: u64,
    bytes_written: u64,
    response_time: OwnedTimes,
}

/// As [`Times`], owned.
pub(super) struct OwnedTimes(pub(super) Figures);

impl Serialize for OwnedTimes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Times { figures: &self.0 }.serialize(serializer)
    }
}

impl<N> Entity<N> {
    pub(super) fn table<'a, K>(
        entities: &'a Entities<K>,
        listed: usize,
        name: impl Fn(&'a K) -> N,
        other: impl Fn() -> N,
    ) -> Vec<Entity<N>> {
        let kept = entities.entries.iter().take(listed).map(|(key, entity)| Entity::of(name(key), false, entity));
        kept.chain(entities.other.iter().map(|entity| Entity::of(other(), true, entity))).collect()
    }

    fn of(name: N, is_other: bool, entity: &smbscope_stats::Entity) -> Entity<N> {
        Entity {
            name,
            is_other,
            count: entity.count,
            timed: entity.timed,
            errors: entity.errors,
            bytes_read: entity.bytes_read,
            bytes_written: entity.bytes_written,
            response_time: OwnedTimes(entity.response_time),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Timeline {
    width_ns: Nanos,
    bins: Vec<Bin>,
}

#[derive(Serialize)]
struct Bin {
    start_ns: Timestamp,
    commands: u64,
    errors: u64,
    request_bytes: u64,
    response_bytes: u64,
    response_time: BinTimes,
    busy_ns: Nanos,
    outstanding_ns: Nanos,
}

#[derive(Serialize)]
struct BinTimes {
    count: u64,
    sum: i64,
    max: Option<Nanos>,
}

impl Timeline {
    pub(super) fn of(timeline: &smbscope_stats::Timeline) -> Timeline {
        let bins = timeline.bins.iter().map(|(start, bin)| Bin {
            start_ns: *start,
            commands: bin.commands,
            errors: bin.errors,
            request_bytes: bin.request_bytes,
            response_bytes: bin.response_bytes,
            response_time: BinTimes {
                count: bin.timed,
                sum: bin.response_time_sum_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
                max: bin.response_time_max,
            },
            busy_ns: bin.busy,
            outstanding_ns: bin.outstanding,
        });
        Timeline { width_ns: timeline.width, bins: bins.collect() }
    }
}

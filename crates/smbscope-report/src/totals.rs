//! Totals of a report: load on the servers, packet counts, outcomes of commands, dialects of the connections, and usage
//! of SMB1: clients, servers, users and shares.
//!
//! [`LoadTotals`] is the source of all rates, error counts and byte counts. [`PacketCounts`] follows Swartz (1997):
//! packets in the capture, and the kinds of packets in each direction. [`CommandOutcomes`] covers all commands in the
//! capture regardless of the filter, since the quality of the capture is based on them.

use crate::Report;
use crate::format::{counted, thousands, unbroken};
use crate::offers::held_back_by;
use serde::{Deserialize, Serialize};
use smbscope_model::{
    Command, CommandGroup, ConnectionSummary, Dialect, DirectionCounts, ExchangeOutcome, Nanos, Protocol, Subcommand,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Load on the servers. All rates, error counts and byte counts are derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LoadTotals {
    /// Time from the first to the last packet of the commands, the base of all rates.
    pub(crate) elapsed_ns: Nanos,
    /// Commands of all groups per second. Null if no time elapsed.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) commands_per_second: Option<f64>,
    /// Error responses of all groups.
    pub(crate) errors: u64,
    /// Bytes of file data read.
    pub(crate) bytes_read: u64,
    /// Bytes of file data written.
    pub(crate) bytes_written: u64,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) read_bytes_per_second: Option<f64>,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) written_bytes_per_second: Option<f64>,
}

impl LoadTotals {
    pub(crate) fn from_report(report: &Report) -> LoadTotals {
        let aggregate = &report.aggregate;
        let elapsed = aggregate.elapsed().unwrap_or_default();
        let per_second = |n: u64| (elapsed.0 > 0).then(|| n as f64 / elapsed.as_secs_f64());
        let servers = aggregate.servers.entries.iter().map(|(_, server)| server).chain(&aggregate.servers.other);
        let (read, written) =
            servers.fold((0, 0), |(read, written), server| (read + server.bytes_read, written + server.bytes_written));
        LoadTotals {
            elapsed_ns: elapsed,
            commands_per_second: per_second(aggregate.count),
            errors: aggregate.errors,
            bytes_read: read,
            bytes_written: written,
            read_bytes_per_second: per_second(read),
            written_bytes_per_second: per_second(written),
        }
    }

    /// Formats `3 connections of 2 clients, 5,885 commands/s, 2.5 MB/s read; …`.
    pub(crate) fn sentence(&self, report: &Report) -> String {
        let split = &report.aggregate.splits.whole;
        let connections = counted(split.connections, "connection", "connections");
        let clients = counted(report.aggregate.clients.entries.len() as u64, "client", "clients");
        let mut parts = vec![format!("{connections} of {clients}")];
        parts.extend(self.commands_per_second.map(|rate| unbroken(format!("{} commands/s", figure(rate)))));
        let moved = [(self.read_bytes_per_second, "read"), (self.written_bytes_per_second, "written")];
        for (rate, how) in moved {
            parts.extend(rate.filter(|rate| *rate > 0.0).map(|rate| unbroken(format!("{} {how}", throughput(rate)))));
        }
        let outstanding = report.connections.iter().map(|connection| connection.max_outstanding).max().unwrap_or(0);
        let queue = split.concurrency().map_or_else(String::new, |mean| {
            format!("; {mean:.1} requests outstanding on a busy connection on average, at most {outstanding}")
        });
        format!("{}{queue}", parts.join(", "))
    }
}

fn throughput(bytes_per_second: f64) -> String {
    match bytes_per_second {
        v if v >= 1e5 => format!("{} MB/s", figure(v / 1e6)),
        v => format!("{} kB/s", figure(v / 1e3)),
    }
}

/// Formats two or three significant digits: `0.12`, `3.4`, `5,883`.
fn figure(value: f64) -> String {
    match value {
        v if v >= 100.0 => thousands(v.round() as u64),
        v if v >= 10.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketCounts {
    pub(crate) all: u64,
    /// TCP packets of flows that carry SMB: `data` + `acks` + `unacknowledged`.
    pub(crate) smb_flows: u64,
    pub(crate) acks: u64,
    pub(crate) unacknowledged: u64,
    /// Retransmitted segments with both copies in the capture.
    pub(crate) retransmitted: u64,
    /// Retransmitted segments that had already been acknowledged.
    pub(crate) spurious: u64,
    /// Retransmitted segments with only the last copy in the capture.
    pub(crate) seen_once: u64,
    pub(crate) dropped: u64,
    pub(crate) continuations: u64,
    pub(crate) commands: DirectionCounts,
    pub(crate) replies: DirectionCounts,
    /// Packets of the asynchronous part of Write_Raw commands.
    pub(crate) asynchronous: u64,
}

impl PacketCounts {
    pub(crate) fn from_report(report: &Report) -> PacketCounts {
        let mut commands = DirectionCounts::default();
        let mut replies = DirectionCounts::default();
        for connection in &report.connections {
            add(&mut commands, &connection.to_server);
            add(&mut replies, &connection.to_client);
        }
        let asynchronous: u64 = report
            .aggregate
            .commands
            .iter()
            .flat_map(|command| &command.apart)
            .filter(|part| part.subcommand == Subcommand::AsyncPortion)
            .map(|part| part.row.request_packets)
            .sum();
        let quality = &report.quality;
        PacketCounts {
            all: quality.packets,
            smb_flows: quality.smb_flow_packets,
            acks: quality.pure_acks,
            unacknowledged: quality.unacknowledged_segments,
            retransmitted: quality.retransmitted_segments,
            spurious: quality.spurious_retransmissions.min(quality.retransmitted_segments),
            seen_once: quality.retransmissions_seen_once,
            dropped: quality.dropped_packets,
            continuations: commands.continuation_packets + replies.continuation_packets,
            commands,
            replies,
            asynchronous: asynchronous.min(commands.continuation_packets),
        }
    }

    /// Returns the acknowledged data packets, and packets that open or close a connection.
    pub(crate) fn data(&self) -> u64 {
        self.smb_flows.saturating_sub(self.acks + self.unacknowledged)
    }

    pub(crate) fn others(&self) -> u64 {
        self.all.saturating_sub(self.smb_flows)
    }
}

/// Returns all other packets of a direction: SYN, FIN, RST, keep-alives.
pub(crate) fn control(counts: &DirectionCounts) -> u64 {
    counts
        .packets
        .saturating_sub(counts.message_packets + counts.continuation_packets + counts.pure_acks + counts.retransmitted)
}

fn add(sum: &mut DirectionCounts, part: &DirectionCounts) {
    sum.packets += part.packets;
    sum.bytes += part.bytes;
    sum.message_packets += part.message_packets;
    sum.continuation_packets += part.continuation_packets;
    sum.pure_acks += part.pure_acks;
    sum.retransmitted += part.retransmitted;
    sum.dropped_bytes += part.dropped_bytes;
    sum.dropped_packets += part.dropped_packets;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutcomes {
    pub(crate) count: u64,
    pub(crate) untimed: u64,
    pub(crate) encrypted: u64,
    outcomes: Vec<(ExchangeOutcome, u64)>,
}

impl CommandOutcomes {
    pub(crate) fn new(report: &Report) -> CommandOutcomes {
        if let Some(filtered) = &report.filter {
            let census = &filtered.whole;
            return CommandOutcomes {
                count: census.commands(),
                untimed: census.untimed(),
                encrypted: census.encrypted,
                outcomes: census.outcomes().collect(),
            };
        }
        let aggregate = &report.aggregate;
        let encrypted = aggregate.groups.iter().find(|row| row.group == CommandGroup::Encrypted);
        CommandOutcomes {
            count: aggregate.count,
            untimed: aggregate.untimed,
            encrypted: encrypted.map_or(0, |found| found.row.count),
            outcomes: aggregate.outcomes.clone(),
        }
    }

    pub(crate) fn ended(&self, wanted: ExchangeOutcome) -> u64 {
        self.outcomes.iter().find(|(outcome, _)| *outcome == wanted).map_or(0, |(_, count)| *count)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialectLine {
    pub(crate) text: String,
    pub(crate) is_smb1: bool,
}

/// Returns a line per dialect, SMB1 first, then the newest first. A connection that negotiated SMB2 does not count as
/// SMB1, even if it started with an SMB1 NEGOTIATE.
pub(crate) fn dialect_lines(report: &Report) -> Vec<DialectLine> {
    let connections = report.connections.len() as u64;
    let mut counts: BTreeMap<Dialect, u64> = BTreeMap::new();
    for dialect in report.connections.iter().filter_map(|connection| connection.dialect) {
        *counts.entry(dialect).or_default() += 1;
    }
    let unknown = connections - counts.values().sum::<u64>();
    let mut lines = Vec::new();
    let smb1 = counts.iter().filter(|(dialect, _)| dialect.protocol() == Protocol::Smb1);
    for (dialect, count) in smb1 {
        let name = match dialect {
            Dialect::OtherSmb1 => "SMB1".to_owned(),
            _ => format!("SMB1 ({dialect})"),
        };
        lines.push(DialectLine { text: format!("{name} in use on {}", share(*count, connections)), is_smb1: true });
    }
    if lines.is_empty() && unknown > 0 && smb1_commands(report) > 0 {
        let commands = counted(smb1_commands(report), "command", "commands");
        let text = format!("SMB1 in use ({commands}; its negotiation was not captured)");
        lines.push(DialectLine { text, is_smb1: true });
    }
    let smb2 = counts.iter().rev().filter(|(dialect, _)| dialect.protocol() == Protocol::Smb2);
    for (dialect, count) in smb2 {
        let mut text = format!("SMB {dialect} on {}", share(*count, connections));
        if let Some(reason) = held_back(report, *dialect) {
            text += &format!(": {reason}");
        }
        lines.push(DialectLine { text, is_smb1: false });
    }
    let said = smb1_commands(report) > 0 && unknown == connections;
    if unknown > 0 && !said {
        let smb1 = report.aggregate.commands.iter().any(|row| matches!(row.command, Command::Smb1(_)));
        let smb2 = report.aggregate.commands.iter().any(|row| matches!(row.command, Command::Smb2(_)));
        let name = if smb2 && !smb1 { "SMB2/3, dialect" } else { "dialect" };
        let text = format!("{name} not seen on {}", share(unknown, connections));
        lines.push(DialectLine { text, is_smb1: false });
    }
    lines
}

fn held_back(report: &Report, dialect: Dialect) -> Option<String> {
    let mut those = report.connections.iter().filter(|connection| connection.dialect == Some(dialect));
    let reason = held_back_by(&those.next()?.offers)?;
    those.all(|connection| held_back_by(&connection.offers).as_ref() == Some(&reason)).then_some(reason)
}

fn share(count: u64, all: u64) -> String {
    match (count, all) {
        (1, 1) => "the only connection".to_owned(),
        _ => format!("{} of {} connections", thousands(count), thousands(all)),
    }
}

const SMB1_NAMED: usize = 4;
pub(crate) const SMB1_LISTED: usize = 100;
/// NEGOTIATE, which SMB2 clients may send too.
const NEGOTIATE: u8 = 0x72;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Smb1InUse<'r> {
    pub(crate) connections: u64,
    pub(crate) of: u64,
    pub(crate) clients: BTreeSet<IpAddr>,
    pub(crate) servers: BTreeSet<SocketAddr>,
    pub(crate) users: BTreeSet<&'r str>,
    /// Shares, without IPC$ if there are others.
    pub(crate) shares: BTreeSet<&'r str>,
}

impl<'r> Smb1InUse<'r> {
    /// Returns None if SMB1 is not in use. A connection that negotiated SMB2 does not count, even if it started with an
    /// SMB1 NEGOTIATE.
    pub(crate) fn from_report(report: &'r Report) -> Option<Smb1InUse<'r>> {
        let speaks = |connection: &&ConnectionSummary| {
            connection.dialect.is_some_and(|dialect| dialect.protocol() == Protocol::Smb1)
        };
        let mut found = Smb1InUse {
            connections: 0,
            of: report.connections.len() as u64,
            clients: BTreeSet::new(),
            servers: BTreeSet::new(),
            users: BTreeSet::new(),
            shares: BTreeSet::new(),
        };
        for connection in report.connections.iter().filter(speaks) {
            found.connections += 1;
            found.clients.insert(connection.endpoints.client.ip());
            found.servers.insert(connection.endpoints.server);
            found.users.extend(connection.users.iter().map(|name| &**name));
            found.shares.extend(connection.shares.iter().map(|name| &**name));
        }
        let is_pipe = |share: &str| share.eq_ignore_ascii_case("IPC$");
        if found.shares.iter().any(|share| !is_pipe(share)) {
            found.shares.retain(|share| !is_pipe(share));
        }
        (found.connections > 0 || smb1_commands(report) > 0).then_some(found)
    }

    /// Formats `SMB1 in use: 10.0.0.7 and 10.0.0.8 (LAB\dave) on share data of 10.0.0.9:445, 2 of 5 connections`.
    pub(crate) fn sentence(&self) -> String {
        if self.connections == 0 {
            return "SMB1 in use; who uses it was not captured".to_owned();
        }
        let shown = |names: Vec<String>| some_of(&names);
        let texts = |names: &BTreeSet<&str>| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut text = format!("SMB1 in use: {}", shown(self.clients.iter().map(IpAddr::to_string).collect()));
        if !self.users.is_empty() {
            text += &format!(" ({})", shown(texts(&self.users)));
        }
        text += match self.shares.len() {
            0 => "",
            1 => " on share ",
            _ => " on shares ",
        };
        text += &shown(texts(&self.shares));
        text += &format!(" of {}", shown(self.servers.iter().map(SocketAddr::to_string).collect()));
        let connections = counted(self.of, "connection", "connections");
        let share = match (self.connections, self.of) {
            (1, 1) => "the only connection".to_owned(),
            (count, all) if count == all => format!("all {connections}"),
            (count, _) => format!("{count} of {connections}"),
        };
        format!("{text}, {}", unbroken(share))
    }
}

fn some_of(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] if names.len() <= SMB1_NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..SMB1_NAMED].join(", "), names.len() - SMB1_NAMED),
    }
}

fn smb1_commands(report: &Report) -> u64 {
    let rows = report.aggregate.commands.iter();
    rows.filter(|row| matches!(row.command, Command::Smb1(code) if code.0 != NEGOTIATE)).map(|row| row.row.count).sum()
}

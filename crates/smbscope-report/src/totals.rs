//! Totals of a report: load on the servers, packet counts, and outcomes of commands.
//!
//! [`LoadTotals`] is the source of all rates, error counts and byte counts. [`PacketCounts`] follows Swartz (1997):
//! packets in the capture, and the kinds of packets in each direction. [`CommandOutcomes`] covers all commands in the
//! capture regardless of the filter, since the quality of the capture is based on them.

use crate::Report;
use crate::format::{counted, thousands, unbroken};
use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, DirectionCounts, ExchangeOutcome, Nanos, Subcommand};

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

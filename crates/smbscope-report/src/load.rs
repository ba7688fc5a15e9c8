//! Load on the servers: the source of all rates, error counts and byte counts of a report.

use crate::Report;
use crate::format::{counted, thousands, unbroken};
use serde::{Deserialize, Serialize};
use smbscope_model::Nanos;

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

/// Formats `12 MB/s` or `3.4 kB/s`.
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

//! Options of `smbscope watch`.

use super::{
    AnalyzeFormat, CommandOptions, MetricsOptions, QueryOptions, ReadingOptions, RingOptions, ServerMetricsOptions,
    TerminalOptions, format_by_ending,
};
use crate::metrics::{CounterSource, SambaReader};
use clap::{Args, ValueEnum};
use smbscope_model::{Nanos, units};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Args)]
pub struct WatchOptions {
    /// Read this capture instead of an interface: a file, or `-` for standard input.
    #[arg(value_name = "FILE", required_unless_present = "interface", conflicts_with = "interface")]
    pub file: Option<PathBuf>,

    /// Capture on this interface; `any` is all of them.
    ///
    /// Root captures with libpcap. Others need dumpcap, and membership in the group that may run it, or a tcpdump with the
    /// right to capture.
    #[arg(short, long, value_name = "INTERFACE")]
    pub interface: Option<String>,

    /// Wait for more at the end of FILE, which another program still writes.
    #[arg(long, requires = "file")]
    pub follow: bool,

    /// Capture at most N bytes of each packet. [default: whole packets]
    ///
    /// 256 suffices for most clients and takes less CPU time. A message in the middle of a longer packet is then lost,
    /// and counted under Quality.
    #[arg(long, value_name = "N", requires = "interface", value_parser = clap::value_parser!(u32).range(128..=262_144))]
    pub snap_length: Option<u32>,

    /// Stop after this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Print lines in this format, one per minute. [default: the display on a terminal, else text]
    #[arg(long, value_enum)]
    pub format: Option<WatchFormat>,

    /// Write the report of everything to this file at the end: .html, .json, .txt or .md. [default: text, to standard
    /// output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    /// Read thresholds of causes from this TOML file, as for `analyze`.
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,

    #[command(flatten)]
    pub ring: RingOptions,

    /// Run this shell command when a cause of waits begins.
    ///
    /// The command gets the minute as JSON on standard input (`smbscope.minute/1`), and the environment variables
    /// SMBSCOPE_CAUSE (identifiers, separated by blanks), SMBSCOPE_HEADLINE, SMBSCOPE_FROM and SMBSCOPE_TO. With --ring,
    /// SMBSCOPE_SAVED is the directory with the packets of the minute. The command is killed after a minute.
    #[arg(long, value_name = "COMMAND", help_heading = "Causes")]
    pub on_cause: Option<String>,

    /// Report to the command, and save, only causes that cost all clients together this time or more in a minute.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = cost, help_heading = "Causes")]
    pub cause_cost: Nanos,

    /// Replace names and addresses in the ring by a keyed hash; the key is not kept.
    #[arg(long, requires = "ring", help_heading = "Ring")]
    pub anonymize: bool,

    #[command(flatten)]
    pub metrics: MetricsOptions,

    #[command(flatten)]
    pub server_metrics: ServerMetricsOptions,

    /// Show this machine's CPU, memory, disks and network in each minute, if it is the server. Requires Linux.
    ///
    /// If the server is Samba, and the user may run smbstatus, also its sessions, open files and locks, and the time
    /// inside smbd if it keeps a profile (`smbd profiling level = on` in smb.conf).
    #[arg(long, conflicts_with = "server_metrics", help_heading = "Results")]
    pub machine_metrics: bool,

    #[command(flatten)]
    pub queries: QueryOptions,

    #[command(flatten)]
    pub reading: ReadingOptions,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

impl WatchOptions {
    /// Returns the source of the server's counters. `samba` reads the figures of a Samba on this machine.
    pub fn counters(&self, samba: Option<SambaReader>) -> Option<CounterSource<'_>> {
        let exporter = self.server_metrics.server_metrics.as_ref().map(CounterSource::Exporter);
        exporter.or(self.machine_metrics.then_some(CounterSource::ThisMachine { samba }))
    }

    /// Returns true if figures come over the network.
    pub(crate) fn reads_exporters(&self) -> bool {
        self.server_metrics.server_metrics.is_some() || self.queries.prometheus.is_some()
    }

    /// Returns the format of the report at the end.
    pub fn report_format(&self) -> AnalyzeFormat {
        format_by_ending(self.output.as_deref()).unwrap_or(AnalyzeFormat::Text)
    }
}

impl CommandOptions for WatchOptions {
    fn conflict(&self) -> Option<&'static str> {
        if matches!(self.report_format(), AnalyzeFormat::Csv | AnalyzeFormat::Parquet) {
            return Some("watch writes a report, not the exchange table; name an .html, .json, .txt or .md file");
        }
        if (self.reads_exporters() || self.machine_metrics)
            && !self.follow
            && self.file.as_ref().is_some_and(|file| file.is_file())
        {
            return Some(
                "--server-metrics, --machine-metrics and --prometheus show the present, and the capture is from the past: add --follow if it grows",
            );
        }
        let is_stdin = self.file.as_ref().is_some_and(|file| file.as_os_str() == "-");
        (self.follow && is_stdin).then_some("standard input (-) is followed anyway; leave out --follow")
    }
}

/// Lines that `watch` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchFormat {
    /// A line per minute for people.
    Text,
    /// An object per minute, `smbscope.minute/1`; times in nanoseconds.
    Json,
}

fn cost(text: &str) -> Result<Nanos, String> {
    let time = units::duration(text)?;
    if time >= Nanos(0) { Ok(time) } else { Err("expected 0 or more".to_owned()) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let time = units::duration(text)?;
    u64::try_from(time.0)
        .ok()
        .filter(|time| *time > 0)
        .map(Duration::from_nanos)
        .ok_or("expected 1s or more".to_owned())
}

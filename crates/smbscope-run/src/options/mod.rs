//! Options of the commands: an option is declared once, as a field of a structure with its help text, parser and
//! default, for the command line, study files and Python. `smbscope-explain` declares the options of an analysis.

mod bench;
mod captures;
mod compare;
mod connect;
mod launch;
mod metrics;
mod predict;
mod study;
#[cfg(test)]
mod tests;
mod watch;

pub use bench::{BenchFormat, BenchOptions, CapturePoints, OptionsError, Think};
pub use captures::{KeptOfNames, RecordOptions, RingOptions, SlimCopyOptions};
pub use compare::{CompareFormat, CompareOptions};
pub use connect::LabServerOptions;
pub use connect::{ConnectOptions, RequestOptions};
pub use launch::{LaunchOptions, LaunchTarget, Mounter};
pub use metrics::{MetricsOptions, QueryOptions, ServerMetricsOptions};
pub use predict::{PredictFormat, PredictOptions, UserNumbers};
pub use smbscope_explain::options::{
    AnalysisOptions, AnalyzeFormat, AnalyzeOptions, ColorChoice, CommandOptions, DecryptionOptions, GivenOptions,
    MemoryOptions, NamedSide, PossibleValueTable, ProgressOptions, ReadingOptions, TerminalOptions, TimeBound,
    TunnelOptions, dimension, named, one_of,
};
pub(crate) use smbscope_explain::options::{GivenValue, word};
pub use study::{RUNS_OF_A_VARIANT_MAX, StudyFormat, StudyOptions};
pub use watch::{WatchFormat, WatchOptions};

use connect::{DIALECTS, SIGNING};
use smbscope_explain::options::{format_by_ending, has_repeated_file, has_several_stdin, port};

use clap::Args;
use smbscope_lab::{Storage, parse_iops, parse_storage_bandwidth, parse_storage_latency};
use std::time::Duration;

#[derive(Debug, Clone, Args)]
pub struct StorageOptions {
    /// Add this latency to every read, write and flush of the private server's storage: 8ms, 100us.
    ///
    /// The share is then a FUSE file system that bypasses the page cache; names and attributes stay fast. Requires
    /// /dev/fuse, and root or fusermount3.
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = parse_storage_latency, help_heading = "Slow storage")]
    pub storage_latency: Option<Duration>,

    /// Limit the private server's storage to N reads, writes and flushes per second: 120. Further requests are
    /// queued.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = parse_iops, help_heading = "Slow storage")]
    pub storage_iops: Option<u32>,

    /// Limit the private server's storage to this number of bytes per second: 150MB/s.
    #[arg(hide_short_help = true, long, value_name = "BANDWIDTH", value_parser = parse_storage_bandwidth, help_heading = "Slow storage")]
    pub storage_bandwidth: Option<u64>,
}

impl StorageOptions {
    pub fn settings(&self) -> Storage {
        Storage { latency: self.storage_latency, iops: self.storage_iops, bandwidth: self.storage_bandwidth }
    }
}

#[derive(Debug, Clone, Args)]
pub struct ClusterOptions {
    /// Run the users on the hosts of this Ray cluster: `HOST:PORT`, `auto` for a running one, or `local` for this
    /// machine.
    ///
    /// Requires the Python package: `pip install 'smbscope[ray]'`. Passwords are sent to the hosts through Ray.
    #[arg(hide_short_help = true, long = "cluster", value_name = "ADDRESS", help_heading = "Cluster")]
    pub address: Option<String>,

    /// Start N load generators on each host of the cluster.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Cluster")]
    pub slots: u16,
}

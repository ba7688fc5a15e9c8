//! Options of the commands: an option is declared once, as a field of a structure with its help text, parser and
//! default, for the command line, study files and Python. Shared options and parsers of values are here.

mod bench;
mod connect;
mod given;

pub use bench::{BenchFormat, BenchOptions, OptionsError, Think};
pub use connect::{ConnectOptions, DIALECTS, ENCRYPTION, SIGNING};
pub use given::{CommandOptions, GivenOptions};
pub(crate) use given::{GivenValue, word};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use smbscope_lab::{Storage, parse_iops, parse_storage_bandwidth, parse_storage_latency};
use smbscope_stats::Dimension;
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
    #[arg(hide_short_help = true, long, value_name = "RATE", value_parser = parse_storage_bandwidth, help_heading = "Slow storage")]
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

/// Use of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Returns a parser for the fields that group commands.
pub fn dimension() -> impl TypedValueParser<Value = Dimension> {
    named(Dimension::ALL.map(|dimension| (dimension.name(), dimension)))
}

/// Accepted names, each with its help text and value.
pub type PossibleValueTable<T> = [(&'static str, &'static str, T)];

/// Returns a parser for the names of a table.
pub fn one_of<T: Clone + Send + Sync + 'static>(
    table: &'static PossibleValueTable<T>,
) -> impl TypedValueParser<Value = T> {
    named(table.iter().map(|(name, help, value)| (PossibleValue::new(*name).help(*help), value.clone())))
}

/// Returns a parser for names without help texts.
pub fn named<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (impl Into<PossibleValue>, T)>,
) -> impl TypedValueParser<Value = T> {
    let (names, values): (Vec<PossibleValue>, Vec<T>) =
        values.into_iter().map(|(name, value)| (name.into(), value)).unzip();
    PossibleValuesParser::new(names.clone()).map(move |given: String| {
        let place = names.iter().position(|name| name.get_name() == given);
        values[place.expect("clap lets no other name pass")].clone()
    })
}

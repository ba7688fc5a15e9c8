//! Options of an analysis: an option is declared once, as a field of a structure with its help text, parser and default,
//! for the command line, study files and Python. Shared options and parsers of values are here.

mod analyze;
mod given;

pub use analyze::{AnalysisOptions, AnalyzeFormat, AnalyzeOptions, NamedSide, TimeBound};
pub use given::{CommandOptions, GivenOptions, GivenValue, word};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_model::{MemoryBudget, TunnelPort, TunnelPorts};
use smbscope_stats::Dimension;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

// How captures are read. (Doc comments of flattened structures would replace the description of the command.)
#[derive(Debug, Clone, Args)]
pub struct ReadingOptions {
    /// Analyze only connections with this TCP port at either end. May be repeated.
    ///
    /// Without it, SMB is recognised on any port by its content.
    #[arg(long = "port", value_name = "PORT", value_parser = port)]
    pub ports: Vec<u16>,

    #[command(flatten)]
    pub tunnels: TunnelOptions,

    /// Follow connections on N threads, plus one that reads; 1 does everything on one thread. [default: all cores]
    ///
    /// The result does not depend on it.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,

    #[command(flatten)]
    pub memory: MemoryOptions,

    #[command(flatten)]
    pub decryption: DecryptionOptions,
}

#[derive(Debug, Clone, Default, Args)]
pub struct DecryptionOptions {
    /// Decrypt SMB 3 with the keys in this file. May be repeated.
    ///
    /// The format is recognised by its content: lines of Wireshark's smb2_seskey_list, the output of `smbinfo keys`, a log of Samba
    /// with `debug encryption = yes`, or a keytab with the Kerberos keys of the server.
    #[arg(long, value_name = "FILE")]
    pub keys: Vec<PathBuf>,

    /// Decrypt sessions that began with NTLM with the password in the first line of this file. May be repeated.
    ///
    /// Instead of a password, it may have lines `username = …`, `password = …` and `domain = …`, as for smbclient.
    #[arg(long = "password-file", value_name = "FILE")]
    pub password_files: Vec<PathBuf>,

    /// Keys that were read already, in place of the files.
    #[arg(skip)]
    pub ring: Option<Arc<KeyRing>>,
}

impl DecryptionOptions {
    /// Returns the files, which must not be overwritten.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.keys.iter().chain(&self.password_files)
    }
}

impl ReadingOptions {
    /// Returns the number of threads, by default one per core.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}

#[derive(Debug, Clone, Args)]
pub struct TunnelOptions {
    /// Read UDP packets on this port as a tunnel: 4790=vxlan. May be repeated.
    ///
    /// KIND is vxlan, vxlan-gpe, geneve, gue, gtp-u, gre-in-udp, mpls-in-udp, l2tp, capwap, teredo, lisp, tzsp, ip or
    /// ethernet. Registered ports are known, and VXLAN, GENEVE and GUE are recognised on any port if the packet inside
    /// is whole.
    #[arg(hide_short_help = true, long = "tunnel-port", value_name = "PORT=KIND")]
    pub tunnel_ports: Vec<TunnelPort>,
}

impl TunnelOptions {
    pub fn ports(&self) -> TunnelPorts {
        TunnelPorts::new(&self.tunnel_ports)
    }
}

#[derive(Debug, Clone, Args)]
pub struct MemoryOptions {
    /// Limit the memory for connection state (connections, outstanding requests, names) to this many MiB, and again
    /// for the windows of decompressors.
    ///
    /// If it is full, the least recently active connections are evicted and counted under Quality.
    #[arg(hide_short_help = true, long = "memory", value_name = "MIB", default_value_t = (MemoryBudget::DEFAULT_MEMORY >> 20) as u32,
        value_parser = clap::value_parser!(u32).range((MemoryBudget::LEAST_MEMORY >> 20) as i64..=1 << 20))]
    pub mebibytes: u32,
}

impl MemoryOptions {
    pub fn bytes(&self) -> usize {
        (self.mebibytes as usize) << 20
    }

    pub fn budget(&self) -> MemoryBudget {
        MemoryBudget::for_memory(self.bytes())
    }
}

#[derive(Debug, Clone, Args)]
pub struct TerminalOptions {
    /// Color the text: on a terminal, always or never.
    #[arg(hide_short_help = true, long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,

    /// Set the width of the text in columns. [default: the terminal's]
    #[arg(hide_short_help = true, long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400))]
    pub width: Option<u16>,

    #[command(flatten)]
    pub progress: ProgressOptions,
}

#[derive(Debug, Clone, Args)]
pub struct ProgressOptions {
    /// Print no progress.
    #[arg(short, long)]
    pub quiet: bool,
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

/// Returns the format named by the extension of the output file.
pub fn format_by_ending<F: ValueEnum>(output: Option<&Path>) -> Option<F> {
    F::from_str(output?.extension()?.to_str()?, true).ok()
}

/// Parses a TCP port.
pub fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "expected a TCP port from 1 to 65535, such as 445".to_owned())
}

/// Returns an error message if several inputs are standard input.
pub fn has_several_stdin(files: &[PathBuf]) -> Option<&'static str> {
    let several = files.iter().filter(|file| file.as_os_str() == "-").count() > 1;
    several.then_some("standard input (-) can be read only once")
}

/// Returns an error message if the files can't be one capture.
pub fn has_repeated_file(files: &[PathBuf]) -> Option<&'static str> {
    let mut seen = HashSet::new();
    let is_repeated = files.iter().any(|file| file.as_os_str() != "-" && !seen.insert(file));
    let repeated = is_repeated.then_some("a file is given twice, so its commands would count twice; give it once");
    has_several_stdin(files).or(repeated)
}

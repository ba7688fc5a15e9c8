//! Options of an analysis: an option is declared once, as a field of a structure with its help text, parser and
//! default, for the command line, study files and Python. Shared options and parsers of values are here, and options
//! given by name: in a study file, by Python, or for a task of a cluster.

mod analyze;

pub use analyze::{AnalysisOptions, AnalyzeFormat, AnalyzeOptions, NamedSide, TimeBound};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, ValueEnum};
use serde::Deserialize;
use smbscope_crypto::key_ring::KeyRing;
use smbscope_model::{MemoryBudget, TunnelPort, TunnelPorts};
use smbscope_stats::Dimension;
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Value;

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

/// Options of one command, which clap parses into a structure.
pub trait CommandOptions: Args {
    /// Returns an error message for options that contradict each other in a way that clap can't express.
    fn conflict(&self) -> Option<&'static str> {
        None
    }
}

/// Names of options and positional arguments, each with its values as text. A switch has the value `true` or `false`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "BTreeMap<String, GivenValue>")]
pub struct GivenOptions(BTreeMap<String, Vec<OsString>>);

/// Value of an option in a TOML file, as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum GivenValue {
    One(String),
    Several(Vec<String>),
}

impl TryFrom<Value> for GivenValue {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<GivenValue, &'static str> {
        let text = |value: Value| match value {
            Value::String(text) => Ok(text),
            Value::Array(_) | Value::Table(_) => Err("an option has a value or a list of values"),
            other => Ok(other.to_string()),
        };
        match value {
            Value::Array(values) => Ok(GivenValue::Several(values.into_iter().map(text).collect::<Result<_, _>>()?)),
            value => text(value).map(GivenValue::One),
        }
    }
}

impl GivenValue {
    /// Returns the value, unless it is a list.
    pub fn one(&self) -> Option<&str> {
        match self {
            GivenValue::One(value) => Some(value),
            GivenValue::Several(_) => None,
        }
    }
}

impl From<BTreeMap<String, GivenValue>> for GivenOptions {
    fn from(values: BTreeMap<String, GivenValue>) -> GivenOptions {
        let mut given = GivenOptions::default();
        for (name, value) in values {
            match value {
                GivenValue::One(value) => given.set(&name, [value]),
                GivenValue::Several(values) => given.set(&name, values),
            }
        }
        given
    }
}

impl GivenOptions {
    /// Sets an option, by its name on the command line or in Python. Replaces earlier values.
    pub fn set<V: Into<OsString>>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        self.0.insert(name.trim_end_matches('_').replace('_', "-"), values.into_iter().map(Into::into).collect());
    }

    /// Returns what a command line gives, without the defaults.
    pub fn from_matches(command: &Command, matches: &ArgMatches) -> GivenOptions {
        let mut given = GivenOptions::default();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let is_given = matches!(matches.try_contains_id(id), Ok(true))
                && matches.value_source(id) == Some(ValueSource::CommandLine);
            match (argument.get_long().unwrap_or(id), argument.get_action().takes_values()) {
                (name, true) if is_given => given.set(name, matches.get_raw(id).into_iter().flatten()),
                (name, false) if is_given => given.set(name, ["true"]),
                _ => {}
            }
        }
        given
    }

    /// Returns these options with others, which take precedence.
    pub fn with(mut self, others: &GivenOptions) -> GivenOptions {
        self.0.extend(others.0.clone());
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[OsString])> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// Returns the values of an option, or none if it was not given.
    pub fn values(&self, name: &str) -> &[OsString] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Parses the options of a command, with the checks and defaults of the command line. The error is one line.
    pub fn parse<O: CommandOptions>(&self) -> Result<O, String> {
        let options = self.parsed::<O>().map_err(|error| one_line(&error))?;
        options.conflict().map_or(Ok(options), |conflict| Err(conflict.to_owned()))
    }

    /// clap takes words only, and its checks (values, conflicts, requirements) depend on them.
    fn parsed<O: Args>(&self) -> Result<O, clap::Error> {
        let command = Command::default().name("smbscope").no_binary_name(true).disable_help_flag(true);
        let mut command = O::augment_args(command);
        command.build();
        let switches = command.get_arguments().filter(|argument| is_switch(argument));
        let switches: Vec<&str> = switches.filter_map(|switch| switch.get_long()).collect();
        let places: Vec<&str> = command.get_positionals().map(|place| place.get_id().as_str()).collect();
        let named = self.iter().filter(|(name, _)| !places.contains(name));
        let named = named.flat_map(|(name, values)| {
            values.iter().filter_map(|value| word(name, value, switches.contains(&name))).collect::<Vec<_>>()
        });
        let placed = places.iter().flat_map(|name| self.values(name)).cloned();
        let words: Vec<OsString> = named.chain([OsString::from("--")]).chain(placed).collect();
        O::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

/// Returns true for an option that can be given without a value.
fn is_switch(option: &Arg) -> bool {
    let has_optional_value = option.get_num_args().is_some_and(|count| count.min_values() == 0);
    matches!(option.get_action(), ArgAction::SetTrue) || (option.get_action().takes_values() && has_optional_value)
}

/// Formats a value for the command line. A switch that is on is a name only; one that is off is left out.
pub fn word(name: &str, value: &OsStr, is_switch: bool) -> Option<OsString> {
    let mut word = OsString::from(format!("--{name}"));
    match value.to_str() {
        Some("true") if is_switch => return Some(word),
        Some("false") if is_switch => return None,
        _ => {}
    }
    word.push("=");
    word.push(value);
    Some(word)
}

/// Formats an error without the usage, which describes a command line.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let said: Vec<&str> = said.map(str::trim).filter(|line| !line.is_empty()).collect();
    said.join("; ").trim_start_matches("error: ").to_owned()
}

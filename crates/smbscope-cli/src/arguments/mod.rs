//! Command line of smbscope, as clap structures. Doc comments of options are their help texts. Each command has a
//! file of its own; `analyze` and shared options are here.

mod bench;
mod captures;
mod compare;
mod lab;
mod launch;
mod study;

pub use bench::{BenchArguments, BenchVerb, CleanArguments, WorkloadsArguments};
pub use captures::{KeptOfNames, RecordArguments, SlimArguments};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub use compare::{CompareArguments, CompareFormat};
pub use lab::{
    DownArguments, LabArguments, LabFormat, LabVerb, RunArguments, Scanner, ServerArguments, StateArguments,
    StatusArguments, UpArguments,
};
pub use launch::{LaunchArguments, LaunchTarget};
use smbscope_diagnose::whatif::Scenario;
use smbscope_model::units;
use smbscope_model::{MemoryBudget, Nanos, Role};
use smbscope_report::{FailIf, Slow};
use smbscope_run::options::{ColorChoice, CommandOptions, GivenOptions, dimension, named};
use smbscope_stats::filter::Filter;
use smbscope_stats::{Dimension, SliceSortKey};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
pub use study::{StudyArguments, StudyFormat};

/// See what an SMB file server makes its users wait for, and why.
#[derive(Debug, Parser)]
#[command(name = "smbscope", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,

    /// Log actions of the program to standard error; -vv logs more. SMBSCOPE_LOG takes filters such as
    /// smbscope_lab=debug.
    #[arg(hide_short_help = true, short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Arguments {
    /// Parses a command line.
    pub(crate) fn parse_line(line: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
        let mut command = Arguments::command();
        let matches = command.try_get_matches_from_mut(line)?;
        let mut arguments = Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        if let (Verb::Bench(bench), Some((name, matches))) = (&mut arguments.verb, matches.subcommand())
            && let Some(command) = command.find_subcommand(name)
        {
            bench.given = GivenOptions::from_matches(command, matches);
        }
        Ok(arguments)
    }

    /// Checks constraints that clap can't express.
    pub fn check(&self) -> Result<(), clap::Error> {
        let conflict = match &self.verb {
            Verb::Analyze(arguments) => arguments.conflict(),
            Verb::Bench(arguments) => return arguments.check(),
            Verb::Compare(arguments) => arguments.conflict(),
            Verb::Launch(arguments) => arguments.conflict(),
            Verb::Lab(_) | Verb::Record(_) | Verb::Slim(_) | Verb::Study(_) | Verb::Completions(_) | Verb::Man(_) => {
                None
            }
        };
        let error = |what| Err(Arguments::command().error(ErrorKind::ArgumentConflict, what));
        conflict.map_or(Ok(()), error)
    }
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Report the response time of every SMB command in packet captures.
    ///
    /// Reads pcap, pcapng and snoop, plain or compressed with gzip, zstd, lz4 or xz, whatever the file's name; SMB1
    /// to SMB 3.1.1 on any port. Several files form one capture, in time order.
    Analyze(Box<AnalyzeArguments>),

    /// Load a server with simulated users, and measure the response time of every command.
    ///
    /// Has its own client for SMB1 to SMB 3.1.1; nothing is mounted. Each load point has more users than the one
    /// before; the report shows throughput and response time by number of users. docs/bench.md has more.
    Bench(Box<BenchArguments>),

    /// Compare captures, reports and runs: what got slower, by how much, and with what certainty.
    ///
    /// Each argument is a capture, a report saved with `analyze --format json`, or a run of `bench`, recognised by
    /// its content. Runs are compared load point by load point. The first argument is the baseline.
    Compare(CompareArguments),

    /// Start private, throw-away Samba servers on this machine.
    ///
    /// Each one is an ordinary process with its own folder, listens only on the loopback interface, and leaves
    /// nothing behind. Root is not required. docs/lab.md has more.
    Lab(LabArguments),

    /// Launch a program repeatedly, and measure how long it takes until it is ready and how much of that it waits for
    /// a file server.
    ///
    /// Its files are on this machine, or on a share that is mounted through FUSE. docs/launch.md has more.
    Launch(Box<LaunchArguments>),

    /// Record client activity of a capture as a workload that bench replays.
    ///
    /// Includes the file commands of SMB1, SMB2 and SMB 3 with sizes, offsets, order and pauses, and the sizes of the
    /// files; contents are generated. Commands that can't be replayed are listed. docs/workloads.md has more.
    Record(RecordArguments),

    /// Write a copy of captures with only the data that the analysis needs: no file content, no passwords.
    ///
    /// `analyze` reports the same on the copy, which, compressed, is 10 to 100 times smaller. With --anonymize it
    /// contains neither names nor addresses and can be sent to a vendor. docs/slim.md has more.
    Slim(SlimArguments),

    /// Run a study: variants of a load, repeated in random order, and compared.
    ///
    /// A file lists the differences between the variants: dialect, signing, servers, block size, a virus scanner, or
    /// any other option of bench or of a lab server. An interrupted study resumes where it stopped. docs/studies.md
    /// has more.
    Study(StudyArguments),

    /// Print a shell script that completes smbscope's command line.
    Completions(CompletionsArguments),

    /// Print a manual page, or write all of them.
    Man(ManArguments),
}

/// End of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Side that sends requests.
    Client,
    /// Side that sends responses.
    Server,
}

impl From<Side> for Role {
    fn from(side: Side) -> Role {
        match side {
            Side::Client => Role::Client,
            Side::Server => Role::Server,
        }
    }
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  smbscope analyze capture.pcapng
  smbscope analyze -o report.html capture.pcapng
  smbscope analyze -o exchanges.csv rotated-*.pcap.zst
  smbscope analyze --filter 'group == Read and response_time > 50ms' --by client,file capture.pcapng
  smbscope analyze --fail-if 'answer.culprit == server' --fail-if 'READ.p95 > 20ms' --junit smb.xml capture.pcapng
  tcpdump -i eth0 -s 256 -w - port 445 | smbscope analyze -

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 3 a --fail-if holds, 130 interrupted (the results so \
far are written).")]
pub struct AnalyzeArguments {
    /// Read these captures; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write this format. [default: by the ending of OUT: .txt, .md, .html, .json, .csv, .parquet; text without OUT]
    #[arg(long, value_enum)]
    pub format: Option<AnalyzeFormat>,

    /// Print all tables of the text report: every command and its parts, errors, distributions, connections, packets.
    #[arg(long)]
    pub full: bool,

    /// Print the text report in the layout of the 1997 paper, in seconds.
    #[arg(long)]
    pub classic: bool,

    /// Write to this file instead of standard output. It is replaced when the report is complete.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    /// Write names into CSV verbatim.
    ///
    /// Without it, names that a spreadsheet would interpret as a formula are prefixed with an apostrophe.
    #[arg(hide_short_help = true, long)]
    pub csv_raw: bool,

    /// Analyze only connections with this TCP port at either end. May be repeated.
    ///
    /// Without it, SMB is recognised on any port by its content.
    #[arg(long = "port", value_name = "N")]
    pub ports: Vec<u16>,

    /// Analyze only exchanges that match an expression, such as 'command == WRITE and response_time > 50ms', 'path ~
    /// *.docx', 'client in 10.0.0.0/8', 'time < 30s'. docs/filter.md describes it.
    #[arg(long, value_name = "EXPR", help_heading = "Filter and slices")]
    pub filter: Option<Filter>,

    /// Analyze only the episode with this number: a burst of work of one client, such as an application launch.
    /// --full lists the episodes.
    #[arg(long, value_name = "N", help_heading = "Filter and slices", value_parser = clap::value_parser!(u32).range(1..))]
    pub episode: Option<u32>,

    /// Predict the duration of the episode with another round trip (rtt=20ms), a server that takes half the time
    /// (server=0.5x), reopened files served from a cache (cache-opens), or read-ahead (read-ahead); combine changes
    /// with commas. May be repeated.
    #[arg(long, value_name = "CHANGE,...", requires = "episode", help_heading = "Filter and slices")]
    pub what_if: Vec<Scenario>,

    /// Group results by these fields, separated by commas or repeated.
    ///
    /// With --format csv, print the groups instead of the exchange table.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = dimension(), help_heading = "Filter and slices")]
    pub by: Vec<Dimension>,

    /// List N groups in the text report.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "by", help_heading = "Filter and slices",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,

    /// Sort groups by this figure, descending; response_time and service_time are totals.
    #[arg(long, value_name = "FIGURE", default_value = "response_time", value_parser = sort(), requires = "by",
        help_heading = "Filter and slices")]
    pub sort: SliceSortKey,

    /// Show a timeline with bins of this width: 100ms, 1s, 5min. [default: none]
    #[arg(long, value_name = "DURATION", value_parser = interval, help_heading = "Filter and slices")]
    pub interval: Option<Nanos>,

    /// Set the limits above which waits count as slow: wait=2s,share=10%,read=50ms,longest=5s; p95=100ms sets all
    /// groups. docs/figures.md lists the limits and their defaults.
    #[arg(long, value_name = "NAME=VALUE,...", default_value = "", hide_default_value = true)]
    pub slow: Slow,

    /// Fail (exit status 3) if a condition holds: 'answer.culprit == server', 'READ.p95 > 20ms'. May be repeated.
    ///
    /// The report is written first. Conditions: answer.culprit and answer.cause with == or !=; answer.lost > 2s;
    /// not_timed > 5%; mean, max, p50, p90, p95, p99, p999, count or errors of a command (READ.p95), a group
    /// (Open/Close.p95) or the total (total.max), also written p95(READ). docs/comparing.md describes them.
    #[arg(long = "fail-if", value_name = "LIMIT")]
    pub fail_if: Vec<FailIf>,

    /// Write the results of --fail-if to this file as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub junit: Option<PathBuf>,

    /// Skip the search for causes and episodes, which saves up to a seventh of the CPU time.
    #[arg(hide_short_help = true, long, conflicts_with_all = ["episode", "thresholds"])]
    pub no_findings: bool,

    /// Read thresholds of causes from this TOML file: one table per cause, one value per threshold. docs/causes.md
    /// lists them.
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,

    /// For packets captured on both sides of a router, use the copies next to the client or next to the server.
    /// [default: the first copy of each]
    #[arg(hide_short_help = true, long, value_enum, value_name = "SIDE")]
    pub beside: Option<Side>,

    /// Set the title of the report.
    #[arg(long)]
    pub title: Option<String>,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Clone, Args)]
pub struct CommonArguments {
    #[command(flatten)]
    pub layout: LayoutArguments,

    #[command(flatten)]
    pub reading: ReadingArguments,
}

#[derive(Debug, Clone, Args)]
pub struct LayoutArguments {
    /// Use colour.
    #[arg(hide_short_help = true, long, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,

    /// Set the width of the text report in columns. [default: the terminal's]
    #[arg(hide_short_help = true, long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400))]
    pub width: Option<u16>,
}

#[derive(Debug, Clone, Args)]
pub struct ReadingArguments {
    /// Follow connections on N threads, plus one that reads; 1 does everything on one thread. [default: all cores]
    ///
    /// The result does not depend on it.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,

    #[command(flatten)]
    pub budget: BudgetArguments,
}

#[derive(Debug, Clone, Args)]
pub struct BudgetArguments {
    /// Memory budget in MiB for connection state (connections, outstanding requests, names), and again for the
    /// windows of decompressors.
    ///
    /// When it is full, the least recently active connections are evicted and counted under Quality.
    #[arg(hide_short_help = true, long, value_name = "MIB", default_value_t = (MemoryBudget::DEFAULT_MEMORY >> 20) as u32,
        value_parser = clap::value_parser!(u32).range((MemoryBudget::LEAST_MEMORY >> 20) as i64..=1 << 20))]
    pub memory: u32,

    /// Print no progress bar.
    #[arg(short, long)]
    pub quiet: bool,
}

impl BudgetArguments {
    /// Returns the memory budget in bytes.
    pub fn memory_bytes(&self) -> usize {
        (self.memory as usize) << 20
    }

    pub fn limits(&self) -> MemoryBudget {
        MemoryBudget::for_memory(self.memory_bytes())
    }
}

impl ReadingArguments {
    /// Returns the number of threads, by default one per core.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}

impl CommandOptions for AnalyzeArguments {
    fn conflict(&self) -> Option<&'static str> {
        if self.classic && self.format() != AnalyzeFormat::Text {
            Some("--classic is a layout of the text report; it goes with --format text")
        } else if self.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            Some("standard input (-) can be read only once")
        } else if self.classic && self.slices() {
            Some("--classic is the layout of 1997, which has no slices; omit --classic or --by")
        } else if self.interval.is_some() && (self.classic || self.format() == AnalyzeFormat::Csv) {
            Some("--interval sets the time line, which only text, Markdown and JSON contain")
        } else if !self.fail_if.is_empty() && self.writes_table() {
            Some("--fail-if needs a report, not the exchange table; use --format text, markdown, json or html")
        } else if self.no_findings && self.fail_if.iter().any(FailIf::needs_answer) {
            Some("--fail-if 'answer…' needs the causes that --no-findings leaves out; leave out one of them")
        } else if self.csv_raw && self.format() != AnalyzeFormat::Csv {
            Some("--csv-raw goes with --format csv")
        } else {
            None
        }
    }
}

impl AnalyzeArguments {
    /// Returns arguments with nothing but files.
    pub(crate) fn of_files<F: Into<OsString>>(files: impl IntoIterator<Item = F>) -> AnalyzeArguments {
        let mut given = GivenOptions::default();
        given.set("files", files);
        given.parse().expect("no option is required")
    }

    /// Returns the output format.
    pub fn format(&self) -> AnalyzeFormat {
        self.format.or_else(|| by_ending(self.output.as_deref())).unwrap_or(AnalyzeFormat::Text)
    }

    /// Returns true if the exchange table is written instead of a report.
    pub(crate) fn writes_table(&self) -> bool {
        self.format() == AnalyzeFormat::Parquet || self.format() == AnalyzeFormat::Csv && !self.slices()
    }

    /// Returns true if the commands are grouped.
    pub fn slices(&self) -> bool {
        !self.by.is_empty()
    }
}

/// Returns the format named by the extension of the output file.
fn by_ending<F: ValueEnum>(output: Option<&Path>) -> Option<F> {
    F::from_str(output?.extension()?.to_str()?, true).ok()
}

fn sort() -> impl TypedValueParser<Value = SliceSortKey> {
    named(SliceSortKey::ALL.map(|sort| (sort.name(), sort)))
}

/// Parses the bin width of a timeline.
fn interval(text: &str) -> Result<Nanos, String> {
    const LEAST: Nanos = Nanos(1_000);
    const MOST: Nanos = Nanos(86_400_000_000_000);
    let interval = units::duration(text)?;
    if (LEAST..=MOST).contains(&interval) { Ok(interval) } else { Err("expected 1us to 1d".to_owned()) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnalyzeFormat {
    /// Report for a terminal.
    #[value(alias = "txt")]
    Text,
    /// Report in Markdown, for a ticket or a pull request.
    #[value(alias = "md")]
    Markdown,
    /// Report as a self-contained page with charts.
    #[value(alias = "htm")]
    Html,
    /// One object, `smbscope.report/1`; times in nanoseconds.
    Json,
    /// Exchange table: one row per exchange, with packet numbers and timestamps.
    Csv,
    /// The same table as Apache Parquet, for data frames and SQL.
    Parquet,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope completions bash > ~/.local/share/bash-completion/completions/smbscope
  smbscope completions fish > ~/.config/fish/completions/smbscope.fish
  smbscope completions zsh > ~/.zfunc/_smbscope    (with ~/.zfunc in fpath, before compinit)
  smbscope completions powershell >> $PROFILE

`make install` installs those for bash, zsh and fish.")]
pub struct CompletionsArguments {
    /// Shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope man analyze | man -l -
  smbscope man --output /usr/local/share/man/man1")]
pub struct ManArguments {
    /// Print the page of this command, such as `analyze` or `lab-up`, instead of smbscope's own.
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,

    /// Write all pages into this directory, creating it if necessary, instead of printing one.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}

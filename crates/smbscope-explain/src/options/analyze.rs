//! Options of `smbscope analyze`, and of analyses by Python, by tasks of a cluster and for `compare`.

use super::{
    CommandOptions, GivenOptions, PossibleValueTable, ReadingOptions, TerminalOptions, dimension, format_by_ending,
    has_repeated_file, named, one_of,
};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use jiff::civil;
use smbscope_capture::reader::{CaptureError, CaptureInput};
use smbscope_model::{Nanos, Role, units};
use smbscope_report::{FailIf, Slow};
use smbscope_stats::filter::Filter;
use smbscope_stats::{Dimension, SliceSortKey};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone, Args)]
pub struct AnalyzeOptions {
    /// Read these captures; `-` is standard input, and a directory stands for the captures in it.
    ///
    /// Captures of the same traffic at several points, such as client and server, are compared with each other.
    #[arg(required_unless_present = "sides", value_name = "FILE")]
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

    #[command(flatten)]
    pub analysis: AnalysisOptions,

    /// List N groups in the text report.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "by", help_heading = "Filter and slices",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,

    /// Fail (exit status 3) if a condition holds: 'answer.culprit == server', 'READ.p95 > 20ms'. May be repeated.
    ///
    /// The report is written first. Conditions: answer.culprit and answer.cause with == or !=; answer.lost > 2s;
    /// not_timed > 5%; mean, max, p50, p90, p95, p99, p999, count or errors of a command (READ.p95), a group
    /// (Open/Close.p95) or the total (total.max), also written p95(READ). `smbscope help comparing` describes them.
    #[arg(long = "fail-if", value_name = "LIMIT")]
    pub fail_if: Vec<FailIf>,

    /// Write the results of --fail-if to this file as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub junit: Option<PathBuf>,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

// Options of the analysis itself. A doc comment would replace the description of the command.
#[derive(Debug, Clone, Args)]
pub struct AnalysisOptions {
    #[command(flatten)]
    pub reading: ReadingOptions,

    /// Analyze only exchanges that match an expression, such as 'command == WRITE and response_time > 50ms', 'path ~
    /// *.docx', 'client in 10.0.0.0/8', 'time < 30s'. `smbscope help filters` describes it.
    #[arg(long, value_name = "EXPR", help_heading = "Filter and slices")]
    pub filter: Option<Filter>,

    /// Analyze only commands sent from this time on: 14:02, 14:02:30 (local time, on the last day of the capture),
    /// 2026-11-27T14:02 or 2026-11-27T13:02:00Z.
    ///
    /// Earlier packets are read for names. Figures of connections cover the whole capture, as with --filter.
    #[arg(long, value_name = "TIME", help_heading = "Filter and slices")]
    pub from: Option<TimeBound>,

    /// Analyze only commands sent before this time, written as for --from. Without a date, it is the first such time
    /// after --from.
    #[arg(long, value_name = "TIME", help_heading = "Filter and slices")]
    pub to: Option<TimeBound>,

    /// Analyze only the episode with this number: a burst of work of one client, such as an application launch.
    /// --full lists the episodes.
    #[arg(long, value_name = "N", help_heading = "Filter and slices", value_parser = clap::value_parser!(u32).range(1..))]
    pub episode: Option<u32>,

    /// Group results by these fields, separated by commas or repeated.
    ///
    /// With --format csv, print the groups instead of the exchange table.
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', value_parser = dimension(), help_heading = "Filter and slices")]
    pub by: Vec<Dimension>,

    /// Sort groups by this figure, descending; response_time and service_time are totals.
    #[arg(long, value_name = "FIGURE", default_value = "response_time", value_parser = sort(), requires = "by",
        help_heading = "Filter and slices")]
    pub sort: SliceSortKey,

    /// Show a timeline with bins of this width: 100ms, 1s, 5min. [default: no timeline]
    #[arg(long, value_name = "DURATION", value_parser = interval, help_heading = "Filter and slices")]
    pub interval: Option<Nanos>,

    /// Set the limits above which waits count as slow: wait=2s,share=10%,read=50ms,longest=5s; p95=100ms sets all
    /// groups. `smbscope help causes` lists the limits and their defaults.
    #[arg(long, value_name = "NAME=VALUE,...", default_value = "", hide_default_value = true)]
    pub slow: Slow,

    /// Skip the search for causes and episodes, which saves up to a seventh of the CPU time.
    #[arg(hide_short_help = true, long, conflicts_with_all = ["episode", "thresholds"])]
    pub no_findings: bool,

    /// Read thresholds of causes from this TOML file: one table per cause, one value per threshold. `smbscope help
    /// causes` lists them.
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,

    /// Use the copies next to the client or to the server of packets that were captured on both sides of a router.
    /// [default: the first copy of each]
    #[arg(hide_short_help = true, long, value_parser = one_of(SIDES), value_name = "SIDE")]
    pub beside: Option<Role>,

    /// Name the points at which captures of the same traffic were taken, from the client to the server:
    /// client=a.pcapng,server=b.pcapng. Files of one point may be several. [default: found by content, of 2 to 4 files]
    #[arg(long, value_name = "POINT=FILE,...", value_delimiter = ',')]
    pub sides: Vec<NamedSide>,

    /// Set the title of the report.
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Keeps the first commands that pass the filter, for the waterfall of an episode or for predictions.
    #[arg(skip)]
    pub waterfall: bool,

    /// If there are too many of these commands, keeps the ones in time windows across the capture, not the first ones.
    #[arg(skip)]
    pub sampled: bool,

    /// Keeps times and contents of exchanges, to recognise them in a capture of another point.
    #[arg(skip)]
    pub sightings: bool,
}

impl CommandOptions for AnalysisOptions {}

/// A point in time as given to --from or --to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeBound {
    /// Local time of a day in the capture.
    TimeOfDay(civil::Time),
    /// Local date and time.
    Local(civil::DateTime),
    /// With its offset from UTC.
    Instant(jiff::Timestamp),
}

impl FromStr for TimeBound {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<TimeBound, &'static str> {
        let is_date = text.contains('-') && text.contains(['T', 't', ' ']);
        let parsed = if !is_date && text.contains(':') {
            text.parse().ok().map(TimeBound::TimeOfDay)
        } else if is_date {
            let instant = text.parse().ok().map(TimeBound::Instant);
            instant.or_else(|| text.parse().ok().map(TimeBound::Local))
        } else {
            None
        };
        parsed.ok_or("expected a time: 14:02, 14:02:30, 2026-11-27T14:02 or 2026-11-27T13:02:00Z")
    }
}

impl fmt::Display for TimeBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeBound::TimeOfDay(time) => time.fmt(f),
            TimeBound::Local(time) => time.fmt(f),
            TimeBound::Instant(time) => time.fmt(f),
        }
    }
}

/// A capture with the name of its point: `client=a.pcapng`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSide {
    pub point: String,
    pub file: PathBuf,
}

impl FromStr for NamedSide {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<NamedSide, &'static str> {
        match text.split_once('=') {
            Some((point, file)) if !point.is_empty() && !file.is_empty() => {
                Ok(NamedSide { point: point.to_owned(), file: file.into() })
            }
            _ => Err("write the point and its file: client=a.pcapng,server=b.pcapng"),
        }
    }
}

impl AnalyzeOptions {
    /// Returns the captures to read, those in directories and those named in --sides included.
    pub fn inputs(&self) -> Result<Vec<CaptureInput>, CaptureError> {
        let named = self.analysis.sides.iter().map(|side| &side.file).filter(|file| !self.files.contains(file));
        let mut inputs = CaptureInput::from_arguments(&self.files)?;
        inputs.extend(named.map(CaptureInput::from_argument));
        Ok(inputs)
    }
}

impl Default for AnalysisOptions {
    fn default() -> AnalysisOptions {
        GivenOptions::default().parse().expect("no option is required")
    }
}

impl CommandOptions for AnalyzeOptions {
    fn conflict(&self) -> Option<&'static str> {
        if self.classic && self.format() != AnalyzeFormat::Text {
            Some("--classic is a layout of the text report; it goes with --format text")
        } else if self.classic && self.slices() {
            Some("--classic is the layout of 1997, which has no slices; omit --classic or --by")
        } else if self.analysis.interval.is_some() && (self.classic || self.format() == AnalyzeFormat::Csv) {
            Some("--interval sets the time line, which only text, Markdown and JSON contain")
        } else if !self.fail_if.is_empty() && self.writes_table() {
            Some("--fail-if needs a report, not the exchange table; use --format text, markdown, json or html")
        } else if self.analysis.no_findings && self.fail_if.iter().any(FailIf::needs_answer) {
            Some("--fail-if 'answer…' needs the causes that --no-findings leaves out; leave out one of them")
        } else if self.csv_raw && self.format() != AnalyzeFormat::Csv {
            Some("--csv-raw goes with --format csv")
        } else {
            has_repeated_file(&self.files)
        }
    }
}

impl AnalyzeOptions {
    /// Returns the output format.
    pub fn format(&self) -> AnalyzeFormat {
        self.format.or_else(|| format_by_ending(self.output.as_deref())).unwrap_or(AnalyzeFormat::Text)
    }

    /// Returns true if the exchange table is written instead of a report.
    pub fn writes_table(&self) -> bool {
        self.format() == AnalyzeFormat::Parquet || self.format() == AnalyzeFormat::Csv && !self.slices()
    }

    /// Returns true if the commands are grouped.
    fn slices(&self) -> bool {
        !self.analysis.by.is_empty()
    }
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

const SIDES: &PossibleValueTable<Role> =
    &[("client", "Side that sends requests", Role::Client), ("server", "Side that sends responses", Role::Server)];

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

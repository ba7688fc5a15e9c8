//! The document of a ramp, `smbscope.bench/1`, as `schema/smbscope.bench-1.schema.json` describes it: what the text, the
//! page and a comparison are made from, and what `run.json` holds. Times are integers in nanoseconds; what is unknown or
//! not supported by enough values is `null`. The order of keys and entries is fixed.

use super::{Counted, HostRun, Jobs, Launch, ServerLoad};
use crate::Answer;
use crate::document::{self, Generator, Kind, ParseError};
use crate::json::escaped::write_indented_above;
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::Figures;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The value of the key `schema`.
pub const SCHEMA: &str = "smbscope.bench/1";

const KIND: Kind = Kind { schema: SCHEMA, advice: "give the run.json that bench wrote" };

/// A ramp of runs against a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Who wrote it.
    pub generator: Generator,
    /// A title given by the user.
    pub title: Option<String>,
    /// Where throughput peaks and what more users pay for it, whose the time is at the load point that is shown, and the
    /// commands that look closer. Whether that point is slow, and why, its own answer says.
    pub answer: Answer,
    /// What the load was put on.
    pub target: Target,
    /// What the users did.
    pub workload: Workload,
    /// How the load was put on the server.
    pub settings: Settings,
    /// When the first run began to be prepared.
    pub started_ns: Timestamp,
    /// What the runs were made on, name by name: `system`, `kernel`, `processor`, `cores`, `memory`, `server` …
    pub environment: BTreeMap<String, String>,
    /// The load points, in the order in which they were run.
    pub runs: Vec<Run>,
    /// The highest load at which a criterion holds; null where none was asked for.
    pub capacity: Option<Capacity>,
    /// The area under the curve of mean response time against users (or rates), divided by their range; at one load,
    /// the mean there. In an open loop response times count from when operations were due.
    pub overall_response_time_ns: Option<Nanos>,
    /// What weakens the figures, a sentence each, the gravest first.
    pub warnings: Vec<String>,
    /// How it was started; null where that is not known.
    pub invocation: Option<Invocation>,
    /// The program whose launches these are; null for a load.
    pub launch: Option<Launch>,
}

/// How a ramp was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// The command line, quoted for a shell, without load points, schedule and results. There is no place for a password.
    pub command: String,
    /// The run directory; null where the run was not kept.
    pub directory: Option<String>,
}

/// The server, the share, and how they are spoken to. There is no place for a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// As the user named it; `this machine` where the load was put on a local folder.
    pub host: String,
    /// TCP port; 0 for a local folder.
    pub port: u16,
    /// Name of the share; the path of a local folder.
    pub share: String,
    /// Directory on the share below which everything happens.
    pub directory: Option<String>,
    /// The name that users log on with; null for guests and where there are several.
    pub user: Option<String>,
    /// As negotiated: `3.1.1`, `NT LM 0.12`; `local` for a local folder; null where no run got so far.
    pub dialect: Option<String>,
    /// As asked for: `off`, `on` or `required`.
    pub signing: String,
    /// As negotiated: `AES-128-CMAC`; null where messages are not signed.
    pub signing_algorithm: Option<String>,
    /// As asked for: `off` or `required`.
    pub encryption: String,
    /// As negotiated: `AES-128-GCM`; null where messages are not encrypted.
    pub cipher: Option<String>,
}

impl Target {
    /// A local folder in the place of a share.
    pub(crate) fn is_local(&self) -> bool {
        self.dialect.as_deref() == Some("local")
    }
}

/// What users do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The file that it comes from; null for one that is built in.
    pub source: Option<String>,
    /// The values of its parameters, by name.
    pub parameters: BTreeMap<String, String>,
    /// What its random choices begin from.
    pub seed: Option<u64>,
    /// The files that are there before the first run; null where there are none.
    pub file_set: Option<FileSet>,
    /// SHA-256 of the text that the workload is made from, in hexadecimal.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub sha256: Option<String>,
    /// The text that the workload is made from: TOML or a loadfile; null where it has more than 64 KiB.
    pub definition: Option<String>,
}

/// Files that were prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSet {
    /// How many.
    pub files: u64,
    /// Their sizes added up.
    pub bytes: u64,
}

/// How the load was put on the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// When operations begin: in a closed loop when the user's operation before is done, in an open one when they are
    /// due.
    pub schedule: Schedule,
    /// The load points asked for; with `rates`, the users of all of them.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::num::NonZeroU32>"))]
    pub users: Vec<u32>,
    /// The load points asked for where they differ in their rate: operations a second of all users together.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::num::NonZeroU32>"))]
    pub rates: Vec<u32>,
    /// Length of the measured part of each, as asked for.
    pub duration_ns: Nanos,
    /// Length of what goes before it and is not counted.
    pub warmup_ns: Nanos,
    /// Threads of the client.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub threads: u32,
    /// Sessions of each user.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub sessions_per_user: u32,
    /// Connections of each session; more than one are SMB 3 multichannel.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub connections_per_session: u32,
    /// The client asked for answers without a pause, instead of sleeping until they came.
    pub busy_poll: bool,
    /// Sessions made a second; null where they were not held back.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub connects_per_second: Option<f64>,
    /// Whole passes of each user at each load point, which end it; null where its time does.
    pub passes: Option<u32>,
    /// A load point with a larger share of failed operations makes the run a failed one; null where none does.
    pub max_errors_percent: Option<f64>,
    /// Whether a capture was asked for.
    pub capture: bool,
}

/// When operations begin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "lowercase")]
pub enum Schedule {
    /// When the user's operation before is done.
    Closed {
        /// What passes between two operations of a user.
        think_ns: Nanos,
    },
    /// When they are due.
    Open {
        /// Operations a second: of all users together, or of each. With `rates` that of the first load point.
        #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
        rate: f64,
        /// The rate is that of each user.
        per_user: bool,
        /// Whether they are due at random, independent of each other, instead of at equal distances.
        random: bool,
    },
}

/// One measured load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Users at the same time.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// When the measured part began.
    pub started_ns: Timestamp,
    /// Length of the measured part, as it was.
    pub duration_ns: Nanos,
    /// Length of what went before it and is not counted.
    pub warmup_ns: Nanos,
    /// How it ended.
    pub ended: Ended,
    /// By which schedule operations began, and how far it was kept.
    pub pace: Pace,
    /// Commands of every group that were answered in the measured part.
    pub operations: u64,
    /// The same, a second.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub operations_per_second: f64,
    /// Bytes read by answered commands.
    pub bytes_read: u64,
    /// Bytes written by answered commands.
    pub bytes_written: u64,
    /// Error responses by status.
    pub errors: BTreeMap<String, u64>,
    /// Commands of the groups that count in the headline.
    pub total: Measured,
    /// Open loop: operations of the workload, from when they were due to their end. What users waited: headlines, curves and
    /// capacity go by it. Null in a closed loop.
    pub due: Option<Figures>,
    /// Times in which commands were outstanding and the server answered none, in their order; of more than 100 the
    /// longest.
    #[cfg_attr(feature = "schema", schemars(length(max = 100)))]
    pub stalls: Vec<Stall>,
    /// The groups that occurred, in the order of the report; `Other` is followed by its parts.
    pub groups: Vec<Group>,
    /// By command, what it was used for, and group.
    pub commands: Vec<Command>,
    /// By operation of the workload, in the workload's order.
    pub workload_operations: Vec<Operation>,
    /// The measured part, piece by piece, in time order.
    pub intervals: Vec<Interval>,
    /// Time from the start of a connect to a session that can be used.
    pub connects: Figures,
    /// Commands that these connects took, and how often; they are in no other count.
    pub connect_commands: BTreeMap<String, u64>,
    /// Sessions that could not be made or broke, by reason, and how often.
    pub failures: BTreeMap<String, u64>,
    /// Commands that were outstanding when their connection ended.
    pub unanswered: u64,
    /// What the client itself cost; null where not known.
    pub client_cpu: Option<ClientCpu>,
    /// The capture of the run; null where none was asked for.
    pub capture: Option<Capture>,
    /// The commands as the report of a capture has them.
    pub counted: Option<Counted>,
    /// Is anything slow, and whose is it, as far as the client knows; null where nothing was answered.
    pub answer: Option<Answer>,
    /// Whole passes of the workload; null where it has no end.
    pub jobs: Option<Jobs>,
    /// What the load cost the server; null where nothing is known of its side.
    pub server: Option<ServerLoad>,
    /// Commands that each user had outstanding together; null where the workload wants one at a time.
    pub queue: Option<Queue>,
    /// Scenarios that were too slow for their users; null where the workload has none or the loop is closed.
    pub overload: Option<Overload>,
    /// What each host did, where the load came from several; empty where it came from one process.
    pub hosts: Vec<HostRun>,
}

/// Scenarios of an open loop that were too slow, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overload {
    /// Scenarios that were due in the measured part.
    pub scenarios: u64,
    /// They began later than `late_ns` after they were due.
    pub late: u64,
    /// They began in time, and took longer than `budget_ns` or had no end.
    pub exceeded: u64,
    /// They did not begin until the end.
    pub not_begun: u64,
    /// All three in percent of those that were due.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub percent: f64,
    /// How late a scenario may begin.
    pub late_ns: Nanos,
    /// How long it may take; null where it may take any time.
    pub budget_ns: Option<Nanos>,
}

impl Overload {
    /// Scenarios that were too slow.
    pub fn count(&self) -> u64 {
        self.late + self.exceeded + self.not_begun
    }
}

/// Commands outstanding together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queue {
    /// As many as the workload wants.
    pub asked: u32,
    /// The most there were: the server's credits may allow no more.
    pub reached: u32,
}

/// A time in which commands were outstanding and the server answered none: at least 200 ms, and 100 times the median
/// response time of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// When it began.
    pub start_ns: Timestamp,
    /// How long it was.
    pub duration_ns: Nanos,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "lowercase")]
pub enum Ended {
    /// Its time was up, or every user had done all there was to do.
    Done,
    /// The user ended it.
    Interrupted,
    /// A stop condition ended it.
    Stopped {
        /// Which.
        why: String,
    },
    /// No user could go on.
    Failed {
        /// Why.
        why: String,
    },
}

/// By which schedule operations began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "lowercase")]
pub enum Pace {
    /// When the user's operation before was done: a stall of the server holds back the load, and so hides in the
    /// percentiles.
    Closed,
    /// When they were due.
    Open {
        /// Operations a second that were asked for.
        #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
        rate: f64,
        /// Operations a second that were done.
        #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
        rate_kept: f64,
        /// Operations that were due and did not begin until the end.
        not_begun: u64,
    },
}

/// Response times of the same commands, seen from two places.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Inside the client: from handing the request to the system to having the whole response.
    pub client: Figures,
    /// From a capture of the same exchanges; null where none was made.
    pub wire: Option<Figures>,
    /// The client's time less the wire's, of each command that was seen from both places: what the client's own system
    /// adds. Null where commands were not matched one by one.
    pub difference: Option<Figures>,
}

/// Commands of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeasuredGroup"))]
pub struct Group {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub group: String,
    /// The group that it is a part of, and is counted in as well.
    pub part_of: Option<String>,
    /// Whether it counts in the headline.
    pub headline: bool,
    /// Commands that were answered.
    pub operations: u64,
    /// Their response times.
    #[serde(flatten)]
    pub times: Measured,
}

/// Commands of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Command {
    /// `SMB1` or `SMB2`.
    #[cfg_attr(feature = "schema", schemars(with = "smbscope_model::Protocol"))]
    pub protocol: String,
    /// The specification's name.
    pub command: String,
    /// What it was used for.
    pub subcommand: Option<String>,
    /// Where it is counted.
    pub group: String,
    /// Commands that the client had an answer for.
    pub count: u64,
    /// Error responses by status.
    pub errors: BTreeMap<String, u64>,
    /// Their response times.
    #[serde(flatten)]
    pub times: Measured,
}

/// Operations of the workload: one or several commands each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operation {
    /// As the workload calls it.
    pub operation: String,
    /// From the actual start to the end.
    pub service_time: Figures,
    /// From the intended start to the end: what a user would have waited who keeps to the schedule. Null in a closed
    /// loop.
    pub response_time: Option<Figures>,
    /// Operations that ended otherwise than expected, by status.
    pub unexpected: BTreeMap<String, u64>,
}

/// A piece of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// When it began.
    pub start_ns: Timestamp,
    /// Users with a session at its end.
    pub users: u32,
    /// Commands answered.
    pub operations: u64,
    /// Error responses.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Median response time.
    pub p50: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// The longest.
    pub max: Option<Nanos>,
}

/// Processor time of the client in the measured part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientCpu {
    /// In user mode.
    pub user_ns: Nanos,
    /// In the kernel.
    pub system_ns: Nanos,
    /// Both, in percent of one processor.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub percent: f64,
    /// Both, for each command that was answered; null where threads asked for answers without a pause.
    pub per_operation_ns: Option<Nanos>,
    /// The share of the time that the busiest thread was on a processor and did more than asking for answers, in percent.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub busiest_percent: f64,
    /// The client, and not the server, was the limit: the figures say nothing about the server.
    pub limited: bool,
    /// How late its threads woke up, the 99th percentile: response times include it.
    pub late_p99_ns: Option<Nanos>,
}

/// The capture of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Capture {
    /// There is none.
    Skipped {
        /// Why, as a part of a sentence: "tcpdump is not installed".
        why: String,
    },
    /// It was made and analysed.
    Made(Captured),
}

/// What a capture held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Captured {
    /// The file, where it was kept.
    pub file: Option<String>,
    /// How far it can be trusted, in one sentence.
    pub quality: String,
    /// Packets in it.
    pub packets: u64,
    /// Packets that the capturing program says it lost.
    pub dropped_packets: u64,
    /// Commands that the client counted.
    pub client_commands: u64,
    /// Commands that the capture shows answered in the same time.
    pub wire_commands: u64,
    /// Commands that were seen from both places and matched one by one; null where that was not tried.
    pub matched: Option<u64>,
}

/// The highest load at which a criterion holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// As given: `p95(Read) < 20ms`.
    pub criterion: String,
    /// The load; null where the criterion holds at none that was tried.
    pub users: Option<u32>,
    /// Its rate, operations a second, where loads differ in that; otherwise null.
    pub rate: Option<u32>,
    /// The largest load near it at which the criterion held in all of three tries: a search on another day finds no less;
    /// null where none is known.
    pub always: Option<u32>,
    /// The smallest load near it at which it held in none of three; null where none is known.
    pub never: Option<u32>,
    /// The loads tried, in the order in which they were.
    pub tried: Vec<Tried>,
}

/// A load at which the criterion was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tried {
    /// The load.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Its rate, operations a second, where loads differ in that; otherwise null.
    pub rate: Option<u32>,
    /// What was found there, in words: `18.3 ms`; null where there were too few values.
    pub found: Option<String>,
    /// Whether the criterion holds.
    pub holds: bool,
}

impl Run {
    /// The measured part in seconds; what has no length has no rates.
    pub fn seconds(&self) -> Option<f64> {
        (self.duration_ns.0 > 0).then(|| self.duration_ns.as_secs_f64())
    }

    /// Bytes read a second.
    pub fn read_per_second(&self) -> Option<f64> {
        self.seconds().map(|seconds| self.bytes_read as f64 / seconds)
    }

    /// Bytes written a second.
    pub fn written_per_second(&self) -> Option<f64> {
        self.seconds().map(|seconds| self.bytes_written as f64 / seconds)
    }

    /// Error responses.
    pub fn error_count(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Operations of the workload that ended otherwise than expected.
    pub fn unexpected_count(&self) -> u64 {
        let counts = self.workload_operations.iter().flat_map(|operation| operation.unexpected.values());
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// What users waited: from when operations were due in an open loop, otherwise the response times of commands.
    pub fn headline(&self) -> &Figures {
        self.due.as_ref().unwrap_or(&self.total.client)
    }

    /// The load: users, or operations a second.
    pub fn load(&self, by_rate: bool) -> f64 {
        self.rate().filter(|_| by_rate).unwrap_or_else(|| f64::from(self.users))
    }

    /// Operations a second that were asked for, in an open loop.
    pub fn rate(&self) -> Option<f64> {
        match self.pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed => None,
        }
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.group == name)
    }

    /// Whether times of a capture stand beside the client's.
    pub fn has_wire(&self) -> bool {
        self.total.wire.is_some()
    }
}

/// What `smbscope bench --format json` prints and `run.json` of a run directory holds: a ramp of runs against a server.
/// All times are integers in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not
/// supported by enough values.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Whole<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    document: &'a Document,
}

impl<'a> Whole<'a> {
    pub(crate) fn new(document: &'a Document) -> Whole<'a> {
        Whole { schema: SCHEMA, document }
    }
}

/// Levels that are indented: to the entries of what was counted of a load point, each of which has hundreds of numbers.
const LEVELS: usize = 6;

/// Writes the document, indented, with a line end after it.
pub fn write(document: &Document, out: impl Write) -> io::Result<()> {
    write_indented_above(LEVELS, &Whole::new(document), out)
}

impl Document {
    /// Whether load points differ in their rate, and not in their users.
    pub fn is_ramp_of_rates(&self) -> bool {
        !self.settings.rates.is_empty()
    }

    /// The load of a run: users, or operations a second.
    pub(crate) fn load(&self, run: &Run) -> u32 {
        run.load(self.is_ramp_of_rates()).round() as u32
    }

    /// The load point that is shown: that of the capacity, or the last.
    pub(crate) fn shown(&self) -> Option<&Run> {
        let capacity = self.capacity.as_ref();
        let load = capacity.and_then(|capacity| if self.is_ramp_of_rates() { capacity.rate } else { capacity.users });
        let found = self.runs.iter().rev().find(|run| Some(self.load(run)) == load);
        found.or(self.runs.last())
    }

    /// The load of a run in words: `8 users`, `500/s`.
    pub fn load_name(&self, run: &Run) -> String {
        load_name(run.users, run.rate().filter(|_| self.is_ramp_of_rates()))
    }

    /// Reads what [`write()`] wrote.
    pub fn parse(text: &[u8]) -> Result<Document, ParseError> {
        document::parse(KIND, text)
    }
}

/// A load in words: its rate where loads differ in that, otherwise its users.
pub(crate) fn load_name(users: u32, rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{}/s", crate::format::thousands(rate.round() as u64)),
        None => crate::format::counted(users.into(), "user", "users"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_ramp_says_what_it_is() {
        let error = |text: &str| Document::parse(text.as_bytes()).expect_err("no ramp");
        assert!(matches!(error("{\"schema\": "), ParseError::NotJson(_)));
        assert_eq!(error("{}"), ParseError::AnotherKind(KIND, None));
        let other = error(r#"{"schema": "smbscope.report/1"}"#).to_string();
        assert_eq!(
            other,
            "its `schema` is \"smbscope.report/1\", and not \"smbscope.bench/1\": give the run.json that bench wrote"
        );
        assert!(matches!(error(r#"{"schema": "smbscope.bench/1"}"#), ParseError::NotAsDescribed(..)));
    }
}

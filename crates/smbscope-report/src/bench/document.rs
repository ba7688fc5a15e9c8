//! `smbscope.bench/1`, the document of a ramp: `run.json`, and the source of the text, the page and comparisons. Its schema is
//! `schema/smbscope.bench-1.schema.json`. Times are integers in nanoseconds; unknown values, and percentiles of too few values,
//! are `null`. Keys and entries have a fixed order.

use super::{JobStatistics, Launch, LoadHostEntry, LoadPointBreakdown, ServerLoad};
use crate::Answer;
use crate::document::{self, DocumentKind, Generator, ParseError};
use crate::json::escaped::write_indented_above;
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub const SCHEMA: &str = "smbscope.bench/1";

const KIND: DocumentKind = DocumentKind { schema: SCHEMA, advice: "give the run.json that bench wrote" };

/// A ramp of runs against a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchDocument {
    /// Program and version that wrote the document.
    pub generator: Generator,
    /// Title from the command line.
    pub title: Option<String>,
    /// Peak throughput and what more load costs, the culprit of the load point shown in detail, and commands for a closer look.
    /// Each load point has an answer of its own.
    pub answer: Answer,
    /// Server and share under load.
    pub target: TargetEntry,
    /// Operations of the users.
    pub workload: WorkloadEntry,
    /// Load points, schedule and client options.
    pub settings: RampSettings,
    /// Start of the preparation of the first run.
    pub started_ns: Timestamp,
    /// Test environment by name: `system`, `kernel`, `processor`, `cores`, `memory`, `server` …
    pub environment: BTreeMap<String, String>,
    /// Load points in the order they ran.
    pub runs: Vec<BenchRun>,
    /// Highest load that meets the criterion. Null if no criterion was given.
    pub capacity: Option<CapacityEntry>,
    /// Area under the curve of mean response time over users (or rates), divided by their range; with one load point, its mean.
    /// In an open loop, response times count from the intended start.
    pub overall_response_time_ns: Option<Nanos>,
    /// Limits of the figures, one sentence each, the most serious first.
    pub warnings: Vec<String>,
    /// Command that started the ramp. Null if unknown.
    pub invocation: Option<Invocation>,
    /// Launched program. Null for a load.
    pub launch: Option<Launch>,
}

/// Command that started a ramp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// Command line, quoted for a shell, without load points, schedule, output options or password.
    pub command: String,
    /// Run directory. Null if the run was not kept.
    pub directory: Option<String>,
}

/// Server, share and protocol settings. Holds no password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetEntry {
    /// Host as given on the command line; `this machine` for a local folder.
    pub host: String,
    /// TCP port; 0 for a local folder.
    pub port: u16,
    /// Share name, or path of the local folder.
    pub share: String,
    /// Working directory on the share.
    pub directory: Option<String>,
    /// User name for logons. Null for guests and for several users.
    pub user: Option<String>,
    /// Negotiated dialect: `3.1.1`, `NT LM 0.12`; `local` for a local folder. Null if no run negotiated one.
    pub dialect: Option<String>,
    /// Requested signing: `off`, `on` or `required`.
    pub signing: String,
    /// Negotiated signing algorithm, such as `AES-128-CMAC`. Null if messages are not signed.
    pub signing_algorithm: Option<String>,
    /// Requested encryption: `off` or `required`.
    pub encryption: String,
    /// Negotiated cipher, such as `AES-128-GCM`. Null if messages are not encrypted.
    pub cipher: Option<String>,
}

impl TargetEntry {
    pub(crate) fn is_local(&self) -> bool {
        self.dialect.as_deref() == Some("local")
    }
}

/// Workload of the users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadEntry {
    /// Name of the workload.
    pub name: String,
    /// File name. Null for a built-in workload.
    pub source: Option<String>,
    /// Parameter values by name.
    pub parameters: BTreeMap<String, String>,
    /// Seed of the random choices.
    pub seed: Option<u64>,
    /// Files prepared before the first run. Null if the workload needs none.
    pub file_set: Option<FileSetTotals>,
    /// SHA-256 of the definition, in hexadecimal.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub sha256: Option<String>,
    /// Text of the definition, TOML or a loadfile. Null if longer than 64 KiB.
    pub definition: Option<String>,
}

/// Prepared files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSetTotals {
    /// Number of files.
    pub files: u64,
    /// Total size.
    pub bytes: u64,
}

/// Load points, schedule and client options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RampSettings {
    /// Closed or open loop.
    pub schedule: LoopModel,
    /// Requested load points in users; with `rates`, the number of users at every one.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::num::NonZeroU32>"))]
    pub users: Vec<u32>,
    /// Requested load points in operations per second of all users together. Empty if load points differ in users.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::num::NonZeroU32>"))]
    pub rates: Vec<u32>,
    /// Requested duration of each measurement.
    pub duration_ns: Nanos,
    /// Requested warm-up before it, not counted.
    pub warmup_ns: Nanos,
    /// Client threads.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub threads: u32,
    /// Sessions per user.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub sessions_per_user: u32,
    /// Connections per session; more than one is SMB 3 multichannel.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub connections_per_session: u32,
    /// The client polled its sockets instead of sleeping.
    pub busy_poll: bool,
    /// Limit for new sessions per second. Null if unlimited.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub connects_per_second: Option<f64>,
    /// Passes of each user that end a load point. Null if its duration ends it.
    pub passes: Option<u32>,
    /// Percentage of failed operations above which the run fails. Null if it never does.
    pub max_errors_percent: Option<f64>,
    /// Packets were to be captured.
    pub capture: bool,
}

/// Start of operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "lowercase")]
pub enum LoopModel {
    /// After the user's previous operation.
    Closed {
        /// Think time between two operations of a user.
        think_ns: Nanos,
    },
    /// At intended times, however long earlier operations take.
    Open {
        /// Operations per second, of all users together or of each. With `rates`, of the first load point.
        #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
        rate: f64,
        /// `rate` is per user.
        per_user: bool,
        /// Intended times are random and independent (Poisson) instead of evenly spaced.
        random: bool,
    },
}

/// One measured load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchRun {
    /// Concurrent users.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Start of the measurement.
    pub started_ns: Timestamp,
    /// Actual duration of the measurement.
    pub duration_ns: Nanos,
    /// Actual warm-up before it, not counted.
    pub warmup_ns: Nanos,
    /// How it ended.
    pub ended: BenchRunOutcome,
    /// Schedule, and how far the client kept it.
    pub pace: ScheduleAdherence,
    /// Commands of all groups answered during the measurement.
    pub operations: u64,
    /// The same, per second.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub operations_per_second: f64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Error responses by status.
    pub errors: BTreeMap<String, u64>,
    /// Response times of the headline groups.
    pub total: ClientWireTimes,
    /// Open loop: time from the intended start of an operation to its end, the users' wait. Headlines, curves and capacity use it.
    /// Null in a closed loop.
    pub due: Option<DurationStatistics>,
    /// Stalls of the server in time order; the longest 100.
    #[cfg_attr(feature = "schema", schemars(length(max = 100)))]
    pub stalls: Vec<StallEntry>,
    /// Groups that occurred, in report order; `Other` is followed by its parts.
    pub groups: Vec<MeasuredGroup>,
    /// Commands, by subcommand and group.
    pub commands: Vec<MeasuredCommand>,
    /// Operations in the order of the workload.
    pub workload_operations: Vec<OperationEntry>,
    /// Measurement by interval, in time order.
    pub intervals: Vec<IntervalEntry>,
    /// Time from the start of a connect to an established session.
    pub connects: DurationStatistics,
    /// Commands of these connects; counted nowhere else.
    pub connect_commands: BTreeMap<String, u64>,
    /// Failed sessions by reason.
    pub failures: BTreeMap<String, u64>,
    /// Commands outstanding when their connection ended.
    pub unanswered: u64,
    /// Client processor time. Null if unknown.
    pub client_cpu: Option<ClientCpuEntry>,
    /// Packet capture of the run. Null if not requested.
    pub capture: Option<RunCapture>,
    /// The statistics that a capture report has.
    pub counted: Option<LoadPointBreakdown>,
    /// Answer from what the client measured. Null if no command was answered.
    pub answer: Option<Answer>,
    /// Complete passes. Null for a workload without an end.
    pub jobs: Option<JobStatistics>,
    /// Server metrics. Null if unknown.
    pub server: Option<ServerLoad>,
    /// Queue depth per user. Null if the workload issues one command at a time.
    pub queue: Option<QueueDepthEntry>,
    /// Scenarios that were too slow. Null without scenarios and in a closed loop.
    pub overload: Option<OverloadEntry>,
    /// Results per load host. Empty if one process made the load.
    pub hosts: Vec<LoadHostEntry>,
}

/// Scenarios of an open loop that were too slow. Each counts once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverloadEntry {
    /// Scenarios due during the measurement.
    pub scenarios: u64,
    /// Started more than `late_ns` late.
    pub late: u64,
    /// Started in time, and took longer than `budget_ns` or did not finish.
    pub exceeded: u64,
    /// Never started.
    pub not_begun: u64,
    /// Percentage of scenarios that were late, exceeded or not begun.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub percent: f64,
    /// Allowed delay of the start.
    pub late_ns: Nanos,
    /// Allowed duration. Null if unlimited.
    pub budget_ns: Option<Nanos>,
}

impl OverloadEntry {
    pub fn count(&self) -> u64 {
        self.late + self.exceeded + self.not_begun
    }
}

/// Queue depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueDepthEntry {
    /// Depth requested by the workload.
    pub asked: u32,
    /// Highest depth reached; credits may limit it.
    pub reached: u32,
}

/// Time with outstanding commands and no response: at least 200 ms, and 100 times the median response time of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallEntry {
    /// Start.
    pub start_ns: Timestamp,
    /// Duration.
    pub duration_ns: Nanos,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "lowercase")]
pub enum BenchRunOutcome {
    /// The duration was over, or every user had finished.
    Done,
    /// Interrupted by the user.
    Interrupted,
    /// A stop condition held.
    Stopped {
        /// The condition.
        why: String,
    },
    /// No user could continue.
    Failed {
        /// Reason.
        why: String,
    },
}

/// Schedule of operations, and how far it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "lowercase")]
pub enum ScheduleAdherence {
    /// Closed loop: a stall also stops new operations, so percentiles hide it.
    Closed,
    /// Open loop.
    Open {
        /// Requested operations per second.
        #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
        rate: f64,
        /// Operations per second done.
        #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
        rate_kept: f64,
        /// Operations that were due and never started.
        not_begun: u64,
    },
}

/// Response times of the same commands, measured in the client and on the wire.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientWireTimes {
    /// In the client: from handing the request to the kernel to receiving the whole response.
    pub client: DurationStatistics,
    /// From a packet capture of the same exchanges. Null without one.
    pub wire: Option<DurationStatistics>,
    /// Client time minus wire time per command: the overhead of the client's system. Null if commands were not matched one by one.
    pub difference: Option<DurationStatistics>,
}

/// A group of commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MeasuredGroup"))]
pub struct MeasuredGroup {
    /// Name of the group.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub group: String,
    /// Group that includes this one.
    pub part_of: Option<String>,
    /// Counts in the headline figures.
    pub headline: bool,
    /// Answered commands.
    pub operations: u64,
    /// Response times.
    #[serde(flatten)]
    pub times: ClientWireTimes,
}

/// Commands of one name, subcommand and group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredCommand {
    /// `SMB1` or `SMB2`.
    #[cfg_attr(feature = "schema", schemars(with = "smbscope_model::Protocol"))]
    pub protocol: String,
    /// Name in the specification.
    pub command: String,
    /// Subcommand: FSCTL, information class or transaction.
    pub subcommand: Option<String>,
    /// Group of the command.
    pub group: String,
    /// Answered commands.
    pub count: u64,
    /// Error responses by status.
    pub errors: BTreeMap<String, u64>,
    /// Response times.
    #[serde(flatten)]
    pub times: ClientWireTimes,
}

/// An operation of the workload: one or more commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationEntry {
    /// Name in the workload.
    pub operation: String,
    /// Time from the actual start to the end.
    pub service_time: DurationStatistics,
    /// Time from the intended start to the end, the user's wait. Null in a closed loop.
    pub response_time: Option<DurationStatistics>,
    /// Operations with an unexpected status, by status.
    pub unexpected: BTreeMap<String, u64>,
}

/// An interval of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalEntry {
    /// Start.
    pub start_ns: Timestamp,
    /// Users with a session at the end of the interval.
    pub users: u32,
    /// Answered commands.
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
    /// Longest response time.
    pub max: Option<Nanos>,
}

/// Processor time of the client during a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientCpuEntry {
    /// User mode.
    pub user_ns: Nanos,
    /// Kernel mode.
    pub system_ns: Nanos,
    /// Both, as a percentage of one processor.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub percent: f64,
    /// Both, per answered command. Null when polling.
    pub per_operation_ns: Option<Nanos>,
    /// Processor time of the busiest thread, without polling, as a percentage of the measurement.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub busiest_percent: f64,
    /// The client was the bottleneck, so the figures say nothing about the server.
    pub limited: bool,
    /// 99th percentile of the wake-up delay of client threads, which response times include.
    pub late_p99_ns: Option<Nanos>,
}

/// Packet capture of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum RunCapture {
    /// Not made.
    Skipped {
        /// Reason, as part of a sentence: "tcpdump is not installed".
        why: String,
    },
    /// Made and analysed.
    Made(Captured),
}

/// Contents of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Captured {
    /// File name, if the file was kept.
    pub file: Option<String>,
    /// Quality of the capture in one sentence.
    pub quality: String,
    /// Captured packets.
    pub packets: u64,
    /// Packets dropped, as reported by the capturing program.
    pub dropped_packets: u64,
    /// Commands counted by the client.
    pub client_commands: u64,
    /// Answered commands in the capture in the same time.
    pub wire_commands: u64,
    /// Commands matched one by one between client and capture. Null if not tried.
    pub matched: Option<u64>,
}

/// Highest load that meets a criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityEntry {
    /// Criterion as given, such as `p95(Read) < 20ms`.
    pub criterion: String,
    /// Users at that load. Null if no load meets the criterion.
    pub users: Option<u32>,
    /// Operations per second at that load. Null if load points differ in users.
    pub rate: Option<u32>,
    /// Highest nearby load that met the criterion in all three tries. Null if unknown.
    pub always: Option<u32>,
    /// Lowest nearby load that met it in none of three tries. Null if unknown.
    pub never: Option<u32>,
    /// Loads in the order they were tried.
    pub tried: Vec<CapacityTrialEntry>,
}

/// A load tested against the criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityTrialEntry {
    /// Users.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations per second. Null if load points differ in users.
    pub rate: Option<u32>,
    /// Measured value as text, such as `18.3 ms`. Null for too few values.
    pub found: Option<String>,
    /// The criterion holds.
    pub holds: bool,
}

impl BenchRun {
    /// Returns the duration in seconds. None if it is zero.
    pub fn seconds(&self) -> Option<f64> {
        (self.duration_ns.0 > 0).then(|| self.duration_ns.as_secs_f64())
    }

    pub fn read_per_second(&self) -> Option<f64> {
        self.seconds().map(|seconds| self.bytes_read as f64 / seconds)
    }

    pub fn written_per_second(&self) -> Option<f64> {
        self.seconds().map(|seconds| self.bytes_written as f64 / seconds)
    }

    pub fn error_count(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub fn unexpected_count(&self) -> u64 {
        let counts = self.workload_operations.iter().flat_map(|operation| operation.unexpected.values());
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the users' waits: from the intended start in an open loop, otherwise response times of commands.
    pub fn headline(&self) -> &DurationStatistics {
        self.due.as_ref().unwrap_or(&self.total.client)
    }

    /// Returns the load in users, or in operations per second.
    pub fn load(&self, by_rate: bool) -> f64 {
        self.rate().filter(|_| by_rate).unwrap_or_else(|| f64::from(self.users))
    }

    pub fn rate(&self) -> Option<f64> {
        match self.pace {
            ScheduleAdherence::Open { rate, .. } => Some(rate),
            ScheduleAdherence::Closed => None,
        }
    }

    pub fn group(&self, name: &str) -> Option<&MeasuredGroup> {
        self.groups.iter().find(|group| group.group == name)
    }

    pub fn has_wire(&self) -> bool {
        self.total.wire.is_some()
    }
}

/// Ramp of runs against a server, as `smbscope bench --format json` prints it and `run.json` holds it. Times are integers in
/// nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BenchEnvelope<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    document: &'a BenchDocument,
}

impl<'a> BenchEnvelope<'a> {
    pub(crate) fn new(document: &'a BenchDocument) -> BenchEnvelope<'a> {
        BenchEnvelope { schema: SCHEMA, document }
    }
}

/// Indented levels. The statistics of a load point are below them, with hundreds of numbers each.
const LEVELS: usize = 6;

pub fn write(document: &BenchDocument, out: impl Write) -> io::Result<()> {
    write_indented_above(LEVELS, &BenchEnvelope::new(document), out)
}

impl BenchDocument {
    pub fn is_ramp_of_rates(&self) -> bool {
        !self.settings.rates.is_empty()
    }

    /// Returns the load of a run in users, or in operations per second.
    pub(crate) fn load(&self, run: &BenchRun) -> u32 {
        run.load(self.is_ramp_of_rates()).round() as u32
    }

    /// Returns the load point to show in detail: at the capacity, or the last.
    pub(crate) fn shown(&self) -> Option<&BenchRun> {
        let capacity = self.capacity.as_ref();
        let load = capacity.and_then(|capacity| if self.is_ramp_of_rates() { capacity.rate } else { capacity.users });
        let found = self.runs.iter().rev().find(|run| Some(self.load(run)) == load);
        found.or(self.runs.last())
    }

    /// Formats the load of a run: `8 users`, `500/s`.
    pub fn load_name(&self, run: &BenchRun) -> String {
        load_name(run.users, run.rate().filter(|_| self.is_ramp_of_rates()))
    }

    pub fn parse(text: &[u8]) -> Result<BenchDocument, ParseError> {
        document::parse(KIND, text)
    }
}

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
        let error = |text: &str| BenchDocument::parse(text.as_bytes()).expect_err("no ramp");
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

//! A measured load point with its schedule, groups, commands, operations, intervals, jobs, hosts and packet capture.

use super::ServerLoad;
use crate::Answer;
use crate::format::clean;
use crate::json::entries::{EntityEntry, GroupEntry};
use crate::json::listings::{SliceListing, SlowExchange};
use crate::json::{UserName, other_files};
use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Nanos, Timestamp};
use smbscope_stats::{Aggregate, Concurrency, DurationStatistics, FileKey, HeatMap};
use std::collections::BTreeMap;

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
    /// Outcome of the run.
    pub ended: BenchRunOutcome,
    /// Schedule, and how far the client kept it.
    pub pace: ScheduleAdherence,
    /// Commands of all groups answered during the measurement.
    pub operations: u64,
    /// `operations` per second.
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
    /// Open loop: time from the intended start of an operation to its end, the users' wait. Headlines, curves and
    /// capacity use it. Null in a closed loop.
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
    /// Answer derived from the client's measurements. Null if no command was answered.
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

/// Outcome of a run.
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
    /// Client time minus wire time per command: the overhead of the client's system. Null if commands were not matched
    /// one by one.
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
    /// Longest wake-up delay: a second or more if the client itself was stopped.
    pub late_max_ns: Option<Nanos>,
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
    /// Capture of the same commands at the server. Null if packets were captured at the client only.
    pub server: Option<ServerCapture>,
}

/// Capture at the server's end of the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerCapture {
    /// File name, in the run directory.
    pub file: String,
    /// Packets dropped, as reported by the capturing program.
    pub dropped_packets: u64,
}

impl BenchRun {
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

impl MeasuredCommand {
    /// Formats the name with its subcommand, without the prefixes that all of their kind have.
    pub(crate) fn label(&self) -> String {
        let name = self.command.strip_prefix("SMB_COM_").unwrap_or(&self.command);
        let waiting = if self.group == CommandGroup::Waiting.name() { " (waiting)" } else { "" };
        match &self.subcommand {
            Some(part) => clean(&format!("{name} {}{waiting}", short(part))),
            None => clean(&format!("{name}{waiting}")),
        }
    }
}

fn short(part: &str) -> &str {
    let prefixes = ["FSCTL_", "NT_TRANSACT_", "TRANS2_", "TRANS_"];
    if let Some(rest) = prefixes.iter().find_map(|prefix| part.strip_prefix(prefix)) {
        return rest;
    }
    let info = part.strip_suffix("Information").and_then(|rest| rest.strip_prefix("File"));
    info.filter(|rest| !rest.is_empty()).unwrap_or(part)
}

/// Complete passes of a workload that has an end. A job lasts from its first request to its last response. It counts if
/// it started during the measurement and completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobStatistics {
    /// Durations of completed jobs.
    pub elapsed: DurationStatistics,
    /// Jobs that started during the measurement and did not complete because the load point or their session ended.
    pub unfinished: u64,
    /// Total duration of all completed jobs.
    pub elapsed_sum_ns: Nanos,
    /// Part of that total with at least one outstanding command: the wait for the server. Null if the commands were not
    /// observed.
    pub waited_sum_ns: Option<Nanos>,
    /// Files opened by completed jobs.
    pub files: u64,
    /// Bytes read by completed jobs.
    pub bytes_read: u64,
    /// Bytes written by completed jobs.
    pub bytes_written: u64,
    /// Completed jobs by start time; the first 1,000.
    #[cfg_attr(feature = "schema", schemars(length(max = 1_000)))]
    pub list: Vec<JobEntry>,
}

/// A completed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobEntry {
    /// Session number, from 1, across all users.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub session: u32,
    /// Time of the first request.
    pub started_ns: Timestamp,
    /// Time from the first request to the last response, including think time.
    pub elapsed_ns: Nanos,
    /// Part of it with at least one outstanding command. Null if the commands were not observed.
    pub waited_ns: Option<Nanos>,
    /// Files opened.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl JobStatistics {
    pub fn files_per_second(&self) -> Option<f64> {
        self.per_second(self.files)
    }

    pub fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.bytes_read.saturating_add(self.bytes_written))
    }

    /// Returns the share of the job time spent waiting for the server, 0 to 1.
    pub fn waited_share(&self) -> Option<f64> {
        let elapsed = self.elapsed_sum_ns.as_secs_f64();
        let waited = self.waited_sum_ns?.as_secs_f64();
        (elapsed > 0.0).then_some(waited / elapsed)
    }

    fn per_second(&self, what: u64) -> Option<f64> {
        let elapsed = self.elapsed_sum_ns.as_secs_f64();
        (elapsed > 0.0).then(|| what as f64 / elapsed)
    }
}

/// Results of one load host. The hosts add up to the load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadHostEntry {
    /// Host name as reported by the host.
    pub host: String,
    /// Sessions assigned to the host: users times sessions per user.
    pub sessions: u32,
    /// Answered commands of all groups during the measurement.
    pub operations: u64,
    /// Error responses among them.
    pub errors: u64,
    /// Bytes read by answered commands.
    pub bytes_read: u64,
    /// Bytes written by answered commands.
    pub bytes_written: u64,
    /// Response times of the headline groups.
    pub times: DurationStatistics,
    /// Client processor time. Null if the host was lost.
    pub client_cpu: Option<ClientCpuEntry>,
    /// Clock offset from the driver; positive if the host's clock is ahead.
    pub clock_ahead_ns: i64,
    /// Maximum error of that offset: half of the round-trip time of the measurement.
    pub clock_bound_ns: Nanos,
    /// Delay of the host's start because the start order arrived late; 0 if it arrived in time.
    pub late_ns: Nanos,
    /// Loss of the host. Null if it was not lost.
    pub lost: Option<LostHost>,
}

/// A lost host. Its measurements are not included in any figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostHost {
    /// Time of detection.
    pub at_ns: Timestamp,
    /// Reason.
    pub why: String,
    /// Commands reported up to then, including the warm-up.
    pub operations: u64,
}

impl BenchRun {
    pub fn lost_hosts(&self) -> impl Iterator<Item = (&LoadHostEntry, &LostHost)> {
        self.hosts.iter().filter_map(|host| Some((host, host.lost.as_ref()?)))
    }
}

const ENTRIES_LISTED: usize = 100;

const SLOWEST_LISTED: usize = 20;

/// Commands of a load point, in the form of a capture report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPointBreakdown {
    /// By operation group. The entries add up; `Other` is followed by its parts.
    pub(crate) groups: Vec<GroupEntry>,
    pub(crate) heatmap: HeatMap,
    pub(crate) concurrency: Vec<Concurrency>,
    /// The slowest commands, slowest first, at most 20.
    pub(crate) slowest: Vec<SlowExchange>,
    /// Files with the longest response times in total, at most 100. The rest is not summed up.
    pub(crate) files: Vec<EntityEntry<FileKey>>,
    /// Users with the longest response times in total, at most 100. The rest is not summed up.
    pub(crate) users: Vec<EntityEntry<UserName>>,
    /// Commands grouped by `--by`. Null without it.
    pub(crate) slices: Option<SliceListing>,
}

impl LoadPointBreakdown {
    pub fn new(aggregate: &Aggregate) -> LoadPointBreakdown {
        let slowest = aggregate.slowest.iter().take(SLOWEST_LISTED);
        LoadPointBreakdown {
            groups: GroupEntry::all(aggregate),
            heatmap: aggregate.heat_map.clone(),
            concurrency: aggregate.concurrency.clone(),
            slowest: slowest.map(|exchange| SlowExchange::new(exchange, &[])).collect(),
            files: EntityEntry::table(&aggregate.files, ENTRIES_LISTED, FileKey::clone, other_files),
            users: EntityEntry::table(&aggregate.users, ENTRIES_LISTED, UserName::new, UserName::other),
            slices: aggregate.slices.as_ref().map(|slices| SliceListing::new(slices).listed()),
        }
    }
}

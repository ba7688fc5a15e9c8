//! Results of a load point, from the client's own samples. A capture of the same run can add times on the wire.

use super::jobs::JobSummary;
use super::schedule::OverloadTally;
use super::session::CommandQueueDepth;
use serde::{Deserialize, Serialize};
use smbscope_model::{Command, CommandGroup, Nanos, Timestamp};
use smbscope_stats::{Aggregator, Summary};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct LoadPointResult {
    pub users: u32,
    pub started: Timestamp,
    pub duration: Duration,
    /// Actual warm-up before it, not counted.
    pub warmup: Duration,
    pub counted: Aggregator,
    /// Open loop: time from the intended start of each operation to its end.
    pub due: Option<Summary>,
    pub operations: Vec<OperationResult>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Intervals of the measurement, of [`RampPlan::interval`](super::RampPlan::interval) each.
    pub intervals: Vec<IntervalResult>,
    pub connects: Summary,
    /// Commands of these connects; counted nowhere else.
    pub connect_commands: BTreeMap<Command, u64>,
    pub failures: BTreeMap<String, u64>,
    pub unanswered: u64,
    pub stalls: Vec<ResponseStall>,
    pub client_cpu: ClientCpuUsage,
    pub ended: LoadPointEnd,
    /// Schedule, and how far the client kept it.
    pub pace: PacingResult,
    /// Complete passes. Absent for a workload without an end.
    pub jobs: Option<JobSummary>,
    /// Scenarios that were too slow. Absent if the plan sets no limit.
    pub overload: Option<OverloadTally>,
    /// Queue depth. Absent if the workload issues one command at a time.
    pub queue: Option<CommandQueueDepth>,
    /// Results per load host, if there are several; their sums are in the other fields.
    pub hosts: Vec<HostResult>,
}

#[derive(Debug, Clone)]
pub struct HostResult {
    pub name: String,
    pub sessions: u32,
    pub commands: u64,
    pub errors: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub times: Summary,
    pub cpu: ClientCpuUsage,
    pub clock: HostClockOffset,
    /// Delay of its first user, if the start command came too late.
    pub late_by: Duration,
    pub lost: Option<HostFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostClockOffset {
    /// Offset of the clock; positive if it is ahead.
    pub ahead: Nanos,
    /// Upper limit of the error: half of the round trip of the measurement.
    pub bound: Nanos,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFailure {
    pub at: Timestamp,
    pub why: String,
    /// Commands it had reported by then; not in any other field.
    pub commands: u64,
}

impl LoadPointResult {
    /// Returns the response times of all commands in the headline groups ([`CommandGroup::in_headline`]).
    pub fn total(&self) -> Summary {
        self.counted.response_times(|(_, _, group)| group.in_headline())
    }

    pub fn group(&self, of: CommandGroup) -> Summary {
        self.counted.response_times(|(_, _, group)| *group == of)
    }

    pub fn answered(&self) -> u64 {
        self.counted.kinds().map(|(_, counted)| counted.response_time.count()).sum()
    }
}

#[derive(Debug, Clone)]
pub struct OperationResult {
    pub name: String,
    /// Time from the actual start to the end.
    pub service: Summary,
    /// Time from the intended start to the end, the user's wait. Absent in a closed loop, where it equals `service`.
    pub response: Option<Summary>,
    pub unexpected: BTreeMap<NtStatus, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalResult {
    pub start: Timestamp,
    /// Users with a session at the end of the interval.
    pub users: u32,
    /// Commands sent in it and answered.
    pub operations: u64,
    pub errors: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub p50: Option<Nanos>,
    /// Absent for too few commands.
    pub p95: Option<Nanos>,
    pub max: Option<Nanos>,
}

/// Time with outstanding commands and no response, of at least [`STALL_MIN`](super::STALL_MIN) and
/// [`STALL_TIMES_MEDIAN`](super::STALL_TIMES_MEDIAN) times the median response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseStall {
    pub start: Timestamp,
    pub length: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClientCpuUsage {
    pub user: Duration,
    pub system: Duration,
    /// True if threads polled their sockets, which `user` and `system` include.
    pub busy_poll: bool,
    /// Processor time of the busiest thread, without polling, as a share of the measurement, 0 to 1.
    pub busiest: f64,
    /// The client was the bottleneck: its busiest thread had a processor for more than nine tenths of the time.
    pub limited: bool,
    /// 99th percentile of the wake-up delay of its threads, which response times include. Above a few milliseconds,
    /// other programs took the processors. Absent for measurements below one second.
    pub late_p99: Option<Nanos>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadPointEnd {
    Done,
    Interrupted,
    Stopped(String),
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PacingResult {
    /// Closed loop: a user starts an operation after the previous one. Percentiles hide stalls, which stop new ones.
    Closed,
    Open {
        rate: f64,
        not_begun: u64,
    },
}

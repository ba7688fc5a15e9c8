//! What a load point yields. Times come from the client's own samples; the wire's are put beside them by whoever has a
//! capture of the same run.

use super::jobs::Jobs;
use super::overload::Overload;
use super::session::Queue;
use serde::{Deserialize, Serialize};
use smbscope_model::{Command, Group, Nanos, Timestamp};
use smbscope_stats::{Aggregator, Summary};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::time::Duration;

/// One measured load point.
#[derive(Debug, Clone)]
pub struct Run {
    /// Users at the same time.
    pub users: u32,
    /// When the measured part began.
    pub started: Timestamp,
    /// Length of the measured part, as it was.
    pub duration: Duration,
    /// Length of what went before and is not counted.
    pub warmup: Duration,
    /// The commands, counted as those of a capture are.
    pub counted: Aggregator,
    /// Open loop: of all operations of the workload, from when they were due to their end.
    pub due: Option<Summary>,
    /// By operation of the workload, in the workload's order.
    pub operations: Vec<Operation>,
    /// Bytes read by answered commands.
    pub bytes_read: u64,
    /// Bytes written by answered commands.
    pub bytes_written: u64,
    /// Second by second.
    pub intervals: Vec<Interval>,
    /// Time from the start of a connect to a session that can be used.
    pub connects: Summary,
    /// Commands that these connects took, and how often; they are in no other count.
    pub connect_commands: BTreeMap<Command, u64>,
    /// Sessions that could not be made or broke, by reason in words, and how often.
    pub failures: BTreeMap<String, u64>,
    /// Commands that were outstanding when their connection ended.
    pub unanswered: u64,
    /// Times in which commands were outstanding and none was answered, in their order.
    pub stalls: Vec<Stall>,
    /// Processor time of this process in the measured part.
    pub client_cpu: ClientCpu,
    /// How it ended.
    pub ended: Ended,
    /// By schedule: see [`Pace`].
    pub pace: Pace,
    /// Passes of the workload; absent where it has no end.
    pub jobs: Option<Jobs>,
    /// Scenarios that were too slow; absent where the plan does not say what that is.
    pub overload: Option<Overload>,
    /// Commands that users had outstanding together; absent where the workload wants one at a time.
    pub queue: Option<Queue>,
    /// What each host did, where there are several; what they have together is in the other figures.
    pub hosts: Vec<HostRun>,
}

/// What one host did at a load point.
#[derive(Debug, Clone)]
pub struct HostRun {
    /// As it calls itself.
    pub name: String,
    /// Sessions that it was to have.
    pub sessions: u32,
    /// Commands that were answered.
    pub commands: u64,
    /// Those of them that were answered with an error status.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Response times of the groups that count in headlines.
    pub times: Summary,
    /// What it cost.
    pub cpu: ClientCpu,
    /// By how much its clock was ahead.
    pub clock: ClockOffset,
    /// How late its users began, where the order to work came too late.
    pub late_by: Duration,
    /// It was lost.
    pub lost: Option<Lost>,
}

/// By how much the clock of a host was ahead of that of the driver, and how sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockOffset {
    /// Behind, where it is negative.
    pub ahead: Nanos,
    /// The true offset differs by no more than this: half of the round trip by which it was measured.
    pub bound: Nanos,
}

/// A host that was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// When that was noticed.
    pub at: Timestamp,
    /// Why it is taken for lost.
    pub why: String,
    /// Commands that it had told of by then; they are in no figure.
    pub commands: u64,
}

impl Run {
    /// Response times of all commands in groups of [`Group::in_headline`].
    pub fn total(&self) -> Summary {
        self.counted.response_times(|(_, _, group)| group.in_headline())
    }

    /// Response times of the commands of a group.
    pub fn group(&self, of: Group) -> Summary {
        self.counted.response_times(|(_, _, group)| *group == of)
    }

    /// Commands of every group that were answered.
    pub fn answered(&self) -> u64 {
        self.counted.kinds().map(|(_, counted)| counted.response_time.count()).sum()
    }
}

/// Operations of one name: one or several commands.
#[derive(Debug, Clone)]
pub struct Operation {
    /// As the workload calls it.
    pub name: String,
    /// From the actual start to the end.
    pub service: Summary,
    /// From the intended start to the end: what a user would have waited who keeps to the schedule. Equal to `service`
    /// in a closed loop, and absent there.
    pub response: Option<Summary>,
    /// Operations that ended with a status other than the expected one, by status.
    pub unexpected: BTreeMap<NtStatus, u64>,
}

/// A second, or what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// When it began.
    pub start: Timestamp,
    /// Users with a session at its end.
    pub users: u32,
    /// Commands that went out in it and were answered.
    pub operations: u64,
    /// Those of them that were answered with an error status.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Median response time, where there were commands.
    pub p50: Option<Nanos>,
    /// 95th percentile, where there were enough.
    pub p95: Option<Nanos>,
    /// The longest response time.
    pub max: Option<Nanos>,
}

/// Nothing was answered for [`STALL_MIN`](super::STALL_MIN) and [`STALL_TIMES_MEDIAN`](super::STALL_TIMES_MEDIAN) times the
/// median response time, though commands were outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When it began.
    pub start: Timestamp,
    /// How long it was.
    pub length: Duration,
}

/// What the client itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClientCpu {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
    /// User and system time include that threads asked for answers without a pause ([`Plan::busy_poll`]).
    ///
    /// [`Plan::busy_poll`]: super::Plan::busy_poll
    pub busy_poll: bool,
    /// The share of the measured time that the busiest thread was on a processor, 0 to 1, and did more than asking for
    /// answers.
    pub busiest: f64,
    /// The client was the bottleneck, as its busiest thread was on a processor for more than nine tenths of the time: its
    /// figures say nothing about the server.
    pub limited: bool,
    /// How late its threads woke up, the 99th percentile; absent where the measured part was shorter than a second. More
    /// than a few milliseconds mean that something else took the processors, and response times include the wait.
    pub late_p99: Option<Nanos>,
}

/// How a load point ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// Its time was up, or every user had done all there was to do.
    Done,
    /// Ctrl-C.
    Interrupted,
    /// A stop condition: which.
    Stopped(String),
    /// No user could go on: why.
    Failed(String),
}

/// By which schedule operations began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each user begins the next operation when the one before is done: a stall of the server holds back the load, and
    /// so hides in the percentiles.
    Closed,
    /// Operations begin when they are due, by the rate a second of all users together.
    Open {
        /// What was asked for.
        rate: f64,
        /// Operations that were due and did not begin until the end.
        not_begun: u64,
    },
}

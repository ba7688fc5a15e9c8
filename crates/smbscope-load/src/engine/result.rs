//! Results of a load point, from the client's own samples. A capture of the same run can add times on the wire.
//!
//! A job is a complete pass of a workload with an end. It lasts from its first request to its last response. While at
//! least one of its commands is outstanding, the user waits for the server; the rest, including think time, belongs to
//! the client. A job counts if it started in the measured part and completed. One that is cut off by the end of the
//! load point or of its session counts as unfinished.

use super::schedule::{MeasurementWindow, OverloadTally};
use super::session::{CommandQueueDepth, Performed};
use serde::{Deserialize, Serialize};
use smbscope_client::Sample;
use smbscope_model::{Command, CommandGroup, Nanos, Timestamp};
use smbscope_stats::{Aggregator, Summary, SummaryPrecision};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
    /// Longest wake-up delay.
    pub late_max: Option<Nanos>,
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

/// Jobs listed per load point: the first.
pub const JOBS_KEPT_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedJob {
    /// Session that ran it, from 0 over all sessions of all users.
    pub session: u32,
    pub started: Timestamp,
    pub elapsed: Duration,
    /// Part of `elapsed` with at least one outstanding command.
    pub waited: Duration,
    pub files: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

#[derive(Debug)]
pub(crate) struct ScriptPass {
    began: Instant,
    job: FinishedJob,
    /// True if it started from its beginning in this load point.
    whole: bool,
}

impl ScriptPass {
    pub(crate) fn new(session: u32, began: Instant, started: Timestamp) -> ScriptPass {
        let none = Duration::ZERO;
        let job =
            FinishedJob { session, started, elapsed: none, waited: none, files: 0, bytes_read: 0, bytes_written: 0 };
        ScriptPass { began, job, whole: true }
    }

    pub(crate) fn carried_over(&mut self) {
        self.whole = false;
    }

    pub(crate) fn add(&mut self, span: Option<(Instant, Instant)>, waited: Duration, performed: Option<&Performed>) {
        let job = &mut self.job;
        if let Some((_, last)) = span {
            job.elapsed = job.elapsed.max(last.saturating_duration_since(self.began));
        }
        job.waited += waited;
        if let Some(performed) = performed {
            job.files += u64::from(performed.files_opened);
            job.bytes_read += performed.bytes_read;
            job.bytes_written += performed.bytes_written;
        }
    }

    /// Returns the job if it lies entirely in the measured part of this load point.
    pub(crate) fn job(&self, window: &MeasurementWindow) -> Option<FinishedJob> {
        (self.whole && window.contains(self.began)).then_some(self.job)
    }
}

/// Returns the time with at least one outstanding command. `spans` is scratch space.
pub(crate) fn waited(samples: &[Sample], spans: &mut Vec<(Instant, Instant)>) -> Duration {
    let own = samples.iter().filter(|sample| !sample.is_servers_wish());
    match samples {
        [] => return Duration::ZERO,
        [_] => {
            let spans = own.map(|sample| sample.response_last.saturating_duration_since(sample.request_first));
            return spans.sum();
        }
        _ => {}
    }
    spans.clear();
    spans.extend(own.map(|sample| (sample.request_first, sample.response_last)));
    spans.sort_unstable();
    let mut waited = Duration::ZERO;
    let mut covered: Option<Instant> = None;
    for (first, last) in spans.drain(..) {
        let from = covered.map_or(first, |covered| first.max(covered));
        waited += last.saturating_duration_since(from);
        covered = covered.max(Some(last));
    }
    waited
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobSummary {
    pub elapsed: Summary,
    pub sum: JobTotals,
    /// Jobs that started in the measured part but did not complete before the end of the load point or of their
    /// session.
    pub unfinished: u64,
    /// Completed jobs in order of their start, at most [`JOBS_KEPT_MAX`].
    pub list: Vec<FinishedJob>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobTotals {
    pub elapsed: Duration,
    pub waited: Duration,
    pub files: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

impl Default for JobSummary {
    fn default() -> JobSummary {
        JobSummary {
            elapsed: Summary::new(SummaryPrecision::ROW),
            sum: JobTotals::default(),
            unfinished: 0,
            list: Vec::new(),
        }
    }
}

impl JobSummary {
    pub fn completed(&mut self, job: FinishedJob) {
        self.elapsed.record(Nanos::from(job.elapsed));
        self.sum.add(&JobTotals {
            elapsed: job.elapsed,
            waited: job.waited,
            files: job.files,
            bytes_read: job.bytes_read,
            bytes_written: job.bytes_written,
        });
        if self.list.len() < JOBS_KEPT_MAX {
            self.list.push(job);
        }
    }

    pub(crate) fn merge(&mut self, other: JobSummary) {
        self.elapsed.merge(&other.elapsed);
        self.sum.add(&other.sum);
        self.unfinished += other.unfinished;
        self.list.extend(other.list);
        self.list.sort_by_key(|job| (job.started, job.session));
        self.list.truncate(JOBS_KEPT_MAX);
    }
}

impl JobTotals {
    fn add(&mut self, other: &JobTotals) {
        self.elapsed += other.elapsed;
        self.waited += other.waited;
        self.files += other.files;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::{Command, CommandGroup, ExchangeOutcome};
    use smbscope_wire::smb2;

    /// A command with times in milliseconds from the beginning.
    fn sample(begin: Instant, from: u64, until: u64) -> Sample {
        let at = |ms| begin + Duration::from_millis(ms);
        Sample {
            command: Command::Smb2(smb2::Smb2Command::READ),
            subcommand: None,
            group: CommandGroup::Read,
            message_id: 1,
            session_id: 1,
            tree_id: 1,
            file_id: None,
            status: None,
            request_first: at(from),
            request_last: at(from),
            interim: None,
            response_first: at(until),
            response_last: at(until),
            request_bytes: 100,
            response_bytes: 100,
            offset: None,
            length: None,
            compounded: false,
            signed: false,
            encrypted: false,
            outcome: ExchangeOutcome::Complete,
        }
    }

    #[test]
    fn time_in_which_several_commands_are_outstanding_counts_once() {
        let begin = Instant::now();
        let waited = |spans: &[(u64, u64)]| {
            let samples: Vec<Sample> = spans.iter().map(|(from, until)| sample(begin, *from, *until)).collect();
            waited(&samples, &mut Vec::new()).as_millis()
        };
        assert_eq!((waited(&[]), waited(&[(3, 10)])), (0, 7));
        // In the order of their responses: 0 to 9 and 12 to 15.
        assert_eq!(waited(&[(2, 5), (0, 7), (5, 9), (3, 4), (12, 15)]), 12);
        let wish = Sample { outcome: ExchangeOutcome::ServerInitiated, ..sample(begin, 0, 50) };
        assert_eq!(super::waited(&[wish, sample(begin, 1, 2)], &mut Vec::new()).as_millis(), 1);
    }
}

//! Jobs: complete passes of a workload with an end, and the time each took.
//!
//! A job lasts from its first request to its last response. While at least one of its commands is outstanding, the user
//! waits for the server; the rest, including think time, belongs to the client. A job counts if it started in the
//! measured part and completed. One that is cut off by the end of the load point or of its session counts as
//! unfinished.

use super::schedule::MeasurementWindow;
use super::session::Performed;
use serde::{Deserialize, Serialize};
use smbscope_client::Sample;
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::{Summary, SummaryPrecision};
use std::time::{Duration, Instant};

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

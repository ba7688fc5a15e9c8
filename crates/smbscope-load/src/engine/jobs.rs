//! Jobs: whole passes of a workload that has an end, and how long each took.
//!
//! A job lasts from its first request to its last response. The time in which at least one of its commands was outstanding
//! is what the user waited for the server; the rest of it is the client's, think time included. It counts when it began in
//! the measured part and was completed; one that the end of the load point or of its session cut off is counted as such.

use super::recorder::MeasurementWindow;
use super::session::Performed;
use serde::{Deserialize, Serialize};
use smbscope_client::Sample;
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::{Summary, SummaryPrecision};
use std::time::{Duration, Instant};

/// Jobs of a load point that are kept one by one: the first ones.
pub const JOBS_KEPT_MAX: usize = 1_000;

/// A job that was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedJob {
    /// The session that did it, from 0 over all sessions of all users.
    pub session: u32,
    /// Its first request.
    pub started: Timestamp,
    /// From there to its last response.
    pub elapsed: Duration,
    /// The part of it in which at least one of its commands was outstanding.
    pub waited: Duration,
    /// Files opened.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// The pass that a user is in.
#[derive(Debug)]
pub(crate) struct ScriptPass {
    began: Instant,
    job: FinishedJob,
    /// It began at its beginning, in this load point.
    whole: bool,
}

impl ScriptPass {
    pub(crate) fn new(session: u32, began: Instant, started: Timestamp) -> ScriptPass {
        let none = Duration::ZERO;
        let job =
            FinishedJob { session, started, elapsed: none, waited: none, files: 0, bytes_read: 0, bytes_written: 0 };
        ScriptPass { began, job, whole: true }
    }

    /// Another load point began.
    pub(crate) fn carried_over(&mut self) {
        self.whole = false;
    }

    /// An action of it was done.
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

    /// The job, where all of it lies in the measured part of this load point.
    pub(crate) fn job(&self, window: &MeasurementWindow) -> Option<FinishedJob> {
        (self.whole && window.contains(self.began)).then_some(self.job)
    }
}

/// The time in which at least one of these commands was outstanding; `spans` is room to work in.
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

/// The jobs of a load point.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobSummary {
    /// Of those that were completed.
    pub elapsed: Summary,
    /// What they come to together.
    pub sum: JobTotals,
    /// Jobs that began in the measured part and were not completed: the load point or their session ended before.
    pub unfinished: u64,
    /// Those that were completed, in the order in which they began; at most [`JOBS_KEPT_MAX`].
    pub list: Vec<FinishedJob>,
}

/// What jobs come to together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobTotals {
    /// Elapsed times.
    pub elapsed: Duration,
    /// Times in which at least one command was outstanding.
    pub waited: Duration,
    /// Files opened.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
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
    /// A job was completed.
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

    /// Adds those of another worker.
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

    /// A command, in milliseconds from the beginning.
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
        // In the order of their answers: 0 to 9 and 12 to 15.
        assert_eq!(waited(&[(2, 5), (0, 7), (5, 9), (3, 4), (12, 15)]), 12);
        let wish = Sample { outcome: ExchangeOutcome::ServerInitiated, ..sample(begin, 0, 50) };
        assert_eq!(super::waited(&[wish, sample(begin, 1, 2)], &mut Vec::new()).as_millis(), 1);
    }
}

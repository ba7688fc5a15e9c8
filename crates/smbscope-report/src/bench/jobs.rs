//! Jobs of a load point: complete passes of a workload that has an end.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;

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

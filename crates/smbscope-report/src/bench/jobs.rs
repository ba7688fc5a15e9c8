//! Jobs of a load point: whole passes of a workload that has an end, and how long each took.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;

/// Whole passes of a workload that has an end. A job lasts from its first request to its last response. It counts where it
/// began in the measured part and was completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobStatistics {
    /// How long those took that were completed.
    pub elapsed: DurationStatistics,
    /// Jobs that began in the measured part and were not completed: the load point or their session ended before.
    pub unfinished: u64,
    /// The elapsed times of all completed jobs, added up.
    pub elapsed_sum_ns: Nanos,
    /// The part of them in which at least one command of the job was outstanding: what users waited for the server. Null
    /// where nobody saw the commands.
    pub waited_sum_ns: Option<Nanos>,
    /// Files that completed jobs opened.
    pub files: u64,
    /// Bytes that they read.
    pub bytes_read: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
    /// Those that were completed, in the order in which they began; the first 1,000.
    #[cfg_attr(feature = "schema", schemars(length(max = 1_000)))]
    pub list: Vec<JobEntry>,
}

/// A job that was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobEntry {
    /// The session that did it, from 1 over all sessions of all users.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub session: u32,
    /// Its first request.
    pub started_ns: Timestamp,
    /// From there to its last response, think time between its operations included.
    pub elapsed_ns: Nanos,
    /// The part of it in which at least one of its commands was outstanding; null where nobody saw them.
    pub waited_ns: Option<Nanos>,
    /// Files opened.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl JobStatistics {
    /// Files opened in a second of a job.
    pub fn files_per_second(&self) -> Option<f64> {
        self.per_second(self.files)
    }

    /// Bytes read and written in a second of a job.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.bytes_read.saturating_add(self.bytes_written))
    }

    /// The share of the elapsed time in which users waited for the server, 0 to 1.
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

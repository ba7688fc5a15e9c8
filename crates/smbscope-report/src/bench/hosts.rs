//! Results per load host of a distributed run.

use super::{BenchRun, ClientCpuEntry};
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;

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

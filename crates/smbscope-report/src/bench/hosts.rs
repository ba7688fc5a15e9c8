//! What each host did, where the load came from several.

use super::{BenchRun, ClientCpuEntry};
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;

/// What one host did at a load point: the sums of all of them are those of the load point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadHostEntry {
    /// As the host calls itself.
    pub host: String,
    /// Sessions that it was to have: users, times the sessions of each.
    pub sessions: u32,
    /// Commands of every group that were answered in the measured part.
    pub operations: u64,
    /// Those of them that were answered with an error status.
    pub errors: u64,
    /// Bytes read by answered commands.
    pub bytes_read: u64,
    /// Bytes written by answered commands.
    pub bytes_written: u64,
    /// Response times of the commands of the groups that count in the headline.
    pub times: DurationStatistics,
    /// What the load cost the host; null where it was lost.
    pub client_cpu: Option<ClientCpuEntry>,
    /// By how much its clock was ahead of that of the driver; behind, where it is negative.
    pub clock_ahead_ns: i64,
    /// The true offset differs from that by no more than this: half of the round trip by which it was measured.
    pub clock_bound_ns: Nanos,
    /// How late its users began, because the order to begin came too late; 0 where it came in time.
    pub late_ns: Nanos,
    /// The host was lost; null where it was not.
    pub lost: Option<LostHost>,
}

/// A host that was lost: what it had measured is in no figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostHost {
    /// When that was noticed.
    pub at_ns: Timestamp,
    /// Why it is taken for lost.
    pub why: String,
    /// Commands that it had told of by then, those of the warm-up included.
    pub operations: u64,
}

impl BenchRun {
    /// Hosts that were lost.
    pub fn lost_hosts(&self) -> impl Iterator<Item = (&LoadHostEntry, &LostHost)> {
        self.hosts.iter().filter_map(|host| Some((host, host.lost.as_ref()?)))
    }
}

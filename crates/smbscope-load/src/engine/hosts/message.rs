//! What driver and hosts say to each other. Times are those of the driver's clock.

use crate::engine::control::HostOperationCounts;
use crate::engine::cpu::ProcessTime;
use crate::engine::live_figures::LivePart;
use crate::engine::plan::RampPlan;
use crate::engine::recorder::MergeableFigures;
use crate::engine::result::LoadPointEnd;
use crate::engine::schedule::LoadSchedule;
use crate::engine::share::WorkerShare;
use crate::engine::silences::HostResponseGaps;
use crate::workload::Travelling;
use serde::{Deserialize, Serialize};
use smbscope_client::SessionOptions;
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::Summary;
use std::time::Duration;

/// What users do, where, and as whom. It holds passwords.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) plan: RampPlan,
    pub(crate) options: SessionOptions,
    pub(crate) workload: Travelling,
    /// Sessions of the largest load point, and the directory of the share that users work in.
    pub(crate) of: u32,
    pub(crate) directory: String,
}

/// From the driver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum DriverRequest {
    /// Be ready for these load points.
    Begin(Box<Assignment>),
    /// What time is it?
    Time,
    /// Have your share of these sessions. Your clock is ahead by so much; end the load point after so many operations.
    Connect { sessions: u32, share: WorkerShare, ahead: Nanos, operations: Option<u64> },
    /// Let users work from `begin` on, and measure from `start` to `end`.
    Work { begin: Timestamp, start: Timestamp, end: Timestamp, interval: Duration, schedule: LoadSchedule },
    /// What is new? The load point is over for all.
    Look { over: bool },
    /// There are no more load points.
    End,
}

/// From a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostReply {
    /// To [`Request::Begin`]: the host has so many workers.
    Ready { workers: u32 },
    /// To [`Request::Time`], by the clock of the host.
    Time(Timestamp),
    /// It is being done; it should have begun so long ago.
    Begun { late_by: Duration },
    /// To [`Request::Look`].
    News(Box<News>),
    /// To [`Request::End`]: all sessions are ended.
    Ended,
    /// It can't be done: why.
    Refused(String),
}

/// What is new since the last look.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct News {
    pub(crate) live: LivePart,
    pub(crate) tally: HostOperationCounts,
    /// The load point ended before its time, at that time, unless that is for this host alone.
    pub(crate) ended: Option<(LoadPointEnd, Timestamp)>,
    /// What was ordered is done.
    pub(crate) done: Option<HostCompletion>,
}

/// What was ordered is done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostCompletion {
    /// All sessions were tried.
    Connected,
    /// The load point is over.
    Worked(Box<HostWorked>),
}

/// What all workers of a host have of a load point.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostWorked {
    pub(crate) counted: MergeableFigures,
    pub(crate) silences: HostResponseGaps,
    pub(crate) ended: Timestamp,
    pub(crate) alive: usize,
    pub(crate) trouble: Option<String>,
    pub(crate) on_cpu: Duration,
    pub(crate) late: Summary,
    /// Of the process, in the measured part.
    pub(crate) used: ProcessTime,
}

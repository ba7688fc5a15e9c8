//! Load generation on several hosts.
//!
//! Each host runs workers like this process does ([`LoadHost`]). The engine has a [`Host`] in place of a thread, which
//! forwards orders and returns the counts of the host's workers. Workers are numbered across all hosts, so that users
//! are divided and results merged as among threads. Messages are requests and answers in bytes; the transport is the
//! caller's. Their times are by the driver's clock.

mod link;
mod served;

pub use link::{Fleet, Host, LoadWork, OnLostHost};
pub(crate) use link::{HostLink, begin};
pub use served::LoadHost;
#[cfg(test)]
pub(crate) use served::run_team;

use super::clocks::ProcessTime;
use super::control::HostOperationCounts;
use super::hooks::LivePart;
use super::plan::RampPlan;
use super::recorder::MergeableFigures;
use super::result::LoadPointEnd;
use super::schedule::LoadSchedule;
use super::silences::HostResponseGaps;
use super::worker::WorkerShare;
use crate::workload::Travelling;
use serde::{Deserialize, Serialize};
use smbscope_client::SessionOptions;
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::Summary;
use std::time::Duration;

/// Plan, workload and target of a run. Contains passwords.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) plan: RampPlan,
    pub(crate) options: SessionOptions,
    pub(crate) workload: Travelling,
    /// Sessions of the largest load point, and the users' working directory on the share.
    pub(crate) of: u32,
    pub(crate) directory: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum DriverRequest {
    Begin(Box<Assignment>),
    Time,
    /// Connect your share of these sessions. `ahead` is the offset of your clock; the load point ends after
    /// `operations`.
    Connect {
        sessions: u32,
        share: WorkerShare,
        ahead: Nanos,
        operations: Option<u64>,
    },
    Work {
        begin: Timestamp,
        start: Timestamp,
        end: Timestamp,
        interval: Duration,
        schedule: LoadSchedule,
    },
    /// Report news. `over` says that the load point has ended for all hosts.
    Look {
        over: bool,
    },
    End,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostReply {
    Ready { workers: u32 },
    Time(Timestamp),
    Begun { late_by: Duration },
    News(Box<News>),
    Ended,
    Refused(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct News {
    pub(crate) live: LivePart,
    pub(crate) tally: HostOperationCounts,
    /// Time and reason of an early end, unless it only concerns this host.
    pub(crate) ended: Option<(LoadPointEnd, Timestamp)>,
    pub(crate) done: Option<HostCompletion>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostCompletion {
    Connected,
    Worked(Box<HostWorked>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostWorked {
    pub(crate) counted: MergeableFigures,
    pub(crate) silences: HostResponseGaps,
    pub(crate) ended: Timestamp,
    pub(crate) alive: usize,
    pub(crate) trouble: Option<String>,
    pub(crate) on_cpu: Duration,
    pub(crate) late: Summary,
    pub(crate) used: ProcessTime,
}

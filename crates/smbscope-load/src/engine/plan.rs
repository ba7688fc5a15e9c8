//! Settings of a ramp.

use super::overload::OverloadLimits;
use super::schedule::LoadSchedule;
use super::users::Users;
use serde::{Deserialize, Serialize};
use smbscope_stats::Dimension;
use std::num::NonZeroUsize;
use std::time::Duration;

const INTERVALS_MAX: u128 = 100_000;

/// Maximum number of connections per session, the same as in Windows.
const CONNECTIONS_MAX: u32 = 32;

/// All settings of a ramp that do not depend on the workload or the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RampPlan {
    /// Users of each load point. With `rates`, a single number for all load points.
    pub users: Users,
    /// Total operations per second of each load point. Empty if load points differ in users.
    pub rates: Vec<u32>,
    /// Sessions per user, each with its own connection and script.
    pub sessions_per_user: u32,
    /// Connections per session, used in turn. More than one requires SMB3 multichannel (MS-SMB2 3.2.4.20.6).
    pub connections_per_session: u32,
    pub schedule: LoadSchedule,
    pub overload: Option<OverloadLimits>,
    /// Time at the beginning of each load point that is not counted.
    pub warmup: Duration,
    pub duration: Duration,
    /// Length of an [`IntervalResult`](super::result::IntervalResult).
    pub interval: Duration,
    pub connects: Connects,
    /// Number of threads. Defaults to half the processors, which leaves the others to the server or the system.
    pub workers: Option<NonZeroUsize>,
    /// The same seed reproduces each user's steps and intended start times.
    pub seed: u64,
    pub on_failure: OnFailure,
    pub limits: LoadPointLimits,
    /// Grace period for unfinished operations at the end of a load point, and again for closing files and
    /// disconnecting.
    pub grace: Duration,
    /// Polls for responses instead of sleeping: every worker occupies a whole processor, and response times exclude the
    /// wake-up delay.
    pub busy_poll: bool,
    /// Keeps every measured command as an exchange, up to [`EXCHANGES_MAX`](super::EXCHANGES_MAX).
    pub exchanges: bool,
    #[serde(skip)]
    pub by: Vec<Dimension>,
}

impl Default for RampPlan {
    fn default() -> RampPlan {
        RampPlan {
            users: Users::one(1),
            rates: Vec::new(),
            sessions_per_user: 1,
            connections_per_session: 1,
            schedule: LoadSchedule::Closed { think: Duration::ZERO },
            overload: None,
            warmup: Duration::from_secs(5),
            duration: Duration::from_secs(30),
            interval: Duration::from_secs(1),
            connects: Connects::default(),
            workers: None,
            seed: 1,
            on_failure: OnFailure::End,
            limits: LoadPointLimits::default(),
            grace: Duration::from_secs(10),
            busy_poll: false,
            exchanges: false,
            by: Vec::new(),
        }
    }
}

/// Connection rate limits. Samba listens with a backlog of 50 and forks for each connection, so a burst is refused.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Connects {
    pub rate: f64,
    pub at_once: usize,
}

impl Default for Connects {
    fn default() -> Connects {
        Connects { rate: 100.0, at_once: 16 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// The user stops for the rest of the load point.
    End,
    /// The user retries indefinitely. Time continues: in an open loop, operations that become due in the meantime are
    /// late.
    Reconnect {
        /// Pause before each attempt.
        delay: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadPointLimits {
    /// Number of complete passes per user, all within the measured part. Only for scripts with an end.
    pub passes: Option<u32>,
    /// Number of measured operations of all users. Ends the load point, and the ramp continues.
    pub operations: Option<u64>,
    pub errors: Option<ErrorLimit>,
    pub errors_in_a_row: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ErrorLimit {
    /// Stops at this number of failures.
    Count(u64),
    /// Stops above this share of failures, 0 to 1, checked from the 100th operation on.
    Share(f64),
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{0}")]
    Plan(String),
    /// An unusable criterion. One line, because the command line is long past.
    #[error("the criterion, character {}: {}", .0.position(), .0.sentence())]
    Criterion(#[from] super::criterion::CriterionError),
    #[error("the load host {name}: {why}")]
    Host {
        /// Name that the host gave itself.
        name: String,
        why: String,
    },
    #[error("the threads of the load generator could not be started: {0}")]
    Threads(#[from] std::io::Error),
}

impl RampPlan {
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let wrong = |what: &str| Err(EngineError::Plan(what.to_owned()));
        if self.sessions_per_user == 0 || self.connections_per_session == 0 {
            return wrong("a user has at least one session, and a session one connection");
        }
        if self.connections_per_session > CONNECTIONS_MAX {
            return wrong("a session has no more than 32 connections");
        }
        if self.duration.is_zero() || self.interval.is_zero() {
            return wrong("the duration and the interval of a load point are longer than nothing");
        }
        if self.duration.as_nanos() / self.interval.as_nanos() > INTERVALS_MAX {
            return wrong("a load point has more than 100,000 intervals: make them longer");
        }
        if let LoadSchedule::Open { rate, .. } = self.schedule
            && !(rate.is_finite() && rate > 0.0)
        {
            return wrong("the rate of an open loop is a number above 0");
        }
        if !self.rates.is_empty() && (!self.schedule.is_open() || self.users.points().len() != 1) {
            return wrong("a ramp of rates is of an open loop, and has one number of users");
        }
        if !(self.connects.rate.is_finite() && self.connects.rate > 0.0) || self.connects.at_once == 0 {
            return wrong("connects have a rate above 0, and at least one goes on at a time");
        }
        Ok(())
    }

    pub(crate) fn workers_for(&self, sessions: u32) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = self.workers.map_or((processors / 2).max(1), NonZeroUsize::get);
        workers.min(sessions.max(1) as usize)
    }
}

//! What the engine is told to do.

use super::overload::OverloadLimits;
use super::schedule::LoadSchedule;
use super::users::Users;
use serde::{Deserialize, Serialize};
use smbscope_stats::Dimension;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Intervals of a load point, at most.
const INTERVALS_MAX: u128 = 100_000;

/// Connections of a session, at most: as many as Windows makes.
const CONNECTIONS_MAX: u32 = 32;

/// All settings of a ramp that do not depend on the workload or the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RampPlan {
    /// Users of each load point; with `rates`, of all of them.
    pub users: Users,
    /// The load points differ in their rate, and not in their users: operations a second of all users together. Empty
    /// where they differ in users.
    pub rates: Vec<u32>,
    /// Sessions of each user, each on a connection of its own and each working through a script of its own.
    pub sessions_per_user: u32,
    /// Connections of each session, which take turns with its actions. More than one are SMB3 multichannel (MS-SMB2
    /// 3.2.4.20.6).
    pub connections_per_session: u32,
    /// When operations begin.
    pub schedule: LoadSchedule,
    /// In an open loop: when an operation was too slow for its user.
    pub overload: Option<OverloadLimits>,
    /// What is not counted at the beginning of each load point.
    pub warmup: Duration,
    /// The measured part of each load point.
    pub duration: Duration,
    /// Length of [`Interval`](super::result::Interval)s.
    pub interval: Duration,
    /// How sessions are set up.
    pub connects: Connects,
    /// Threads that users are dealt out to; half the processors unless told otherwise, the others being the server's, or
    /// the system's.
    pub workers: Option<NonZeroUsize>,
    /// The same seed gives each user the same steps, and the same intended starts.
    pub seed: u64,
    /// What a user does whose session breaks.
    pub on_failure: OnFailure,
    /// What ends a load point, and with it the ramp, before its time.
    pub limits: LoadPointLimits,
    /// For unfinished operations when a load point ends, and then for closing files and disconnecting.
    pub grace: Duration,
    /// Ask for answers without a pause, instead of sleeping until they come: each worker takes a whole processor, and
    /// response times do not include that it has to wake up.
    pub busy_poll: bool,
    /// Keep every command of the measured part as an exchange, up to [`EXCHANGES_MAX`](super::EXCHANGES_MAX).
    pub exchanges: bool,
    /// Divide the commands of each load point by these; by nothing where there are none.
    #[serde(skip)]
    pub by: Vec<Dimension>,
}

impl Default for RampPlan {
    /// One user without think time for 30 s after 5 s.
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

/// How sessions are set up: Samba listens with a backlog of 50 and forks for each connection, so a rush is refused.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Connects {
    /// Connects begun a second, at most.
    pub rate: f64,
    /// Simultaneous connects, at most.
    pub at_once: usize,
}

impl Default for Connects {
    fn default() -> Connects {
        Connects { rate: 100.0, at_once: 16 }
    }
}

/// What a user does whose session could not be made or broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// The user does no more in this load point.
    End,
    /// The user tries again, as often as it takes. The clock runs on: in an open loop, operations that were due meanwhile
    /// are late.
    Reconnect {
        /// What passes before each try.
        delay: Duration,
    },
}

/// What ends a load point before its time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadPointLimits {
    /// A user's work in a load point ends after so many whole passes of a script that has an end, all of them in the
    /// measured part.
    pub passes: Option<u32>,
    /// Operations of all users in the measured part; they end the load point, and the ramp goes on.
    pub operations: Option<u64>,
    /// Failed operations: those that ended with another status than the expected one, and those whose session broke.
    pub errors: Option<ErrorLimit>,
    /// Failed operations one after the other, of all users.
    pub errors_in_a_row: Option<u64>,
}

/// How many operations may fail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ErrorLimit {
    /// Fewer than these.
    Count(u64),
    /// No more than this share of all, 0 to 1, looked at from the 100th operation on.
    Share(f64),
}

/// Why a plan cannot be carried out, or was not.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A setting that makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A criterion that cannot be judged: in one line, as the command line has gone by.
    #[error("the criterion, character {}: {}", .0.position(), .0.sentence())]
    Criterion(#[from] super::criterion::CriterionError),
    /// A host that is to generate load can't.
    #[error("the load host {name}: {why}")]
    Host {
        /// As it calls itself.
        name: String,
        /// Why.
        why: String,
    },
    /// The system gave no thread or runtime.
    #[error("the threads of the load generator could not be started: {0}")]
    Threads(#[from] std::io::Error),
}

impl RampPlan {
    /// Refuses what cannot be carried out.
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

    /// Threads for this many sessions.
    pub(crate) fn workers_for(&self, sessions: u32) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = self.workers.map_or((processors / 2).max(1), NonZeroUsize::get);
        workers.min(sessions.max(1) as usize)
    }
}

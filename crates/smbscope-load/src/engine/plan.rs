//! Settings of a ramp, and its load points by users or by rate: `8`, `1,8,32`, `10..200:10`, and combinations.

use super::schedule::{LoadSchedule, OverloadLimits};
use crate::workload::SessionsPerUser;
use serde::{Deserialize, Serialize};
use smbscope_stats::Dimension;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

/// Intervals of a load point; more are refused.
const INTERVALS_MAX: u128 = 100_000;

/// Connections per session, as in Windows; more are refused.
const CONNECTIONS_MAX: u32 = 32;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RampPlan {
    /// Users of each load point. With `rates`, a single number for all load points.
    pub users: Users,
    /// Total operations per second of each load point. Empty if load points differ in users.
    pub rates: Vec<u32>,
    /// Sessions of the users, each with its own connection and script.
    pub sessions: SessionsPerUser,
    /// Connections per session, used in turn. More than one requires SMB3 multichannel (MS-SMB2 3.2.4.20.6).
    pub connections_per_session: u32,
    pub schedule: LoadSchedule,
    pub overload: Option<OverloadLimits>,
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
            sessions: SessionsPerUser::same(1),
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
    End,
    /// The user retries indefinitely. Time continues: in an open loop, operations that become due in the meantime are
    /// late.
    Reconnect {
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
    Host { name: String, why: String },
    #[error("the threads of the load generator could not be started: {0}")]
    Threads(#[from] std::io::Error),
}

impl RampPlan {
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let wrong = |what: &str| Err(EngineError::Plan(what.to_owned()));
        if !self.sessions.is_for_everyone() || self.connections_per_session == 0 {
            return wrong("a user needs at least one session, and a session one connection");
        }
        if self.connections_per_session > CONNECTIONS_MAX {
            return wrong("a session has no more than 32 connections");
        }
        if self.duration.is_zero() || self.interval.is_zero() {
            return wrong("the duration and the interval of a load point must be above 0");
        }
        if self.duration.as_nanos() / self.interval.as_nanos() > INTERVALS_MAX {
            return wrong("a load point has more than 100,000 intervals: make them longer");
        }
        if let LoadSchedule::Open { rate, .. } = self.schedule
            && !(rate.is_finite() && rate > 0.0)
        {
            return wrong("the rate of an open loop must be above 0");
        }
        if !self.rates.is_empty() && (!self.schedule.is_open() || self.users.points().len() != 1) {
            return wrong("a ramp of rates needs an open loop and one number of users");
        }
        if !(self.connects.rate.is_finite() && self.connects.rate > 0.0) || self.connects.at_once == 0 {
            return wrong("connects need a rate above 0, and at least one at a time");
        }
        Ok(())
    }

    pub(crate) fn workers_for(&self, sessions: u32) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = self.workers.map_or((processors / 2).max(1), NonZeroUsize::get);
        workers.min(sessions.max(1) as usize)
    }
}

/// Load points of a ramp; more are refused. A range for a search may have more.
pub const LOAD_POINTS_MAX: usize = 1_000;
/// Users; more are refused. Each needs a connection, and so a local port.
pub const USERS_MAX: u32 = 60_000;

/// Operations a second; more are refused.
pub const RATE_MAX: u32 = 10_000_000;

/// Number of users of each load point, in the order of execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users(Vec<u32>);

impl Users {
    pub fn one(users: u32) -> Users {
        Users(vec![users.max(1)])
    }

    pub fn range(first: u32, most: u32) -> Users {
        Users(vec![first, most])
    }

    pub fn fewest(&self) -> u32 {
        self.0.iter().copied().min().unwrap_or(1)
    }

    pub fn points(&self) -> &[u32] {
        &self.0
    }

    pub fn most(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates(Vec<u32>);

impl Rates {
    pub fn points(&self) -> &[u32] {
        &self.0
    }
}

impl FromStr for Rates {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Rates, UsersError> {
        points(&text.replace("/s", ""), LoadUnit { what: "rates", most: RATE_MAX, example: "500,1000,2000" }).map(Rates)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} `{given}`: {problem}; write a number, a list such as {example}, or first..last:step such as 10..200:10"
)]
pub struct UsersError {
    what: &'static str,
    given: String,
    problem: String,
    example: &'static str,
}

#[derive(Clone, Copy)]
struct LoadUnit {
    what: &'static str,
    most: u32,
    example: &'static str,
}

fn points(text: &str, unit: LoadUnit) -> Result<Vec<u32>, UsersError> {
    let LoadUnit { what, example, .. } = unit;
    let mut points = Vec::new();
    for part in text.split(',') {
        let added = add(&mut points, part.trim(), unit);
        added.map_err(|problem| UsersError { what, given: text.to_owned(), problem, example })?;
    }
    Ok(points)
}

impl FromStr for Users {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Users, UsersError> {
        points(text, LoadUnit { what: "users", most: USERS_MAX, example: "1,8,32" }).map(Users)
    }
}

fn add(points: &mut Vec<u32>, part: &str, unit: LoadUnit) -> Result<(), String> {
    let Some((first, rest)) = part.split_once("..") else {
        return push(points, number(part, unit)?);
    };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (number(last, unit)?, number(step, unit)?),
        None => (number(rest, unit)?, 1),
    };
    let first = number(first, unit)?;
    if last < first {
        return Err(format!("{first}..{last} goes backwards"));
    }
    // The last value always belongs to the range, even if the steps miss it.
    for users in (first..last).step_by(step as usize) {
        push(points, users)?;
    }
    push(points, last)
}

fn push(points: &mut Vec<u32>, users: u32) -> Result<(), String> {
    if points.len() == USERS_MAX as usize {
        return Err(format!("more than {USERS_MAX} load points"));
    }
    points.push(users);
    Ok(())
}

fn number(text: &str, unit: LoadUnit) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("0 is too few".to_owned()),
        Ok(number) if number > unit.most => Err(format!("{number} is more than {}", unit.most)),
        Ok(users) => Ok(users),
        Err(_) if text.trim().is_empty() => Err("a number is missing".to_owned()),
        Err(_) => Err(format!("`{}` is not a number of {}", text.trim(), unit.what)),
    }
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, users) in self.0.iter().enumerate() {
            write!(f, "{}{users}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<u32> {
        text.parse::<Users>().unwrap().0
    }

    #[test]
    fn lists_and_ranges_are_load_points_in_their_order() {
        assert_eq!(points("8"), [8]);
        assert_eq!(points("1, 8,32"), [1, 8, 32]);
        assert_eq!(points("10..50:10"), [10, 20, 30, 40, 50]);
        assert_eq!(points("3..5"), [3, 4, 5]);
        assert_eq!(points("1,10..30:10,8"), [1, 10, 20, 30, 8]);
    }

    #[test]
    fn a_range_ends_with_its_last_value_even_where_the_steps_miss_it() {
        assert_eq!(points("10..25:10"), [10, 20, 25]);
    }

    #[test]
    fn what_is_wrong_is_said_with_an_example() {
        let problem = |text: &str| text.parse::<Users>().unwrap_err().to_string();
        assert_eq!(
            problem("1,x"),
            "users `1,x`: `x` is not a number of users; write a number, a list such as 1,8,32, or first..last:step \
             such as 10..200:10"
        );
        assert!(problem("").contains("a number is missing"));
        assert!(problem("0").contains("0 is too few"));
        assert!(problem("20..10").contains("20..10 goes backwards"));
        assert!(problem("1..60000,1").contains("more than 60000 load points"));
        assert!(problem("99999999").contains("99999999 is more than 60000"));
    }
}

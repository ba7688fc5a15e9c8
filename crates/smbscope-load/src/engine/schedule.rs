//! Start times of operations, for closed and open loops.
//!
//! In a closed loop, a user starts an operation after the previous one and its think time. A server that stalls holds
//! back the load, and only one operation per user shows the stall.
//!
//! In an open loop, operations have intended start times that do not depend on the server. Constant arrivals are dealt
//! to the users in turn; with Poisson arrivals each user has an independent stream, and the streams add up to the whole
//! rate. A user who is late starts the next operation immediately, and its response time counts from the intended
//! start, which avoids coordinated omission.
//!
//! Overload is the share of scenarios that were too slow for their users, by which FSCT rates the number of users that
//! a server supports. A scenario is an operation of an open loop, due regardless of the previous one: see
//! [`OverloadTally`].

use serde::{Deserialize, Serialize};
use smbscope_stats::Random;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum LoadSchedule {
    Closed {
        think: Duration,
    },
    /// `rate` is in operations per second, per user or in total.
    Open {
        rate: f64,
        per_user: bool,
        arrivals: Arrivals,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    Constant,
    Poisson,
}

impl LoadSchedule {
    pub fn is_open(&self) -> bool {
        matches!(self, LoadSchedule::Open { .. })
    }

    /// Resolves the schedule for a load point with this many users. `rate` overrides the schedule's own.
    pub(crate) fn at(self, users: u32, rate: Option<f64>) -> LoadSchedule {
        match self {
            LoadSchedule::Open { rate: own, per_user, arrivals } => {
                let all = if per_user { own * f64::from(users) } else { own };
                LoadSchedule::Open { rate: rate.unwrap_or(all), per_user: false, arrivals }
            }
            closed => closed,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Appointments {
    Closed { think: Duration, next: Instant },
    Constant { begin: Instant, first: f64, distance: f64, made: u64, next: Instant },
    Poisson { distance: f64, next: Instant, random: Random },
}

impl Appointments {
    /// Start times of user `number` of `users`, from `begin` on.
    pub(crate) fn new(schedule: LoadSchedule, number: u32, users: u32, begin: Instant, seed: u64) -> Appointments {
        let mut random = Random::of_stream(seed, u64::from(number));
        match schedule {
            LoadSchedule::Closed { think } => {
                // A random first start, because users with equal think times would otherwise act in lockstep.
                let next = begin + think.mul_f64(random.unit());
                Appointments::Closed { think, next }
            }
            LoadSchedule::Open { rate, arrivals: Arrivals::Constant, .. } => {
                let first = f64::from(number) / rate;
                let next = begin + Duration::from_secs_f64(first);
                Appointments::Constant { begin, first, distance: f64::from(users) / rate, made: 0, next }
            }
            LoadSchedule::Open { rate, arrivals: Arrivals::Poisson, .. } => {
                let distance = f64::from(users) / rate;
                let next = begin + Duration::from_secs_f64(distance * random.exponential());
                Appointments::Poisson { distance, next, random }
            }
        }
    }

    pub(crate) fn next(&self) -> Instant {
        match self {
            Appointments::Closed { next, .. }
            | Appointments::Constant { next, .. }
            | Appointments::Poisson { next, .. } => *next,
        }
    }

    /// Records that the operation started. An open loop moves on to the next start time.
    pub(crate) fn begun(&mut self) {
        match self {
            Appointments::Closed { .. } => {}
            Appointments::Constant { begin, first, distance, made, next } => {
                *made += 1;
                *next = *begin + Duration::from_secs_f64(*first + *distance * *made as f64);
            }
            Appointments::Poisson { distance, next, random } => {
                *next += Duration::from_secs_f64(*distance * random.exponential());
            }
        }
    }

    /// Records that the operation ended. A closed loop starts the next one after the think time.
    pub(crate) fn ended(&mut self, at: Instant) {
        if let Appointments::Closed { think, next } = self {
            *next = at + *think;
        }
    }

    /// Skips the start times before `until`. Returns how many of them were at or after `from`; always 0 in a closed
    /// loop.
    pub(crate) fn missed(&mut self, from: Instant, until: Instant) -> u64 {
        if let Appointments::Closed { .. } = self {
            return 0;
        }
        let mut missed = 0;
        while self.next() < until {
            missed += u64::from(self.next() >= from);
            self.begun();
        }
        missed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MeasurementWindow {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) interval: Duration,
}

impl MeasurementWindow {
    pub(crate) fn contains(&self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }

    pub(crate) fn interval_of(&self, at: Instant) -> usize {
        (at.saturating_duration_since(self.start).as_nanos() / self.interval.as_nanos()) as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadLimits {
    pub late: Duration,
    /// Maximum time from first request to last response; `None` for unlimited.
    pub budget: Option<Duration>,
}

/// Scenarios that were due in the measured part of a load point.
///
/// A scenario is overload if it started late because its user was still working on the previous one, if it exceeded
/// its budget, or if it never started. Each counts in at most one of these categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadTally {
    pub limits: OverloadLimits,
    pub scenarios: u64,
    pub late: u64,
    /// Started in time but exceeded the budget, or never completed.
    pub exceeded: u64,
    pub not_begun: u64,
}

impl OverloadTally {
    pub(crate) fn new(limits: OverloadLimits) -> OverloadTally {
        OverloadTally { limits, scenarios: 0, late: 0, exceeded: 0, not_begun: 0 }
    }

    /// Returns the share of scenarios that were too slow, 0 to 1. Returns 0 if none were due.
    pub fn share(&self) -> f64 {
        (self.late + self.exceeded + self.not_begun) as f64 / self.scenarios.max(1) as f64
    }

    pub(crate) fn completed(&mut self, intended: Instant, (first, last): (Instant, Instant)) {
        self.scenarios += 1;
        let OverloadLimits { late, budget } = self.limits;
        if first.saturating_duration_since(intended) > late {
            self.late += 1;
        } else if budget.is_some_and(|budget| last.saturating_duration_since(first) > budget) {
            self.exceeded += 1;
        }
    }

    pub(crate) fn given_up(&mut self, since: Instant, window: &MeasurementWindow) {
        let counts = u64::from(window.contains(since));
        self.scenarios += counts;
        self.exceeded += counts;
    }

    pub(crate) fn not_begun(&mut self, scenarios: u64) {
        self.scenarios += scenarios;
        self.not_begun += scenarios;
    }

    pub(crate) fn merge(&mut self, other: &OverloadTally) {
        self.scenarios += other.scenarios;
        self.late += other.late;
        self.exceeded += other.exceeded;
        self.not_begun += other.not_begun;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(rate: f64, arrivals: Arrivals, users: u32, seconds: u64) -> Vec<u128> {
        let begin = Instant::now();
        let mut starts = Vec::new();
        for number in 0..users {
            let mut own =
                Appointments::new(LoadSchedule::Open { rate, per_user: false, arrivals }, number, users, begin, 7);
            while own.next() < begin + Duration::from_secs(seconds) {
                starts.push((own.next() - begin).as_micros());
                own.begun();
            }
        }
        starts.sort_unstable();
        starts
    }

    #[test]
    fn constant_arrivals_of_all_users_together_have_equal_distances() {
        let expected: Vec<u128> = (0..100).map(|i| i * 10_000).collect();
        let near = |(a, b): (&u128, &u128)| a.abs_diff(*b) <= 1;
        let starts = starts(100.0, Arrivals::Constant, 3, 1);
        assert!(starts.len() == 100 && starts.iter().zip(&expected).all(near), "{starts:?}");
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_and_have_the_variance_of_chance() {
        // 10,000 expected. The standard deviation of a Poisson count is 100, so 5 of them are allowed. The intervals
        // are exponential: their standard deviation equals their mean.
        let starts = starts(1_000.0, Arrivals::Poisson, 8, 10);
        assert!((9_500..10_500).contains(&starts.len()), "{}", starts.len());
        let distances: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let variance = distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / distances.len() as f64;
        assert!((0.95..1.05).contains(&(variance.sqrt() / mean)), "{}", variance.sqrt() / mean);
    }

    #[test]
    fn a_rate_of_each_user_grows_with_the_users_and_one_of_a_load_point_counts_before_both() {
        let arrivals = Arrivals::Constant;
        let each = LoadSchedule::Open { rate: 2.0, per_user: true, arrivals };
        let all = |rate| LoadSchedule::Open { rate, per_user: false, arrivals };
        assert_eq!((each.at(1, None), each.at(16, None)), (all(2.0), all(32.0)));
        assert_eq!((all(400.0).at(16, None), all(400.0).at(16, Some(50.0))), (all(400.0), all(50.0)));
        let closed = LoadSchedule::Closed { think: Duration::ZERO };
        assert_eq!(closed.at(16, Some(50.0)), closed);
    }

    #[test]
    fn the_same_seed_makes_the_same_appointments() {
        assert_eq!(starts(50.0, Arrivals::Poisson, 2, 1), starts(50.0, Arrivals::Poisson, 2, 1));
    }

    #[test]
    fn missed_appointments_are_those_of_the_measured_part() {
        // 10/s by one user, measured from 1 s to 3 s, started until 1.5 s: 15 start times from 1.5 s on remain.
        let begin = Instant::now();
        let schedule = LoadSchedule::Open { rate: 10.0, per_user: false, arrivals: Arrivals::Constant };
        let mut own = Appointments::new(schedule, 0, 1, begin, 0);
        while own.next() < begin + Duration::from_millis(1_450) {
            own.begun();
        }
        assert_eq!(own.missed(begin + Duration::from_secs(1), begin + Duration::from_millis(2_950)), 15);
    }
}

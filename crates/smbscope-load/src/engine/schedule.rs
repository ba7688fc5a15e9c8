//! When operations begin: one value for closed and open loops, and the appointments of each user that follow from it.
//!
//! In a closed loop a user begins an operation when the one before is done and was thought about. A server that stalls
//! holds back the load, and only one operation of each user shows the stall.
//!
//! In an open loop operations have intended starts that do not depend on the server. They are dealt out to the users
//! in turn, or with Poisson arrivals each user has a stream of its own, which add up to one of the whole rate. A user who
//! is late begins the next operation at once, and its response time runs from the intended start: no coordinated omission.

use serde::{Deserialize, Serialize};
use smbscope_stats::Random;
use std::time::{Duration, Instant};

/// When operations begin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum LoadSchedule {
    /// Each user begins when the operation before is done.
    Closed {
        /// What passes between two operations of a user.
        think: Duration,
    },
    /// Operations begin when they are due.
    Open {
        /// Operations a second: of all users together, or of each.
        rate: f64,
        /// The rate is that of each user, so that more users are more load.
        per_user: bool,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// How intended starts are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// At random, independent of each other.
    Poisson,
}

impl LoadSchedule {
    /// Whether intended starts exist.
    pub fn is_open(&self) -> bool {
        matches!(self, LoadSchedule::Open { .. })
    }

    /// The schedule of a load point with so many users; a rate takes the place of the schedule's own.
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

/// The intended starts of one user.
#[derive(Debug)]
pub(crate) enum Appointments {
    Closed { think: Duration, next: Instant },
    Constant { begin: Instant, first: f64, distance: f64, made: u64, next: Instant },
    Poisson { distance: f64, next: Instant, random: Random },
}

impl Appointments {
    /// Those of user `number` of `users`, from `begin` on.
    pub(crate) fn new(schedule: LoadSchedule, number: u32, users: u32, begin: Instant, seed: u64) -> Appointments {
        let mut random = Random::of_stream(seed, u64::from(number));
        match schedule {
            LoadSchedule::Closed { think } => {
                // Users who all think for the same time would act at the same moments.
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

    /// When the next operation should begin.
    pub(crate) fn next(&self) -> Instant {
        match self {
            Appointments::Closed { next, .. }
            | Appointments::Constant { next, .. }
            | Appointments::Poisson { next, .. } => *next,
        }
    }

    /// The operation began: an open loop makes the appointment after it.
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

    /// The operation ended: in a closed loop the user thinks, then begins the next.
    pub(crate) fn ended(&mut self, at: Instant) {
        if let Appointments::Closed { think, next } = self {
            *next = at + *think;
        }
    }

    /// Appointments from `from` on that were missed by `until`; none in a closed loop.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Intended starts of all users in a second, in microseconds from the beginning.
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
        // 100/s by 3 users: one every 10 ms.
        let expected: Vec<u128> = (0..100).map(|i| i * 10_000).collect();
        let near = |(a, b): (&u128, &u128)| a.abs_diff(*b) <= 1;
        let starts = starts(100.0, Arrivals::Constant, 3, 1);
        assert!(starts.len() == 100 && starts.iter().zip(&expected).all(near), "{starts:?}");
    }

    #[test]
    fn poisson_arrivals_keep_the_rate_and_have_the_variance_of_chance() {
        // 10,000 expected: the standard deviation of a Poisson count is 100, so 5 of them are allowed. The distances are
        // exponential: their standard deviation equals their mean.
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
        // 10/s by one user; measured from 1 s to 3 s; begun until 1.5 s: 15 appointments from 1.5 s on are left.
        let begin = Instant::now();
        let schedule = LoadSchedule::Open { rate: 10.0, per_user: false, arrivals: Arrivals::Constant };
        let mut own = Appointments::new(schedule, 0, 1, begin, 0);
        while own.next() < begin + Duration::from_millis(1_450) {
            own.begun();
        }
        assert_eq!(own.missed(begin + Duration::from_secs(1), begin + Duration::from_millis(2_950)), 15);
    }
}

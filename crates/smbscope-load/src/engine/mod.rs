//! The load engine: runs users by a schedule and up a ramp, and aggregates their response times.
//!
//! [`run`] executes a [`RampPlan`]. For each load point it connects the sessions, lets the users work through a
//! warm-up, measures, and returns a [`LoadPointResult`]. Each worker thread owns its users: a user is a task that does
//! its own I/O, and a thread records without locks.
//!
//! A new session first performs its script's set-up, which is not counted. Sessions, with their open files and script
//! positions, carry over to the next load point; if that has fewer users, the last ones leave. Start reading in
//! `load.rs`, then `user.rs`.
//!
//! [`EngineRun::find_capacity`] searches for the capacity of a server: the largest load, in users or in operations per
//! second, that meets a criterion. The load doubles until the criterion fails, then a bisection closes in on the knee.
//! To rule out chance, a failed load is tried again, and so is the answer; if tries of a load disagree, the majority of
//! three decides. A search on another day may still end at a neighbouring load, so the answer comes with a range: loads
//! around it are tried until one below passes all of three tries and one above fails all of them.

mod clocks;
mod control;
mod criterion;
mod exchanges;
mod hooks;
mod hosts;
mod load;
mod plan;
mod recorder;
pub mod result;
mod schedule;
mod session;
mod silences;
mod user;
mod worker;

#[cfg(test)]
mod tests;

pub use clocks::{LATE_ABOVE, LIMITED_ABOVE};
pub use criterion::{Criterion, CriterionError, CriterionResult};
pub use exchanges::{EXCHANGES_MAX, ExchangeLog};
pub use hooks::{EnginePhase, EngineSnapshot, ExchangeObserver, Hooks, LiveFigures, LiveGroup, StopFlag};
pub use hosts::{Fleet, Host, LoadHost, LoadWork, OnLostHost};
pub use plan::{Connects, EngineError, ErrorLimit, LoadPointLimits, OnFailure, RampPlan};
pub use plan::{LOAD_POINTS_MAX, RATE_MAX, Rates, USERS_MAX, Users, UsersError};
pub use result::{FinishedJob, JOBS_KEPT_MAX, JobSummary, JobTotals};
pub use schedule::{Arrivals, LoadSchedule, OverloadLimits, OverloadTally};
pub use session::CommandQueueDepth;
pub use silences::{STALL_MIN, STALL_TIMES_MEDIAN, STALLS_MAX};

use crate::workload::Script;
use clocks::Time;
use hooks::Surroundings;
use load::{Engine, LocalUsers, with_engine, with_hosts};
use result::{LoadPointEnd, LoadPointResult};
use session::ServerConnector;
use smbscope_client::SessionOptions;
use std::collections::BTreeMap;
use worker::Scripts;

/// Runs every load point of the plan against a server and returns the results in order, up to the first one that was
/// interrupted, stopped or failed. Blocks until all sessions have ended.
///
/// `scripts` creates the script of a session, numbered from 0 across all users. All randomness in a script derives from
/// the plan's seed and that number.
pub fn run(
    plan: &RampPlan,
    options: &SessionOptions,
    scripts: &(dyn Fn(u32) -> Box<dyn Script> + Sync),
    hooks: &mut dyn Hooks,
    live: &LiveFigures,
    stop: &StopFlag,
) -> Result<Vec<LoadPointResult>, EngineError> {
    EngineRun { plan, fleet: None, options, scripts, hooks, live, stop }.ramp()
}

/// A run of the engine: its plan, its users, and the caller's view of it.
pub struct EngineRun<'a> {
    pub plan: &'a RampPlan,
    /// Hosts that run the users of the same workload; without a fleet, this process does.
    pub fleet: Option<Fleet>,
    pub options: &'a SessionOptions,
    pub scripts: Scripts<'a>,
    pub hooks: &'a mut dyn Hooks,
    pub live: &'a LiveFigures,
    pub stop: &'a StopFlag,
}

impl EngineRun<'_> {
    /// Runs every load point of the plan, as [`run`] does.
    pub fn ramp(self) -> Result<Vec<LoadPointResult>, EngineError> {
        let plan = self.plan;
        self.with_users(plan.users.most(), |engine| ramp(plan, engine))
    }

    /// Searches for the largest number of users that meets a criterion, or for the highest rate if the plan has rates.
    /// The plan's settings apply to every load point that the search tries.
    pub fn find_capacity(self, criterion: &Criterion, search: Search) -> Result<CapacityResult, EngineError> {
        criterion.check((self.scripts)(0).operations())?;
        let most = if self.plan.rates.is_empty() { search.most } else { self.plan.users.most() };
        self.with_users(most, |engine| search_for_capacity(engine, criterion, search))
    }

    fn with_users<R>(self, most: u32, work: impl FnOnce(&mut Engine<'_>) -> R) -> Result<R, EngineError> {
        let EngineRun { plan, fleet, options, scripts, hooks, live, stop } = self;
        let surroundings = Surroundings { hooks, live, stop };
        if let Some(fleet) = fleet {
            return with_hosts(plan, fleet, options, scripts, surroundings, work);
        }
        let connector = ServerConnector::new(options, plan.connections_per_session, plan.seed);
        with_engine(plan, most, LocalUsers { connector, scripts, time: Time::Real }, surroundings, work)
    }
}

fn ramp(plan: &RampPlan, engine: &mut Engine<'_>) -> Vec<LoadPointResult> {
    let mut runs = Vec::new();
    let points = if plan.rates.is_empty() { plan.users.points() } else { &plan.rates };
    for number in points {
        if engine.is_stopped() && !runs.is_empty() {
            break;
        }
        runs.push(engine.point(engine.load(*number)));
        if runs.last().is_some_and(|run| run.ended != LoadPointEnd::Done) {
            break;
        }
    }
    runs
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    pub first: u32,
    pub most: u32,
    /// True if loads are operations per second instead of users.
    pub rates: bool,
    /// Relative precision: the knee lies between the answer and this share above it, or one more user.
    pub precision: f64,
}

impl Default for Search {
    fn default() -> Search {
        Search { first: 1, most: 10_000, rates: false, precision: 0.05 }
    }
}

impl Search {
    fn kind_max(&self) -> u32 {
        if self.rates { RATE_MAX } else { USERS_MAX }
    }

    fn step(&self, load: u32) -> u32 {
        ((f64::from(load) * self.precision) as u32).max(1)
    }
}

#[derive(Debug, Clone)]
pub struct CapacityResult {
    pub criterion: Criterion,
    pub users: Knee,
    /// Interval in which another search may end. `None` without a knee.
    pub range: Option<KneeRange>,
    pub tried: Vec<LoadTrial>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KneeRange {
    /// Largest load near the knee that met the criterion in all tries, if any.
    pub always: Option<u32>,
    /// Smallest load near the knee that failed in all tries. `None` if it is further away.
    pub never: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knee {
    /// This load is sustained, and slightly more is not.
    At(u32),
    /// This load is sustained, and the search allows no more.
    AtLeast(u32),
    /// Even the smallest load tried is not sustained.
    Below(u32),
    /// Interrupted. This load is sustained, if any.
    Unfinished(Option<u32>),
}

#[derive(Debug, Clone)]
pub struct LoadTrial {
    pub run: LoadPointResult,
    pub verdict: CriterionResult,
}

const MAJORITY: u32 = 2;

/// Number of equal results, without a different one, that make it certain.
const SURE: u32 = 3;

/// Loads tried on each side of the capacity.
const RANGE_STEPS_MAX: u32 = 4;

fn search_for_capacity(engine: &mut Engine<'_>, criterion: &Criterion, search: Search) -> CapacityResult {
    let mut trials = Trials { engine, criterion, tried: Vec::new(), votes: BTreeMap::new() };
    let users = match trials.knee(search) {
        Ok(knee) => knee,
        Err(SearchInterrupted) => Knee::Unfinished(trials.best()),
    };
    let range = match users {
        Knee::At(knee) => trials.range(knee, search).ok(),
        _ => None,
    };
    CapacityResult { criterion: criterion.clone(), users, range, tried: trials.tried }
}

struct SearchInterrupted;

struct Trials<'e, 'a> {
    engine: &'e mut Engine<'a>,
    criterion: &'e Criterion,
    tried: Vec<LoadTrial>,
    /// For each load, the number of tries that met the criterion and that missed it.
    votes: BTreeMap<u32, (u32, u32)>,
}

impl Trials<'_, '_> {
    fn knee(&mut self, search: Search) -> Result<Knee, SearchInterrupted> {
        let most = search.most.clamp(1, search.kind_max());
        let first = search.first.clamp(1, most);
        let mut low = 0;
        let mut high = first;
        while self.carries(high)? {
            low = high;
            if low == most {
                return Ok(Knee::AtLeast(most));
            }
            high = high.saturating_mul(2).min(most);
        }
        loop {
            let precision = search.step(low);
            while high - low > precision {
                let middle = low + (high - low) / 2;
                if self.carries(middle)? {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            if low == 0 {
                return Ok(Knee::Below(high));
            }
            if self.is_sure_of(low)? {
                return Ok(Knee::At(low));
            }
            high = low;
            low = self.best_below(high).unwrap_or(0);
        }
    }

    fn range(&mut self, knee: u32, search: Search) -> Result<KneeRange, SearchInterrupted> {
        let (step, most) = (search.step(knee), search.most.clamp(1, search.kind_max()));
        let mut range = KneeRange { always: None, never: None };
        for steps in 0..=RANGE_STEPS_MAX {
            let Some(below) = knee.checked_sub(steps * step).filter(|load| *load > 0) else { break };
            if self.always(below)? {
                range.always = Some(below);
                break;
            }
        }
        for steps in 1..=RANGE_STEPS_MAX {
            let Some(above) = knee.checked_add(steps * step).filter(|load| *load <= most) else { break };
            if self.never(above)? {
                range.never = Some(above);
                break;
            }
        }
        Ok(range)
    }

    fn always(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users).copied().unwrap_or_default() {
                (_, 1..) => return Ok(false),
                (SURE.., _) => return Ok(true),
                _ => self.try_with(users)?,
            }
        }
    }

    fn never(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users).copied().unwrap_or_default() {
                (1.., _) => return Ok(false),
                (_, SURE..) => return Ok(true),
                _ => self.try_with(users)?,
            }
        }
    }

    fn carries(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, missed)) if *met >= MAJORITY || (*met > 0 && *missed == 0) => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    /// Returns true if a load that met the criterion once does so again, or in two of three tries.
    fn is_sure_of(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, _)) if *met >= MAJORITY => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    fn try_with(&mut self, users: u32) -> Result<(), SearchInterrupted> {
        let run = self.engine.point(self.engine.load(users));
        let mut verdict = self.criterion.judge(&run);
        match &run.ended {
            LoadPointEnd::Done => {}
            LoadPointEnd::Interrupted => {
                verdict.met = false;
                self.tried.push(LoadTrial { run, verdict });
                return Err(SearchInterrupted);
            }
            LoadPointEnd::Stopped(why) | LoadPointEnd::Failed(why) => {
                verdict.met = false;
                verdict.found.push(why.clone());
            }
        }
        if run.hosts.iter().any(|host| host.lost.is_some()) {
            // There were fewer users than planned. The remaining hosts repeat the try.
            verdict.met = false;
            verdict.found.push("a load host was lost, so this try does not count".to_owned());
            self.tried.push(LoadTrial { run, verdict });
            return if self.engine.is_without_hosts() { Err(SearchInterrupted) } else { Ok(()) };
        }
        let (met, missed) = self.votes.entry(users).or_default();
        *(if verdict.met { met } else { missed }) += 1;
        self.tried.push(LoadTrial { run, verdict });
        Ok(())
    }

    fn best(&self) -> Option<u32> {
        self.best_below(u32::MAX)
    }

    fn best_below(&self, users: u32) -> Option<u32> {
        self.votes.range(..users).rev().find(|(_, (met, missed))| met > missed).map(|(users, _)| *users)
    }
}

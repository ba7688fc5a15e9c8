//! The load engine: runs users by a schedule and up a ramp, and aggregates their response times.
//!
//! [`run`] executes a [`RampPlan`]. For each load point it connects the sessions, lets the users work through a
//! warm-up, measures, and returns a [`LoadPointResult`]. Each worker thread owns its users: a user is a task that does
//! its own I/O, and a thread records without locks.
//!
//! A new session first performs its script's set-up, which is not counted. Sessions, with their open files and script
//! positions, carry over to the next load point; if that has fewer users, the last ones leave. Start reading in
//! `load.rs`, then `user.rs`.

mod capacity;
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

pub use capacity::{CapacityResult, Knee, KneeRange, LoadTrial, Search};
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
        self.with_users(most, |engine| capacity::search(engine, criterion, search))
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

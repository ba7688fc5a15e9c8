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
mod jobs;
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
pub use hooks::{EnginePhase, EngineSnapshot, Hooks, LiveFigures, LiveGroup, StopFlag};
pub use hosts::{Fleet, Host, LoadHost, LoadWork, OnLostHost};
pub use jobs::{FinishedJob, JOBS_KEPT_MAX, JobSummary, JobTotals};
pub use plan::{Connects, EngineError, ErrorLimit, LoadPointLimits, OnFailure, RampPlan};
pub use plan::{LOAD_POINTS_MAX, RATE_MAX, Rates, USERS_MAX, Users, UsersError};
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
    run_on(None, plan, options, scripts, hooks, live, stop)
}

/// Like [`run`], with the users of a fleet of hosts if there is one. `scripts` must match the fleet's workload.
pub fn run_on(
    fleet: Option<Fleet>,
    plan: &RampPlan,
    options: &SessionOptions,
    scripts: &(dyn Fn(u32) -> Box<dyn Script> + Sync),
    hooks: &mut dyn Hooks,
    live: &LiveFigures,
    stop: &StopFlag,
) -> Result<Vec<LoadPointResult>, EngineError> {
    let surroundings = Surroundings { hooks, live, stop };
    let users = UserSource { fleet, options, scripts };
    with_users(plan, plan.users.most(), users, surroundings, |engine| ramp(plan, engine))
}

/// Searches for the largest number of users that meets a criterion, or for the highest rate if the plan has rates. The
/// plan's settings apply to every load point that the search tries.
#[expect(clippy::too_many_arguments, reason = "the settings of a run and of the search")]
pub fn find_capacity(
    plan: &RampPlan,
    criterion: &Criterion,
    search: Search,
    fleet: Option<Fleet>,
    options: &SessionOptions,
    scripts: &(dyn Fn(u32) -> Box<dyn Script> + Sync),
    hooks: &mut dyn Hooks,
    live: &LiveFigures,
    stop: &StopFlag,
) -> Result<CapacityResult, EngineError> {
    criterion.check(scripts(0).operations())?;
    let surroundings = Surroundings { hooks, live, stop };
    let most = if plan.rates.is_empty() { search.most } else { plan.users.most() };
    let users = UserSource { fleet, options, scripts };
    with_users(plan, most, users, surroundings, |engine| capacity::search(engine, criterion, search))
}

/// Users of a fleet of hosts, or of this process without one.
struct UserSource<'a> {
    fleet: Option<Fleet>,
    options: &'a SessionOptions,
    scripts: Scripts<'a>,
}

fn with_users<R>(
    plan: &RampPlan,
    most: u32,
    users: UserSource<'_>,
    surroundings: Surroundings<'_>,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> Result<R, EngineError> {
    let UserSource { fleet, options, scripts } = users;
    if let Some(fleet) = fleet {
        return with_hosts(plan, fleet, options, scripts, surroundings, ramp);
    }
    let connector = ServerConnector::new(options, plan.connections_per_session, plan.seed);
    with_engine(plan, most, LocalUsers { connector, scripts, time: Time::Real }, surroundings, ramp)
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

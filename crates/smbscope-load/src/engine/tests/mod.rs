//! The engine on a mock of the server in simulated time: what comes out must be what arithmetic says.

mod capacity;
mod closed;
mod ends;
mod hosts;
mod jobs;
mod mock;
mod open;

use super::hooks::Surroundings;
use super::load::{Engine, with_engine};
use super::*;
use mock::{MockServer, Reads};
use result::Run;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A short plan for one worker, so that there is one clock.
fn plan(users: u32, seconds: u64) -> Plan {
    Plan {
        users: Users::one(users),
        warmup: Duration::ZERO,
        duration: Duration::from_secs(seconds),
        workers: NonZeroUsize::new(1),
        // All connect at once.
        connects: Connects { rate: 1e9, at_once: 1_000 },
        ..Plan::default()
    }
}

/// Runs the plan's load points.
fn runs(plan: &Plan, server: &MockServer, scripts: impl Fn(u32) -> Reads + Sync) -> Vec<Run> {
    with(plan, server, scripts, &mut (), |engine| ramp(plan, engine))
}

fn with<R>(
    plan: &Plan,
    server: &MockServer,
    scripts: impl Fn(u32) -> Reads + Sync,
    hooks: &mut dyn Hooks,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> R {
    let (live, stop) = (LiveFigures::default(), Stop::new());
    let surroundings = Surroundings { hooks, live: &live, stop: &stop };
    let scripts = |number| Box::new(scripts(number)) as Box<dyn Script>;
    with_engine(plan, plan.users.most(), server.clone(), &scripts, Time::Simulated, surroundings, ramp).unwrap()
}

/// The only load point of a plan.
fn run_one(plan: &Plan, server: &MockServer) -> Run {
    let seed = plan.seed;
    let mut runs = runs(plan, server, |number| Reads::new(seed, number));
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

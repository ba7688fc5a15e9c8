//! The engine on a mock server in simulated time. Expected values are computed by hand.

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
use result::LoadPointResult;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A short plan with one worker, so that there is one clock.
fn plan(users: u32, seconds: u64) -> RampPlan {
    RampPlan {
        users: Users::one(users),
        warmup: Duration::ZERO,
        duration: Duration::from_secs(seconds),
        workers: NonZeroUsize::new(1),
        // All connect at once.
        connects: Connects { rate: 1e9, at_once: 1_000 },
        ..RampPlan::default()
    }
}

fn runs(plan: &RampPlan, server: &MockServer, scripts: impl Fn(u32) -> Reads + Sync) -> Vec<LoadPointResult> {
    with(plan, server, scripts, &mut (), |engine| ramp(plan, engine))
}

fn with<R>(
    plan: &RampPlan,
    server: &MockServer,
    scripts: impl Fn(u32) -> Reads + Sync,
    hooks: &mut dyn Hooks,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> R {
    let (live, stop) = (LiveFigures::default(), StopFlag::new());
    let surroundings = Surroundings { hooks, live: &live, stop: &stop };
    let scripts = |number| Box::new(scripts(number)) as Box<dyn Script>;
    with_engine(plan, plan.users.most(), server.clone(), &scripts, Time::Simulated, surroundings, ramp).unwrap()
}

fn run_one(plan: &RampPlan, server: &MockServer) -> LoadPointResult {
    let seed = plan.seed;
    let mut runs = runs(plan, server, |number| Reads::new(seed, number));
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

//! Progress of a run: position in the ramp, counts since the last update, finished load points.

use smbscope_load::{engine, prepare};
use smbscope_report::bench;
use std::thread;
use std::time::{Duration, Instant};

/// Observes a run on the thread that called it. Errors of the display must not end the measurement, so there are none
/// to return.
pub trait BenchObserver {
    /// Called while the workload's files are created, before the first load point.
    fn preparing(&mut self, made: &prepare::PrepareProgress) {
        let _ = made;
    }

    /// Called about once per second.
    fn update(&mut self, snapshot: RampSnapshot) {
        let _ = snapshot;
    }

    fn point_done(&mut self, run: &bench::BenchRun) {
        let _ = run;
    }

    /// Called with a message that the user should see immediately.
    fn note(&mut self, text: &str) {
        let _ = text;
    }

    /// Waits until then, or until the user wants to stop.
    fn wait(&mut self, until: Instant) -> Wish {
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Wish::GoOn
    }
}

impl BenchObserver for () {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    GoOn,
    /// End the load point early and keep its measurements.
    Stop,
}

/// The part of the display that stays the same throughout the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heading {
    /// Example: `netbench-like`.
    pub workload: String,
    /// Example: `smb://share@127.0.0.1:14450/share, SMB 3.1.1`.
    pub target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RampPosition {
    pub number: u32,
    /// Number of load points. `None` during a capacity search.
    pub of: Option<u32>,
    pub users: u32,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RampSnapshot {
    pub point: RampPosition,
    /// Time until the phase ends and its whole length, if known.
    pub remaining: Option<(Duration, Duration)>,
    pub live: engine::EngineSnapshot,
    pub cpu: Option<Cpu>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    pub percent: f64,
    /// Of the busiest thread, in percent of one core.
    pub busiest_percent: f64,
    pub limited: bool,
}

impl RampSnapshot {
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.live.over.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }
}

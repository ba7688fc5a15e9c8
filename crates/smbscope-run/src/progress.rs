//! What a run tells whoever watches it: where it is, what happened since the last time, what came out of a load point.

use smbscope_load::{engine, prepare};
use smbscope_report::bench;
use std::thread;
use std::time::{Duration, Instant};

/// Watches a run, on the thread that called it. What goes wrong with showing is no reason to lose a measurement.
pub trait BenchObserver {
    /// Before the first load point: so far the workload's files are made.
    fn preparing(&mut self, made: &prepare::PrepareProgress) {
        let _ = made;
    }

    /// What happened since the last time.
    fn update(&mut self, snapshot: RampSnapshot) {
        let _ = snapshot;
    }

    /// A load point is over.
    fn point_done(&mut self, run: &bench::BenchRun) {
        let _ = run;
    }

    /// Something that is to be known at once.
    fn note(&mut self, text: &str) {
        let _ = text;
    }

    /// Waits until then, or until the user wants to stop.
    fn wait(&mut self, until: Instant) -> Wish {
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Wish::GoOn
    }
}

/// Nobody watches.
impl BenchObserver for () {}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To go on.
    GoOn,
    /// To end the load point and keep what was measured.
    Stop,
}

/// What does not change while users work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heading {
    /// `netbench-like`
    pub workload: String,
    /// `127.0.0.1:14450, share share, SMB 3.1.1`
    pub target: String,
}

/// Where in the ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RampPosition {
    /// Counted from 1.
    pub number: u32,
    /// How many there will be; absent where capacity is searched.
    pub of: Option<u32>,
    /// Users that it is to have.
    pub users: u32,
}

/// What happened since the last snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RampSnapshot {
    /// Where in the ramp.
    pub point: RampPosition,
    /// Until the phase ends, and its whole length, where they are known.
    pub remaining: Option<(Duration, Duration)>,
    /// What the engine does, and what it counted.
    pub live: engine::EngineSnapshot,
    /// What the client itself costs, where known.
    pub cpu: Option<Cpu>,
}

/// Processor time of the client since the last snapshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    /// In percent of one processor.
    pub percent: f64,
    /// Of the busiest thread.
    pub busiest_percent: f64,
    /// The client is the limit.
    pub limited: bool,
}

impl RampSnapshot {
    /// So many a second.
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.live.over.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }
}

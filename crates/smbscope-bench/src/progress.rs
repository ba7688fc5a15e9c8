//! What a run tells whoever watches it: where it is, what happened since the last time, what came out of a load point.

use smbscope_model::{Group, Nanos};
use smbscope_report::bench;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Watches a run, on the thread that called it. What goes wrong with showing is no reason to lose a measurement.
pub trait Progress {
    /// What happened since the last time.
    fn update(&mut self, snapshot: Snapshot) {
        let _ = snapshot;
    }

    /// A load point is over.
    fn point_done(&mut self, run: &bench::Run) {
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
impl Progress for () {}

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

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// Files are being made, or something else before the first load point: what, in words.
    Preparing(String),
    /// Sessions are being made.
    Connecting,
    /// Users work, and nothing is counted yet.
    WarmUp,
    /// Users work, and it counts.
    Measuring,
    /// Users finish what is under way.
    Ending,
    /// Between load points, and after the last.
    #[default]
    Idle,
}

/// Where in the ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Point {
    /// Counted from 1.
    pub number: u32,
    /// How many there will be; absent where capacity is searched.
    pub of: Option<u32>,
    /// Users that it is to have.
    pub users: u32,
}

/// What happened since the last snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// What is going on.
    pub phase: Phase,
    /// Where in the ramp.
    pub point: Point,
    /// Until the phase ends, and its whole length, where they are known.
    pub remaining: Option<(Duration, Duration)>,
    /// Users with a session.
    pub connected: u32,
    /// Time since the last snapshot.
    pub over: Duration,
    /// Commands answered.
    pub commands: u64,
    /// Those of them with an error status.
    pub errors: u64,
    /// Operations that did not end as the workload expects.
    pub unexpected: u64,
    /// Errors by status; of very many kinds, not all.
    pub statuses: BTreeMap<String, u64>,
    /// Sessions that could not be made or broke.
    pub failures: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Median response time of all commands but waits by design.
    pub p50: Option<Nanos>,
    /// 95th percentile of the same.
    pub p95: Option<Nanos>,
    /// Groups of which commands were answered, in the order of the report.
    pub groups: Vec<GroupFigures>,
    /// What the client itself costs, where known.
    pub cpu: Option<Cpu>,
}

/// A group since the last snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupFigures {
    /// Which.
    pub group: Group,
    /// Commands answered.
    pub commands: u64,
    /// Median response time.
    pub p50: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
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

impl Snapshot {
    /// So many a second.
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.over.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// The phase in words: `measuring`.
    pub fn phase_name(&self) -> &str {
        match &self.phase {
            Phase::Preparing(what) => what,
            Phase::Connecting => "connecting",
            Phase::WarmUp => "warm-up",
            Phase::Measuring => "measuring",
            Phase::Ending => "ending",
            Phase::Idle => "between load points",
        }
    }
}

//! What there is to show while users work, without how.

use smbscope_model::{Group, Nanos};
use smbscope_report::bench;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Intervals that are remembered: ten minutes of seconds, more than any terminal is wide.
const HISTORY_MAX: usize = 600;

/// Kinds of errors that are told apart.
const STATUSES_MAX: usize = 64;

/// What does not change while users work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Heading {
    /// `netbench-like`
    pub(crate) workload: String,
    /// `127.0.0.1:14450, share share, SMB 3.1.1`
    pub(crate) target: String,
}

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Phase {
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
pub(crate) struct Point {
    /// Counted from 1.
    pub(crate) number: u32,
    /// How many there will be; absent where capacity is searched.
    pub(crate) of: Option<u32>,
    /// Users that it is to have.
    pub(crate) users: u32,
}

/// What happened since the last snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Snapshot {
    /// What is going on.
    pub(crate) phase: Phase,
    /// Where in the ramp.
    pub(crate) point: Point,
    /// Until the phase ends, and its whole length, where they are known.
    pub(crate) remaining: Option<(Duration, Duration)>,
    /// Users with a session.
    pub(crate) connected: u32,
    /// Time since the last snapshot.
    pub(crate) over: Duration,
    /// Commands answered.
    pub(crate) commands: u64,
    /// Those of them with an error status.
    pub(crate) errors: u64,
    /// Operations that did not end as the workload expects.
    pub(crate) unexpected: u64,
    /// Errors by status; of very many kinds, not all.
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Sessions that could not be made or broke.
    pub(crate) failures: u64,
    /// Bytes read.
    pub(crate) bytes_read: u64,
    /// Bytes written.
    pub(crate) bytes_written: u64,
    /// Median response time of all commands but waits by design.
    pub(crate) p50: Option<Nanos>,
    /// 95th percentile of the same.
    pub(crate) p95: Option<Nanos>,
    /// Groups of which commands were answered, in the order of the report.
    pub(crate) groups: Vec<GroupFigures>,
    /// What the client itself costs, where known.
    pub(crate) cpu: Option<Cpu>,
}

/// A group since the last snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupFigures {
    /// Which.
    pub(crate) group: Group,
    /// Commands answered.
    pub(crate) commands: u64,
    /// Median response time.
    pub(crate) p50: Option<Nanos>,
    /// 95th percentile.
    pub(crate) p95: Option<Nanos>,
    /// 99th percentile.
    pub(crate) p99: Option<Nanos>,
}

/// Processor time of the client since the last snapshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cpu {
    /// In percent of one processor.
    pub(crate) percent: f64,
    /// Of the busiest thread.
    pub(crate) busiest_percent: f64,
    /// The client is the limit.
    pub(crate) limited: bool,
}

/// What came out of a load point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Finished {
    /// Its users.
    pub(crate) users: u32,
    /// Commands a second.
    pub(crate) per_second: f64,
    /// Median response time.
    pub(crate) p50: Option<Nanos>,
    /// 95th percentile.
    pub(crate) p95: Option<Nanos>,
    /// Error responses.
    pub(crate) errors: u64,
    /// Operations that did not end as the workload expects.
    pub(crate) unexpected: u64,
    /// The client was the limit.
    pub(crate) limited: bool,
}

impl Finished {
    /// In short.
    pub(crate) fn of(run: &bench::Run) -> Finished {
        Finished {
            users: run.users,
            per_second: run.operations_per_second,
            p50: run.headline().p50,
            p95: run.headline().p95,
            errors: run.error_count(),
            unexpected: run.unexpected_count(),
            limited: run.client_cpu.is_some_and(|cpu| cpu.limited),
        }
    }
}

/// Everything that is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct State {
    pub(crate) heading: Heading,
    pub(crate) now: Snapshot,
    /// Commands a second and the 95th percentile of each snapshot, the newest last.
    pub(crate) history: VecDeque<(f64, Option<Nanos>)>,
    /// Error responses since the load point began.
    pub(crate) errors: u64,
    /// Operations since then that did not end as the workload expects.
    pub(crate) unexpected: u64,
    /// The errors by status.
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Sessions that failed since the load point began.
    pub(crate) failures: u64,
    /// Load points that are done.
    pub(crate) finished: Vec<Finished>,
}

impl State {
    pub(crate) fn new(heading: Heading) -> State {
        State { heading, ..State::default() }
    }

    /// Takes what happened since the last time.
    pub(crate) fn update(&mut self, snapshot: Snapshot) {
        if snapshot.point.number != self.now.point.number {
            (self.errors, self.unexpected, self.failures) = (0, 0, 0);
            self.statuses.clear();
        }
        self.errors += snapshot.errors;
        self.unexpected += snapshot.unexpected;
        self.failures += snapshot.failures;
        for (status, count) in &snapshot.statuses {
            if self.statuses.len() < STATUSES_MAX || self.statuses.contains_key(status) {
                *self.statuses.entry(status.clone()).or_default() += count;
            }
        }
        if matches!(snapshot.phase, Phase::WarmUp | Phase::Measuring) {
            if self.history.len() == HISTORY_MAX {
                self.history.pop_front();
            }
            self.history.push_back((snapshot.per_second(snapshot.commands), snapshot.p95));
        }
        self.now = snapshot;
    }

    /// Takes what came out of a load point.
    pub(crate) fn finish(&mut self, finished: Finished) {
        self.finished.push(finished);
    }

    /// Statuses by how often they came, the most frequent first.
    pub(crate) fn top_statuses(&self) -> Vec<(&str, u64)> {
        let mut found: Vec<(&str, u64)> =
            self.statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        found
    }
}

impl Snapshot {
    /// So many a second.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        let seconds = self.over.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// The phase in words: `measuring`.
    pub(crate) fn phase_name(&self) -> &str {
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

/// A rate with as many decimals as a small number needs.
pub(super) fn rate(per_second: f64) -> String {
    if per_second < 99.95 {
        return format!("{per_second:.1}");
    }
    let digits = format!("{per_second:.0}");
    let mut result = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    result
}

/// Whether errors are a part of what the workload does: ` (none unexpected)`; nothing where there are none.
pub(super) fn of_them(errors: u64, unexpected: u64) -> String {
    match (errors, unexpected) {
        (0, 0) => String::new(),
        (_, 0) => " (none unexpected)".to_owned(),
        (_, 1) => " (1 operation unexpected)".to_owned(),
        (_, n) => format!(" ({n} operations unexpected)"),
    }
}

/// A duration in at most six characters, as in the report: `1.43ms`; `-` when absent.
pub(super) fn compact(time: Option<Nanos>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string().replace(' ', ""))
}

//! What there is to show while users work, without how.

use smbscope_load::engine::EnginePhase;
use smbscope_load::prepare;
use smbscope_model::Nanos;
use smbscope_report::bench;
use smbscope_run::progress::{Heading, RampSnapshot};
use std::collections::{BTreeMap, VecDeque};

/// Intervals that are remembered: ten minutes of seconds, more than any terminal is wide.
const HISTORY_MAX: usize = 600;

/// Kinds of errors that are listed.
const STATUSES_MAX: usize = 64;

/// What came out of a load point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FinishedLoadPoint {
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

impl FinishedLoadPoint {
    /// In short.
    pub(crate) fn from_run(run: &bench::BenchRun) -> FinishedLoadPoint {
        FinishedLoadPoint {
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
pub(crate) struct DashboardState {
    pub(crate) heading: Heading,
    /// Before the first load point: what is being made.
    pub(crate) preparing: Option<String>,
    pub(crate) now: RampSnapshot,
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
    pub(crate) finished: Vec<FinishedLoadPoint>,
}

impl DashboardState {
    pub(crate) fn new(heading: Heading) -> DashboardState {
        DashboardState { heading, ..DashboardState::default() }
    }

    /// Takes what happened since the last time.
    pub(crate) fn update(&mut self, snapshot: RampSnapshot) {
        if snapshot.point.number != self.now.point.number {
            (self.errors, self.unexpected, self.failures) = (0, 0, 0);
            self.statuses.clear();
        }
        let live = &snapshot.live;
        self.errors += live.errors;
        self.unexpected += live.unexpected;
        self.failures += live.failures;
        for (status, count) in &live.statuses {
            let status = status.to_string();
            if self.statuses.len() < STATUSES_MAX || self.statuses.contains_key(&status) {
                *self.statuses.entry(status).or_default() += count;
            }
        }
        if matches!(live.phase, EnginePhase::Warmup | EnginePhase::Measuring) {
            if self.history.len() == HISTORY_MAX {
                self.history.pop_front();
            }
            self.history.push_back((snapshot.per_second(live.commands), live.p95));
        }
        self.preparing = None;
        self.now = snapshot;
    }

    /// Takes how far the workload's files are made.
    pub(crate) fn prepare(&mut self, made: &prepare::PrepareProgress) {
        self.preparing = Some(format!("file {} of {}", made.files, made.of_files));
    }

    /// What is going on, in words: `measuring`.
    pub(crate) fn phase_name(&self) -> &str {
        match &self.preparing {
            Some(what) => what,
            None => phase_name(self.now.live.phase),
        }
    }

    /// Takes what came out of a load point.
    pub(crate) fn finish(&mut self, finished: FinishedLoadPoint) {
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

/// The phase in words: `measuring`.
pub(super) fn phase_name(phase: EnginePhase) -> &'static str {
    match phase {
        EnginePhase::Connecting => "connecting",
        EnginePhase::Warmup => "warm-up",
        EnginePhase::Measuring => "measuring",
        EnginePhase::Ending => "ending",
        EnginePhase::Idle => "between load points",
    }
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

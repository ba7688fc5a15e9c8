//! Content of the progress display.

use smbscope_load::engine::EnginePhase;
use smbscope_load::prepare;
use smbscope_model::Nanos;
use smbscope_report::bench;
use smbscope_run::progress::{Heading, RampSnapshot};
use std::collections::{BTreeMap, VecDeque};

/// Intervals kept: ten minutes of seconds, more than the width of any terminal.
const HISTORY_MAX: usize = 600;

const STATUSES_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FinishedLoadPoint {
    pub(crate) users: u32,
    pub(crate) per_second: f64,
    pub(crate) p50: Option<Nanos>,
    pub(crate) p95: Option<Nanos>,
    pub(crate) errors: u64,
    /// Operations with an unexpected result.
    pub(crate) unexpected: u64,
    /// The client limited the load.
    pub(crate) limited: bool,
}

impl FinishedLoadPoint {
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

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DashboardState {
    pub(crate) heading: Heading,
    pub(crate) preparing: Option<String>,
    pub(crate) now: RampSnapshot,
    /// Commands per second and p95 of each snapshot, newest last.
    pub(crate) history: VecDeque<(f64, Option<Nanos>)>,
    pub(crate) errors: u64,
    /// Operations of this load point with an unexpected result.
    pub(crate) unexpected: u64,
    pub(crate) statuses: BTreeMap<String, u64>,
    pub(crate) failures: u64,
    pub(crate) finished: Vec<FinishedLoadPoint>,
}

impl DashboardState {
    pub(crate) fn new(heading: Heading) -> DashboardState {
        DashboardState { heading, ..DashboardState::default() }
    }

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

    pub(crate) fn prepare(&mut self, made: &prepare::PrepareProgress) {
        self.preparing = Some(format!("file {} of {}", made.files, made.of_files));
    }

    pub(crate) fn phase_name(&self) -> &str {
        match &self.preparing {
            Some(what) => what,
            None => phase_name(self.now.live.phase),
        }
    }

    pub(crate) fn finish(&mut self, finished: FinishedLoadPoint) {
        self.finished.push(finished);
    }

    /// Returns statuses with their counts, most frequent first.
    pub(crate) fn top_statuses(&self) -> Vec<(&str, u64)> {
        let mut found: Vec<(&str, u64)> =
            self.statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        found
    }
}

pub(super) fn phase_name(phase: EnginePhase) -> &'static str {
    match phase {
        EnginePhase::Connecting => "connecting",
        EnginePhase::Warmup => "warm-up",
        EnginePhase::Measuring => "measuring",
        EnginePhase::Ending => "ending",
        EnginePhase::Idle => "between load points",
    }
}

/// Returns e.g. ` (none unexpected)` to follow a number of errors, or nothing without errors.
pub(super) fn of_them(errors: u64, unexpected: u64) -> String {
    match (errors, unexpected) {
        (0, 0) => String::new(),
        (_, 0) => " (none unexpected)".to_owned(),
        (_, 1) => " (1 operation unexpected)".to_owned(),
        (_, n) => format!(" ({n} operations unexpected)"),
    }
}

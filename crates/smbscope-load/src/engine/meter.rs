//! Tracks the start and end of the measured part, and the processor time that it costs.

use super::cpu::ProcessTime;
use super::hooks::Surroundings;
use super::live_figures::EnginePhase;
use super::recorder::MeasurementWindow;
use std::time::{Duration, Instant};

/// Interval at which the [`StopFlag`](super::StopFlag) is checked.
pub(super) const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Meter {
    users: u32,
    window: MeasurementWindow,
    phase: EnginePhase,
    began: Option<ProcessTime>,
    used: Option<ProcessTime>,
}

impl Meter {
    pub(super) fn new(users: u32, window: MeasurementWindow) -> Meter {
        Meter { users, window, phase: EnginePhase::Warmup, began: None, used: None }
    }

    pub(super) fn wait(&self) -> Duration {
        let next = match self.phase {
            EnginePhase::Warmup => self.window.start,
            EnginePhase::Measuring => self.window.end,
            _ => return LOOK,
        };
        next.saturating_duration_since(Instant::now()).min(LOOK)
    }

    pub(super) fn look(&mut self, surroundings: &mut Surroundings<'_>, over: bool) {
        let now = Instant::now();
        if self.phase == EnginePhase::Warmup && now >= self.window.start {
            self.phase = EnginePhase::Measuring;
            self.began = Some(ProcessTime::now());
            surroundings.live.enter(self.phase, self.users);
            surroundings.hooks.measuring_begins();
        }
        if matches!(self.phase, EnginePhase::Warmup | EnginePhase::Measuring) && (over || now >= self.window.end) {
            self.used = self.began.map(|began| ProcessTime::now().since(began));
            self.phase = EnginePhase::Ending;
            surroundings.live.enter(self.phase, self.users);
        }
    }

    /// Returns the processor time of the measured part, which may have been cut short.
    pub(super) fn finish(mut self, surroundings: &mut Surroundings<'_>) -> ProcessTime {
        self.look(surroundings, true);
        if self.began.is_some() {
            surroundings.hooks.measuring_ends();
        }
        self.used.unwrap_or_default()
    }
}

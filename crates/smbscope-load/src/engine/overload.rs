//! Overload: the share of scenarios that were too slow for their users, by which FSCT says how many users a server carries.
//!
//! A scenario is an operation of an open loop: it is due, whatever became of the one before. It is overload when it began late,
//! since its user still worked on the scenario before; when it took longer than its budget; or when it never began. What was
//! due in the measured part counts.

use super::recorder::MeasurementWindow;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadLimits {
    /// How late a scenario may begin.
    pub late: Duration,
    /// How long it may take from its first request to its last response; without a limit where it is absent.
    pub budget: Option<Duration>,
}

/// The scenarios of a load point, and those that were too slow; each is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadTally {
    /// What is too slow.
    pub limits: OverloadLimits,
    /// Scenarios that were due.
    pub scenarios: u64,
    /// They began late.
    pub late: u64,
    /// They began in time, and took longer than their budget, or had no end.
    pub exceeded: u64,
    /// They did not begin until the end.
    pub not_begun: u64,
}

impl OverloadTally {
    pub(crate) fn new(limits: OverloadLimits) -> OverloadTally {
        OverloadTally { limits, scenarios: 0, late: 0, exceeded: 0, not_begun: 0 }
    }

    /// The share of scenarios that were too slow; none where none were due.
    pub fn share(&self) -> f64 {
        (self.late + self.exceeded + self.not_begun) as f64 / self.scenarios.max(1) as f64
    }

    /// A scenario was completed.
    pub(crate) fn completed(&mut self, intended: Instant, (first, last): (Instant, Instant)) {
        self.scenarios += 1;
        let OverloadLimits { late, budget } = self.limits;
        if first.saturating_duration_since(intended) > late {
            self.late += 1;
        } else if budget.is_some_and(|budget| last.saturating_duration_since(first) > budget) {
            self.exceeded += 1;
        }
    }

    /// A scenario was abandoned that waited for an answer since then.
    pub(crate) fn given_up(&mut self, since: Instant, window: &MeasurementWindow) {
        let counts = u64::from(window.contains(since));
        self.scenarios += counts;
        self.exceeded += counts;
    }

    /// Scenarios were due and did not begin.
    pub(crate) fn not_begun(&mut self, scenarios: u64) {
        self.scenarios += scenarios;
        self.not_begun += scenarios;
    }

    /// Adds those of another worker.
    pub(crate) fn merge(&mut self, other: &OverloadTally) {
        self.scenarios += other.scenarios;
        self.late += other.late;
        self.exceeded += other.exceeded;
        self.not_begun += other.not_begun;
    }
}

//! Overload: the share of scenarios that were too slow for their users, by which FSCT rates the number of users that a
//! server supports.
//!
//! A scenario is an operation of an open loop, due regardless of the previous one. It is overload if it started late
//! because its user was still working on the previous scenario, if it took longer than its budget, or if it never
//! started. Scenarios that were due in the measured part count.

use super::recorder::MeasurementWindow;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadLimits {
    pub late: Duration,
    /// Maximum time from first request to last response; `None` for unlimited.
    pub budget: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadTally {
    pub limits: OverloadLimits,
    pub scenarios: u64,
    pub late: u64,
    /// Started in time but exceeded the budget, or never completed.
    pub exceeded: u64,
    pub not_begun: u64,
}

impl OverloadTally {
    pub(crate) fn new(limits: OverloadLimits) -> OverloadTally {
        OverloadTally { limits, scenarios: 0, late: 0, exceeded: 0, not_begun: 0 }
    }

    /// Returns the share of scenarios that were too slow, 0 to 1. Returns 0 if none were due.
    pub fn share(&self) -> f64 {
        (self.late + self.exceeded + self.not_begun) as f64 / self.scenarios.max(1) as f64
    }

    pub(crate) fn completed(&mut self, intended: Instant, (first, last): (Instant, Instant)) {
        self.scenarios += 1;
        let OverloadLimits { late, budget } = self.limits;
        if first.saturating_duration_since(intended) > late {
            self.late += 1;
        } else if budget.is_some_and(|budget| last.saturating_duration_since(first) > budget) {
            self.exceeded += 1;
        }
    }

    pub(crate) fn given_up(&mut self, since: Instant, window: &MeasurementWindow) {
        let counts = u64::from(window.contains(since));
        self.scenarios += counts;
        self.exceeded += counts;
    }

    pub(crate) fn not_begun(&mut self, scenarios: u64) {
        self.scenarios += scenarios;
        self.not_begun += scenarios;
    }

    pub(crate) fn merge(&mut self, other: &OverloadTally) {
        self.scenarios += other.scenarios;
        self.late += other.late;
        self.exceeded += other.exceeded;
        self.not_begun += other.not_begun;
    }
}

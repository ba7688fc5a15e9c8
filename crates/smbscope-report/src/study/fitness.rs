//! Load points that don't show what the study asks, because something disturbed them.
//!
//! The rule: a run of one load point that is unfit is repeated once, and the repetition counts instead. A load point
//! that is unfit then, or one of a ramp, is left out of all figures, unless most are: a reason that holds in most
//! repetitions of a variant (of other load and a stopped client: in most of the study) is a property of the variant (or
//! of the machine), and stays. All are counted and named.

use super::UnfitReason;
use crate::bench::{BenchRun, ScheduleAdherence};
use smbscope_model::Nanos;
use smbscope_stats::Measure;

/// CPU time of other programs before or after a run from which the run is unfit, in percent of all processors.
const OTHER_LOAD_PERCENT: f64 = 25.0;
/// Wake-up delay of the client from which it was stopped: 1 s.
const STOPPED: Nanos = Nanos(1_000_000_000);
/// Percentage of arrivals that never began, and of scenarios that were overloaded, from which a load point is unfit.
const MISSED_PERCENT: f64 = 1.0;

impl UnfitReason {
    /// Returns the reason as a clause.
    pub fn words(self) -> &'static str {
        match self {
            UnfitReason::OtherLoad => "other programs used the processors of this machine",
            UnfitReason::ClientStopped => "the client was stopped",
            UnfitReason::Stall => "the server stalled",
            UnfitReason::Errors => "operations failed",
            UnfitReason::MissedArrivals => "operations that were due never began",
            UnfitReason::Overload => "scenarios were overloaded",
        }
    }

    /// True if the reason has nothing to do with the variant.
    pub(super) fn is_of_machine(self) -> bool {
        matches!(self, UnfitReason::OtherLoad | UnfitReason::ClientStopped)
    }
}

/// Returns why a load point is unfit. What the study measures (errors, overload) is a result.
pub fn unfit_reasons(run: &BenchRun, other_load: Option<f64>, measures: &[Measure]) -> Vec<UnfitReason> {
    let measures_errors = measures.iter().any(|measure| matches!(measure, Measure::Errors | Measure::ErrorsOf(_)));
    let measures_overload = measures.contains(&Measure::Overload);
    let missed = match run.pace {
        ScheduleAdherence::Open { rate, not_begun, .. } => {
            let due = rate * run.duration_ns.as_secs_f64();
            due > 0.0 && 100.0 * not_begun as f64 / due >= MISSED_PERCENT
        }
        ScheduleAdherence::Closed => false,
    };
    let late = run.client_cpu.and_then(|cpu| cpu.late_max_ns);
    let overloaded = run.overload.is_some_and(|overload| overload.percent >= MISSED_PERCENT);
    let reasons = [
        (UnfitReason::OtherLoad, other_load.is_some_and(|percent| percent >= OTHER_LOAD_PERCENT)),
        (UnfitReason::ClientStopped, late.is_some_and(|late| late >= STOPPED)),
        (UnfitReason::Stall, !run.stalls.is_empty()),
        (UnfitReason::Errors, run.unexpected_count() > 0 && !measures_errors),
        (UnfitReason::MissedArrivals, missed && !measures_overload),
        (UnfitReason::Overload, overloaded && !measures_overload),
    ];
    reasons.into_iter().filter_map(|(reason, holds)| holds.then_some(reason)).collect()
}

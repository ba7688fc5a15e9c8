//! Load points that don't show what the study asks, because something disturbed them.
//!
//! The rule: a run of one load point that is unfit is repeated once, and the repetition counts instead. A load point
//! that is unfit then, or one of a ramp, is left out of all figures, unless most are: a reason that holds in most
//! repetitions of a variant (of other load and a stopped client: in most of the study) is a property of the variant (or
//! of the machine), and stays. All are counted and named.

use super::results::{Results, StudyLoadKey};
use super::{UnfitPoint, UnfitReason};
use crate::bench::{BenchRun, ScheduleAdherence};
use crate::format::{counted, share};
use smbscope_model::Nanos;
use smbscope_stats::Measure;
use std::collections::{BTreeMap, BTreeSet};

/// CPU time of other programs before or after a run from which the run is unfit, in percent of all processors.
pub const OTHER_LOAD_PERCENT: f64 = 25.0;
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
    fn is_of_machine(self) -> bool {
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

/// A load of a variant in a repetition.
pub(super) type LoadPointKey = (StudyLoadKey, usize, u32);

impl Results {
    /// Applies the rule of this module.
    pub fn unfit(&self) -> Vec<UnfitPoint> {
        let reasons = || self.unfit.iter().flat_map(|(key, reasons)| reasons.iter().map(move |reason| (*key, *reason)));
        let mut of_variant: BTreeMap<(StudyLoadKey, usize, UnfitReason), u64> = BTreeMap::new();
        let mut of_study: BTreeMap<UnfitReason, u64> = BTreeMap::new();
        for ((load, variant, _), reason) in reasons() {
            *of_variant.entry((load, variant, reason)).or_default() += 1;
            *of_study.entry(reason).or_default() += 1;
        }
        let is_usual = |(load, variant, _): LoadPointKey, reason: UnfitReason| match reason.is_of_machine() {
            true => 2 * of_study[&reason] > self.points,
            false => {
                let points = self.points_of.get(&(load, variant)).copied().unwrap_or(0);
                2 * of_variant[&(load, variant, reason)] > points
            }
        };
        let point = |(key, reason): (LoadPointKey, UnfitReason)| {
            let ((users, rate), variant, repetition) = key;
            let rate = rate.map(f64::from_bits);
            UnfitPoint { variant, repetition, users, rate, reason, left_out: !is_usual(key, reason) }
        };
        reasons().map(point).collect()
    }

    pub(super) fn left_out(&self) -> BTreeSet<LoadPointKey> {
        let points = self.unfit().into_iter().filter(|point| point.left_out);
        points.map(|point| ((point.users, point.rate.map(f64::to_bits)), point.variant, point.repetition)).collect()
    }

    /// Says how many load points were left out, and how many unfit ones were kept, by reason.
    pub(super) fn unfit_warnings(&self, names: &[&str]) -> Vec<String> {
        let mut counts: BTreeMap<(bool, UnfitReason), BTreeMap<usize, u64>> = BTreeMap::new();
        for UnfitPoint { variant, reason, left_out, .. } in self.unfit() {
            *counts.entry((left_out, reason)).or_default().entry(variant).or_default() += 1;
        }
        let of = counted(self.points, "load point", "load points");
        let sentence = |((left_out, reason), variants): ((bool, UnfitReason), BTreeMap<usize, u64>)| {
            let count: u64 = variants.values().sum();
            let percent = share(count, self.points);
            let words = reason.words();
            let named = variants.keys().filter_map(|variant| names.get(*variant).copied()).collect::<Vec<_>>();
            let named = match named.len() {
                1..=3 if named.len() < names.len() => format!(" ({})", named.join("; ")),
                _ => String::new(),
            };
            match (left_out, reason.is_of_machine()) {
                (true, _) => format!("Left out: {count} of {of}{named}, because {words}."),
                (false, true) => format!(
                    "In {count} of {of} ({percent:.0}%), {words}. So many are kept: repeat the study on an idle machine."
                ),
                (false, false) => {
                    format!(
                        "In {count} of {of}{named}, {words}. They are kept: it happens in most runs of the variant."
                    )
                }
            }
        };
        counts.into_iter().map(sentence).collect()
    }
}

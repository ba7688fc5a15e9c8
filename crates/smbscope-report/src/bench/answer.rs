//! Answers of a load point, as `smbscope-diagnose` derives them from the client's measurements, and of the whole ramp.

use super::{BenchDocument, BenchRun, headline, next};
use crate::json::entries::GroupEntry as Counted;
use crate::{Answer, Culprit};
use smbscope_diagnose::LoadPointFacts;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::DurationStatistics;

pub(super) fn of_load_point(run: &BenchRun) -> Option<Answer> {
    let times = &run.total.client;
    let counted: Vec<&Counted> =
        run.counted.iter().flat_map(|counted| &counted.groups).filter(|group| group.headline).collect();
    let sum = |part: fn(&Counted) -> &DurationStatistics| {
        let sums = counted.iter().map(|group| part(group));
        Nanos::saturating(
            sums.map(|times| i128::from(times.mean.map_or(0, |mean| mean.0)) * i128::from(times.count)).sum(),
        )
    };
    let point = LoadPointFacts {
        median: times.p50,
        p95: times.p95,
        longest: times.max?,
        groups: CommandGroup::ALL
            .into_iter()
            .filter_map(|group| Some((group, run.group(group.name())?.times.client.p95?)))
            .collect(),
        request_transfer: sum(|group| &group.row.request_transfer),
        service: sum(|group| &group.row.service_time),
        response_transfer: sum(|group| &group.row.response_transfer),
        client_limited: run.client_cpu.filter(|cpu| cpu.limited).map(|cpu| cpu.busiest_percent),
    };
    Some(point.answer())
}

/// Returns the answer of a ramp, with the culprit of the load point shown in detail, or `capture` if the run failed.
pub(super) fn of_ramp(document: &BenchDocument) -> Answer {
    let point = document.shown().and_then(|run| run.answer.as_ref());
    let culprit = match document.failure() {
        Some(_) => Culprit::Capture,
        None => point.map_or(Culprit::Capture, |answer| answer.culprit),
    };
    Answer { culprit, headline: headline::sentence(document), next: next::steps(document), ..Answer::default() }
}

//! Table of jobs, complete passes of the workload, by load point.

use crate::bench::{BenchDocument, BenchRun, JobStatistics};
use crate::format::{counted, or_dash, percent, rate, thousands};
use crate::text::page::TextPage;
use crate::text::table::{TextColumn, TextTable, TextTableLine};

pub(super) fn render(page: &mut TextPage, document: &BenchDocument) {
    let found = |run: &BenchRun| run.jobs.clone().filter(|jobs| jobs.elapsed.count > 0);
    let mut runs: Vec<(&BenchRun, JobStatistics)> =
        document.runs.iter().filter_map(|run| Some((run, found(run)?))).collect();
    if runs.is_empty() {
        return;
    }
    runs.sort_by(|(a, _), (b, _)| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let unfinished: u64 = runs.iter().map(|(_, jobs)| jobs.unfinished).sum();
    let lines = runs.iter().map(|(run, jobs)| TextTableLine::new(document.load_name(run), cells(jobs)));
    let columns = TextColumn::list(&[
        ("Count", 0),
        ("Average", 0),
        ("StdDev", 0),
        ("Fastest", 1),
        ("Slowest", 0),
        ("Files/s", 3),
        ("MB/s", 2),
        ("Wait share", 0),
    ]);
    let left_out = TextTable::new(columns).section("Jobs", lines).render(page);
    let mut text =
        "A job is a whole pass of the workload, from its first request to its last response; rates are of one \
                    job. Wait share: the part of its time in which a command was outstanding."
            .to_owned();
    if unfinished > 0 {
        text += &format!(" {} not finished, and not counted.", counted(unfinished, "job was", "jobs were"));
    }
    page.note(&text, &left_out);
}

fn cells(jobs: &JobStatistics) -> Vec<String> {
    let elapsed = &jobs.elapsed;
    let figure = |value: Option<f64>, shown: fn(f64) -> String| value.map_or_else(String::new, shown);
    let nanos = |time: smbscope_model::Nanos| u64::try_from(time.0).unwrap_or(0);
    vec![
        thousands(elapsed.count),
        or_dash(elapsed.mean),
        or_dash(elapsed.stddev),
        or_dash(elapsed.min),
        or_dash(elapsed.max),
        figure(jobs.files_per_second().filter(|_| jobs.files > 0), rate),
        figure(jobs.bytes_per_second(), |bytes| format!("{:.2}", bytes / 1e6)),
        jobs.waited_sum_ns
            .map_or_else(String::new, |waited| format!("{}%", percent(nanos(waited), nanos(jobs.elapsed_sum_ns)))),
    ]
}

//! Headline of a ramp in one sentence: peak throughput, and how response times change at higher loads.

use super::{BenchDocument, BenchRun};
use crate::format::{median_and_p95, prose_percent, thousands, unbroken};
use smbscope_model::Nanos;

/// Throughputs within 5% of each other count as equal.
const LEVEL: f64 = 0.95;

impl BenchDocument {
    /// Returns the lowest load point whose throughput is within 5% of the highest. More load only adds queueing.
    pub(super) fn peak(&self) -> Option<&BenchRun> {
        let runs = || self.runs.iter().filter(|run| run.operations > 0);
        let best = runs().map(|run| run.operations_per_second).fold(0.0, f64::max);
        let by_rate = self.is_ramp_of_rates();
        let level = runs().filter(|run| run.operations_per_second >= best * LEVEL);
        level.min_by(|a, b| a.load(by_rate).total_cmp(&b.load(by_rate)))
    }
}

pub(super) fn sentence(document: &BenchDocument) -> String {
    let figures = figures(document);
    match document.failure() {
        Some(why) if document.runs.iter().all(|run| run.operations == 0) => format!("The run failed: {why}."),
        Some(why) => format!("The run failed: {why}. {figures}"),
        None => figures,
    }
}

fn figures(document: &BenchDocument) -> String {
    let by_rate = document.is_ramp_of_rates();
    let mut runs: Vec<&BenchRun> = document.runs.iter().filter(|run| run.operations > 0).collect();
    runs.sort_by(|a, b| a.load(by_rate).total_cmp(&b.load(by_rate)));
    let Some(last) = runs.last().copied() else { return "No command was answered.".to_owned() };
    let name = |run: &BenchRun| document.load_name(run);
    let with = if by_rate { "at" } else { "with" };
    let rate = |run: &BenchRun| unbroken(format!("{} commands/s", thousands(run.operations_per_second.round() as u64)));
    let peak = document.peak().unwrap_or(last);
    if runs.len() == 1 {
        return format!("{} {with} {}{}.", rate(last), name(last), times(last));
    }
    if peak.load(by_rate) < last.load(by_rate) {
        let gained = last.operations_per_second / peak.operations_per_second - 1.0;
        let percent = prose_percent((gained.abs() * 100_000.0) as u64, 100_000);
        let price = format!("{percent} {} throughput", if gained < 0.0 { "less" } else { "more" });
        let longer = longer(peak, last).map_or_else(String::new, |longer| format!("{longer} for "));
        return format!(
            "Peaks at {} {with} {}{}; at {} {longer}{price}.",
            rate(peak),
            name(peak),
            times(peak),
            name(last)
        );
    }
    let first = runs[0];
    let longer = longer(first, last).map_or_else(String::new, |longer| format!("; {longer} as {with} {}", name(first)));
    // A target rate says nothing about higher ones, and neither does throughput that dipped before the last load point.
    let dipped = runs.windows(2).any(|pair| pair[1].operations_per_second < pair[0].operations_per_second * LEVEL);
    let rising = if by_rate || dipped { "" } else { ", still rising" };
    format!("{} {with} {}{rising}{}{longer}.", rate(last), name(last), times(last))
}

/// `, median 282 µs, p95 4.63 ms`.
fn times(run: &BenchRun) -> String {
    median_and_p95(run.headline()).map_or_else(String::new, |times| format!(", {times}"))
}

/// `p95 is 5.7 times as long`.
fn longer(from: &BenchRun, to: &BenchRun) -> Option<String> {
    let pair = |of: fn(&BenchRun) -> Option<Nanos>| Some((of(from).filter(|time| time.0 > 0)?, of(to)?));
    let (name, (from, to)) = pair(|run| run.headline().p95)
        .map(|pair| ("p95", pair))
        .or_else(|| Some(("the median", pair(|run| run.headline().p50)?)))?;
    Some(match to.0 as f64 / from.0 as f64 {
        ratio if (LEVEL..=1.0 / LEVEL).contains(&ratio) => format!("{name} is the same"),
        ratio => {
            let decimals = usize::from(ratio < 99.95);
            format!("{name} is {}", unbroken(format!("{ratio:.decimals$} times as long")))
        }
    })
}

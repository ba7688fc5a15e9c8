//! Answers: the headline of a ramp (peak throughput, and how response times change at higher loads), the answer of a
//! load point, as `smbscope-diagnose` derives it from the client's measurements, and the answer for program launches;
//! with suggested commands: the same one with other load points, and an analysis of the kept captures.
//!
//! A run counts as failed if a load point failed, too many operations failed, or no command was answered. Then its
//! headline starts with the reason.

use super::measure::ServerResources;
use super::{
    BenchDocument, BenchRun, BenchRunOutcome, JobEntry, JobStatistics, Launch, LoopModel, RunCapture, measure,
};
use crate::format::{median_and_p95, prose_percent, span, thousands, unbroken};
use crate::json::entries::GroupEntry as Counted;
use crate::{Answer, Culprit};
use smbscope_diagnose::next::{self, SuggestedCommand};
use smbscope_diagnose::{LoadPointFacts, LongestStall, SPLIT};
use smbscope_model::{CommandGroup, Nanos, Timestamp};
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
    let service = sum(|group| &group.row.service_time);
    let resources = run.server.as_ref().map(|server| ServerResources::new(server, run.duration_ns, service));
    let point = LoadPointFacts {
        median: times.p50,
        p95: times.p95,
        longest: times.max?,
        groups: CommandGroup::ALL
            .into_iter()
            .filter_map(|group| Some((group, run.group(group.name())?.times.client.p95?)))
            .collect(),
        request_transfer: sum(|group| &group.row.request_transfer),
        service,
        response_transfer: sum(|group| &group.row.response_transfer),
        client_limited: run.client_cpu.filter(|cpu| cpu.limited).map(|cpu| cpu.busiest_percent),
        client_late: measure::client_lateness(run),
        used_up: resources.as_ref().and_then(ServerResources::used_up),
        waited_for: resources.as_ref().and_then(ServerResources::waited_for),
        out_of_space: measure::out_of_space(run),
        stall: run.stalls.iter().max_by_key(|stall| stall.duration_ns).map(|longest| LongestStall {
            duration: longest.duration_ns,
            after: longest.start_ns - run.started_ns,
            count: run.stalls.len(),
        }),
    };
    Some(point.answer())
}

/// Returns the answer of a ramp, with the culprit of the load point shown in detail, or `capture` if the run failed. A
/// headline of the load point other than "Nothing is slow" is part of the ramp's; otherwise it is the first evidence.
pub(super) fn of_ramp(document: &BenchDocument) -> Answer {
    let point = document.shown().and_then(|run| Some((run, run.answer.as_ref()?)));
    let culprit = match document.failure() {
        // A full disk is why operations failed.
        Some(_) if point.is_none_or(|(run, _)| measure::out_of_space(run).is_none()) => Culprit::Capture,
        _ => point.map_or(Culprit::Capture, |(_, answer)| answer.culprit),
    };
    let at = |run: &BenchRun, text: &str| match document.runs.len() {
        1 => text.to_owned(),
        _ => format!("At {}: {text}", document.load_name(run)),
    };
    let (mut headline, mut evidence) = (headline(document), Vec::new());
    if let Some((run, answer)) = point {
        match answer.culprit == Culprit::Nothing && run.stalls.is_empty() {
            true => evidence.push(at(run, &answer.headline)),
            false => headline = format!("{headline} {}", at(run, &answer.headline)),
        }
        // The split of all response times is a detail of the load point.
        evidence.extend(answer.evidence.iter().filter(|text| !text.starts_with(SPLIT)).cloned());
    }
    Answer { culprit, headline, evidence, next: next_steps(document), ..Answer::default() }
}

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

fn headline(document: &BenchDocument) -> String {
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

impl BenchRun {
    fn failed_of_all(&self) -> (u64, u64) {
        let sessions = self.failures.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let done = self.workload_operations.iter().map(|operation| operation.service_time.count).sum::<u64>();
        (self.unexpected_count().saturating_add(sessions), done.saturating_add(sessions))
    }

    fn most_frequent_failure(&self) -> Option<&str> {
        let unexpected = self.workload_operations.iter().flat_map(|operation| &operation.unexpected);
        let most = unexpected.chain(&self.failures).max_by_key(|(why, count)| (**count, std::cmp::Reverse(*why)));
        most.map(|(why, _)| why.trim_end_matches('.'))
    }
}

impl BenchDocument {
    /// Returns the reason if the run counts as failed, without a final full stop: a load point failed, more operations
    /// failed than `max_errors_percent` allows, or no command was answered at all.
    pub fn failure(&self) -> Option<String> {
        let failed = self.runs.iter().find_map(|run| match &run.ended {
            BenchRunOutcome::Failed { why } => Some(why.trim_end_matches('.').to_owned()),
            _ => None,
        });
        failed.or_else(|| self.too_many_errors()).or_else(|| self.no_answer())
    }

    /// Does not apply to a capacity search, which judges its load points by its own criterion.
    fn too_many_errors(&self) -> Option<String> {
        let most = self.settings.max_errors_percent.filter(|_| self.capacity.is_none())?;
        self.runs.iter().find_map(|run| {
            let (failed, all) = run.failed_of_all();
            let percent = failed as f64 / all.max(1) as f64 * 100.0;
            (percent > most).then(|| {
                let at = if self.runs.len() > 1 { format!(" with {}", self.load_name(run)) } else { String::new() };
                let why = run.most_frequent_failure().map_or_else(String::new, |why| format!(", mostly with {why}"));
                let (failed, all) = (thousands(failed), thousands(all));
                format!("{failed} of {all} operations failed ({percent:.1}%){at}{why}; --max-errors allows {most}%")
            })
        })
    }

    fn no_answer(&self) -> Option<String> {
        let is_measured = self.launch.is_none() && !self.runs.is_empty() && self.capacity.is_none();
        let none = self.runs.iter().all(|run| run.operations == 0 && run.ended == BenchRunOutcome::Done);
        (is_measured && none).then(|| "no command was answered".to_owned())
    }
}

/// Formats `chromium took 4.88 s on average of 5 launches (4.71 s to 5.10 s), caches warm; 3.6 s of it (74%) were waits
/// for the server.`
fn launch_headline(document: &BenchDocument, launch: &Launch) -> String {
    let Some((jobs, mean)) = done(document) else {
        return format!("No launch of {} was done.", launch.program);
    };
    let spread = match (jobs.elapsed.min, jobs.elapsed.max) {
        (Some(min), Some(max)) if jobs.elapsed.count > 1 => {
            format!(" ({} to {})", unbroken(span(min)), unbroken(span(max)))
        }
        _ => String::new(),
    };
    let of = match jobs.elapsed.count {
        1 => "in one launch".to_owned(),
        n => format!("on average of {n} launches"),
    };
    let waited = match jobs.waited_sum_ns {
        Some(waited) if !document.target.is_local() => {
            let each = mean_wait(jobs, waited);
            let share = prose_percent(waited.0.unsigned_abs(), jobs.elapsed_sum_ns.0.unsigned_abs());
            format!("; {} of it ({share}) were waits for the server", unbroken(span(each)))
        }
        _ => String::new(),
    };
    format!("{} took {} {of}{spread}, caches {}{waited}.", launch.program, unbroken(span(mean)), launch.caches.name())
}

fn done(document: &BenchDocument) -> Option<(&JobStatistics, Nanos)> {
    let jobs = document.runs.first()?.jobs.as_ref().filter(|jobs| jobs.elapsed.count > 0)?;
    Some((jobs, jobs.elapsed.mean?))
}

fn mean_wait(jobs: &JobStatistics, waited: Nanos) -> Nanos {
    Nanos(waited.0 / jobs.elapsed.count.max(1) as i64)
}

pub(super) fn of_launch(document: &BenchDocument, launch: &Launch) -> Answer {
    let culprit = done(document).map_or(Culprit::Capture, |(jobs, mean)| {
        smbscope_diagnose::whose_launch(mean, jobs.waited_sum_ns.map(|waited| mean_wait(jobs, waited)))
    });
    Answer { culprit, headline: launch_headline(document, launch), next: launch_steps(document), ..Answer::default() }
}

fn launch_steps(document: &BenchDocument) -> Vec<SuggestedCommand> {
    let step = || {
        let run = document.runs.first()?;
        let directory = document.invocation.as_ref()?.directory.as_deref()?;
        let file = next::file(&capture(directory, run)?)?;
        let slowest = slowest(run)?;
        let (from, length) = (slowest.started_ns, slowest.elapsed_ns.0);
        let at = |time: Timestamp| {
            let time = jiff::Timestamp::from_nanosecond(i128::from(time.0)).ok()?;
            Some(time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        };
        // Round up to the next millisecond.
        let to = Timestamp(from.0.saturating_add(length).saturating_add(999_999));
        let filter = format!("time >= {} and time < {}", at(from)?, at(to)?);
        Some(SuggestedCommand::new("slowest", format!("smbscope analyze --filter '{filter}' {file}")))
    };
    step().into_iter().collect()
}

fn slowest(run: &BenchRun) -> Option<&JobEntry> {
    run.jobs.as_ref()?.list.iter().max_by_key(|job| job.elapsed_ns)
}

const POINTS: u32 = 6;

fn next_steps(document: &BenchDocument) -> Vec<SuggestedCommand> {
    if document.runs.iter().all(|run| run.operations == 0) {
        return Vec::new();
    }
    [load(document), packets_or_files(document)].into_iter().flatten().collect()
}

pub(crate) fn again(document: &BenchDocument, run: &BenchRun) -> Option<String> {
    command(document, document.load(run))
}

/// Suggests other load points: around the knee of the curve, beyond the last point, or a ramp if there was none. If the
/// server stalled, suggests an open loop at the same rate.
fn load(document: &BenchDocument) -> Option<SuggestedCommand> {
    // If the client is the bottleneck, more load says nothing about the server. A search has already found the load.
    if document.capacity.is_some() || document.runs.iter().any(|run| run.client_cpu.is_some_and(|cpu| cpu.limited)) {
        return None;
    }
    if let Some(stalled) = document.runs.iter().rev().find(|run| !run.stalls.is_empty())
        && let Some(options) = at_a_rate(document, stalled)
    {
        return step(document, "stalls", &options);
    }
    let mut loads: Vec<u32> = document.runs.iter().map(|run| document.load(run)).collect();
    loads.sort_unstable();
    loads.dedup();
    let (&first, &last) = (loads.first()?, loads.last()?);
    let doubled = last.checked_mul(2)?;
    if first == last {
        if let LoopModel::Open { rate, per_user: false, random } = document.settings.schedule {
            let points = [1.0, 2.0, 4.0].map(|times| (rate.max(1.0) * times).round().to_string()).join(",");
            return step(document, "ramp", &at_rates(last_users(document)?, &points, random));
        }
        let points = if last == 1 { "1,2,4".to_owned() } else { doubling(doubled) };
        return step(document, "ramp", &options(document, &points)?);
    }
    let peak = document.load(document.peak()?);
    if peak == last {
        let points = format!("{last},{doubled},{}", doubled.checked_mul(2)?);
        return step(document, "load", &options(document, &points)?);
    }
    let at = loads.iter().position(|load| *load == peak)?;
    let (low, high) = (loads[at.saturating_sub(1)], loads[at + 1]);
    let width = ((high - low) / POINTS).max(1);
    let is_finer = loads.windows(2).any(|pair| (low..high).contains(&pair[0]) && pair[1] - pair[0] > width);
    let points = format!("{low}..{high}:{width}");
    is_finer.then(|| step(document, "knee", &options(document, &points)?)).flatten()
}

fn doubling(last: u32) -> String {
    let powers = std::iter::successors(Some(1u32), |load| load.checked_mul(2)).take_while(|load| *load <= last);
    powers.map(|load| load.to_string()).collect::<Vec<_>>().join(",")
}

/// Suggests what the client can't measure: the capture of the load point shown in detail, or how to take one.
fn packets_or_files(document: &BenchDocument) -> Option<SuggestedCommand> {
    let run = document.shown()?;
    match &run.capture {
        Some(RunCapture::Made(made)) => {
            let kept = document.invocation.as_ref()?.directory.as_deref()?;
            let file = next::file(&capture(kept, run)?)?;
            let command = match &made.server {
                Some(server) => {
                    let keys = document.target.cipher.as_ref().and_then(|_| server.file.strip_suffix("-server.pcap"));
                    let keys = keys.and_then(|base| next::file(&within(kept, &format!("{base}.keys"))));
                    let keys = keys.map_or_else(String::new, |file| format!("--keys {file} "));
                    format!("smbscope analyze {keys}{file} {}", next::file(&within(kept, &server.file))?)
                }
                None => format!("smbscope analyze --by file {file}"),
            };
            Some(SuggestedCommand::new("packets", command))
        }
        None if document.target.is_local() || !run.hosts.is_empty() => None,
        None => {
            step(document, "packets", &format!("{} --capture", options(document, &document.load(run).to_string())?))
        }
        // Capturing was tried and is not possible on this machine.
        Some(RunCapture::Skipped { .. }) => {
            let is_sliced = run.counted.as_ref().is_some_and(|counted| counted.slices.is_some());
            let options = options(document, &document.load(run).to_string())?;
            if is_sliced { None } else { step(document, "files", &format!("{options} --by file")) }
        }
    }
}

pub(crate) fn capture(directory: &str, run: &BenchRun) -> Option<String> {
    match &run.capture {
        Some(RunCapture::Made(made)) => Some(within(directory, made.file.as_ref()?)),
        _ => None,
    }
}

fn within(directory: &str, file: &str) -> String {
    format!("{}/{file}", directory.trim_end_matches('/'))
}

fn step(document: &BenchDocument, label: &str, options: &str) -> Option<SuggestedCommand> {
    let command = &document.invocation.as_ref()?.command;
    Some(SuggestedCommand::new(label, format!("{command} {options}")))
}

fn command(document: &BenchDocument, load: u32) -> Option<String> {
    let command = &document.invocation.as_ref()?.command;
    Some(format!("{command} {}", options(document, &load.to_string())?))
}

fn options(document: &BenchDocument, points: &str) -> Option<String> {
    Some(match document.settings.schedule {
        LoopModel::Closed { think_ns: Nanos(0) } => format!("--users {points}"),
        LoopModel::Closed { think_ns } => format!("--users {points} --think {}", next::time(think_ns)),
        LoopModel::Open { random, .. } if document.is_ramp_of_rates() => {
            at_rates(last_users(document)?, points, random)
        }
        LoopModel::Open { rate, per_user, random } => {
            let option = if per_user { "--rate-per-user" } else { "--rate" };
            format!("--users {points} {option} {rate}{}", arrivals(random))
        }
    })
}

fn at_rates(users: u32, points: &str, random: bool) -> String {
    format!("--users {users} --rates {points}{}", arrivals(random))
}

fn arrivals(random: bool) -> &'static str {
    if random { " --arrivals poisson" } else { "" }
}

fn last_users(document: &BenchDocument) -> Option<u32> {
    document.runs.last().map(|run| run.users)
}

/// Formats options for an open loop at the rate that a closed loop reached at this load point.
fn at_a_rate(document: &BenchDocument, run: &BenchRun) -> Option<String> {
    let LoopModel::Closed { .. } = document.settings.schedule else { return None };
    let operations: u64 = run.workload_operations.iter().map(|operation| operation.service_time.count).sum();
    let rate = (operations as f64 / run.seconds()?).floor();
    (rate >= 1.0).then(|| format!("--users {} --rate {rate}", run.users))
}

//! What to look at next after a ramp: the command that it was started with, at other load points, and the captures that it
//! kept.

use super::{BenchDocument, BenchRun, LoopModel, RunCapture};
use smbscope_diagnose::next::{self, SuggestedCommand};
use smbscope_model::Nanos;

/// Load points that look closer at a range, about.
const POINTS: u32 = 6;

/// At most two: other load points, and whose the time is.
pub(super) fn steps(document: &BenchDocument) -> Vec<SuggestedCommand> {
    if document.runs.iter().all(|run| run.operations == 0) {
        return Vec::new();
    }
    [load(document), whose(document)].into_iter().flatten().collect()
}

/// The command that measures a load point again.
pub(crate) fn again(document: &BenchDocument, run: &BenchRun) -> Option<String> {
    command(document, document.load(run))
}

/// Other load points: around the knee, beyond the last one, or a ramp where there was none; where the server stalled, at a
/// rate that does not wait for it.
fn load(document: &BenchDocument) -> Option<SuggestedCommand> {
    // More load from a client that is the limit says nothing about the server; a search has found what it looked for.
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

/// `1,2,4,8`, up to this load.
fn doubling(last: u32) -> String {
    let powers = std::iter::successors(Some(1u32), |load| load.checked_mul(2)).take_while(|load| *load <= last);
    powers.map(|load| load.to_string()).collect::<Vec<_>>().join(",")
}

/// What the client cannot tell of the load point that is shown: the capture of it, or how to take one.
fn whose(document: &BenchDocument) -> Option<SuggestedCommand> {
    let run = document.shown()?;
    match &run.capture {
        Some(RunCapture::Made(_)) => {
            let kept = document.invocation.as_ref()?.directory.as_deref()?;
            let file = next::file(&capture(kept, run)?)?;
            Some(SuggestedCommand::new("packets", format!("smbscope analyze --by file {file}")))
        }
        None if document.target.is_local() || !run.hosts.is_empty() => None,
        None => {
            step(document, "packets", &format!("{} --capture", options(document, &document.load(run).to_string())?))
        }
        // It was tried, and this machine cannot.
        Some(RunCapture::Skipped { .. }) => {
            let is_sliced = run.counted.as_ref().is_some_and(|counted| counted.slices.is_some());
            let options = options(document, &document.load(run).to_string())?;
            if is_sliced { None } else { step(document, "files", &format!("{options} --by file")) }
        }
    }
}

/// The capture of a load point in the directory of its run.
pub(crate) fn capture(directory: &str, run: &BenchRun) -> Option<String> {
    match &run.capture {
        Some(RunCapture::Made(made)) => Some(format!("{}/{}", directory.trim_end_matches('/'), made.file.as_ref()?)),
        _ => None,
    }
}

fn step(document: &BenchDocument, label: &str, options: &str) -> Option<SuggestedCommand> {
    let command = &document.invocation.as_ref()?.command;
    Some(SuggestedCommand::new(label, format!("{command} {options}")))
}

fn command(document: &BenchDocument, load: u32) -> Option<String> {
    let command = &document.invocation.as_ref()?.command;
    Some(format!("{command} {}", options(document, &load.to_string())?))
}

/// These load points by the schedule of the ramp.
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

/// Load points that differ in their rate, of so many users.
fn at_rates(users: u32, points: &str, random: bool) -> String {
    format!("--users {users} --rates {points}{}", arrivals(random))
}

fn arrivals(random: bool) -> &'static str {
    if random { " --arrivals poisson" } else { "" }
}

fn last_users(document: &BenchDocument) -> Option<u32> {
    document.runs.last().map(|run| run.users)
}

/// As many operations a second as a closed loop did at a load point, begun when they are due.
fn at_a_rate(document: &BenchDocument, run: &BenchRun) -> Option<String> {
    let LoopModel::Closed { .. } = document.settings.schedule else { return None };
    let operations: u64 = run.workload_operations.iter().map(|operation| operation.service_time.count).sum();
    let rate = (operations as f64 / run.seconds()?).floor();
    (rate >= 1.0).then(|| format!("--users {} --rate {rate}", run.users))
}

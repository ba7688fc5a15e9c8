//! Suggested commands after a ramp: the same command with other load points, and an analysis of the kept captures.

use super::{BenchDocument, BenchRun, LoopModel, RunCapture};
use smbscope_diagnose::next::{self, SuggestedCommand};
use smbscope_model::Nanos;

const POINTS: u32 = 6;

pub(super) fn steps(document: &BenchDocument) -> Vec<SuggestedCommand> {
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

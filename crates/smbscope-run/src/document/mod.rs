//! Converts the engine's results, client settings and capacity results into the terms of the bench document.

pub(crate) mod wire;

use crate::capture::CaptureFacts;
use crate::document::wire::Wire;
use smbscope_client::{Cipher, ClientSigningPolicy, Encryption, SigningAlgorithm};
use smbscope_load::engine::result::{self, LoadPointEnd, LoadPointResult, PacingResult};
use smbscope_load::engine::{self, FinishedJob, JobSummary, Knee, OverloadTally};
use smbscope_model::{CommandGroup, Nanos};
use smbscope_report::bench::{self, Captured, ClientWireTimes, OTHER, RunCapture};
use smbscope_report::counted;
use smbscope_stats::{CommandRowKey, CommandTallyView, DurationStatistics, Summary, SummaryPrecision, is_apart};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum LoadPointCapture<'a> {
    NotAsked,
    Skipped(String),
    /// The matched commands and the facts about the capture. Command counts are added here.
    Made(&'a Wire, CaptureFacts),
}

pub(crate) fn load_point(run: &LoadPointResult, seen: LoadPointCapture<'_>) -> bench::BenchRun {
    let wire = match &seen {
        LoadPointCapture::Made(wire, _) => Some(*wire),
        _ => None,
    };
    let answered = run.answered();
    let seconds = run.duration.as_secs_f64();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    run.counted.kinds().for_each(|(_, counted)| add(&mut errors, counted.errors));
    bench::BenchRun {
        users: run.users,
        started_ns: run.started,
        duration_ns: run.duration.into(),
        warmup_ns: run.warmup.into(),
        ended: ended(&run.ended),
        pace: pace(run),
        operations: answered,
        operations_per_second: if seconds > 0.0 { answered as f64 / seconds } else { 0.0 },
        bytes_read: run.bytes_read,
        bytes_written: run.bytes_written,
        errors,
        total: total(run, wire),
        due: run.due.as_ref().map(|due| due.figures()),
        stalls: run.stalls.iter().map(stall).collect(),
        groups: groups(run, wire),
        commands: commands(run, wire),
        workload_operations: run.operations.iter().map(operation).collect(),
        intervals: run.intervals.iter().map(interval).collect(),
        connects: run.connects.figures(),
        connect_commands: run.connect_commands.iter().map(|(command, count)| (command.to_string(), *count)).collect(),
        failures: run.failures.iter().filter(|(_, count)| **count > 0).map(|(why, n)| (why.clone(), *n)).collect(),
        unanswered: run.unanswered,
        client_cpu: Some(client_cpu(&run.client_cpu, run.duration, answered)),
        capture: capture(seen, answered),
        counted: Some(bench::LoadPointBreakdown::new(&run.counted.finish())),
        answer: None,
        jobs: run.jobs.as_ref().map(jobs),
        // Filled in from the server's metrics.
        server: None,
        overload: run.overload.as_ref().map(overload),
        queue: run.queue.map(|queue| bench::QueueDepthEntry { asked: queue.asked, reached: queue.reached }),
        hosts: run.hosts.iter().map(|host| host_run(host, run.duration)).collect(),
    }
}

fn overload(overload: &OverloadTally) -> bench::OverloadEntry {
    let OverloadTally { limits, scenarios, late, exceeded, not_begun } = *overload;
    bench::OverloadEntry {
        scenarios,
        late,
        exceeded,
        not_begun,
        percent: overload.share() * 100.0,
        late_ns: limits.late.into(),
        budget_ns: limits.budget.map(Into::into),
    }
}

fn jobs(jobs: &JobSummary) -> bench::JobStatistics {
    let job = |job: &FinishedJob| bench::JobEntry {
        session: job.session.saturating_add(1),
        started_ns: job.started,
        elapsed_ns: job.elapsed.into(),
        waited_ns: Some(job.waited.into()),
        files: job.files,
        bytes_read: job.bytes_read,
        bytes_written: job.bytes_written,
    };
    bench::JobStatistics {
        elapsed: jobs.elapsed.figures(),
        unfinished: jobs.unfinished,
        elapsed_sum_ns: jobs.sum.elapsed.into(),
        waited_sum_ns: Some(jobs.sum.waited.into()),
        files: jobs.sum.files,
        bytes_read: jobs.sum.bytes_read,
        bytes_written: jobs.sum.bytes_written,
        list: jobs.list.iter().map(job).collect(),
    }
}

fn add(sums: &mut BTreeMap<String, u64>, counts: &BTreeMap<impl Display, u64>) {
    for (status, count) in counts.iter().filter(|(_, count)| **count > 0) {
        *sums.entry(status.to_string()).or_default() += count;
    }
}

fn by_name(counts: &BTreeMap<impl Display, u64>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    add(&mut sums, counts);
    sums
}

fn ended(ended: &LoadPointEnd) -> bench::BenchRunOutcome {
    match ended {
        LoadPointEnd::Done => bench::BenchRunOutcome::Done,
        LoadPointEnd::Interrupted => bench::BenchRunOutcome::Interrupted,
        LoadPointEnd::Stopped(why) => bench::BenchRunOutcome::Stopped { why: why.clone() },
        LoadPointEnd::Failed(why) => bench::BenchRunOutcome::Failed { why: why.clone() },
    }
}

fn pace(run: &LoadPointResult) -> bench::ScheduleAdherence {
    match run.pace {
        PacingResult::Closed => bench::ScheduleAdherence::Closed,
        PacingResult::Open { rate, not_begun } => {
            let done: u64 = run.operations.iter().map(|operation| operation.service.count()).sum();
            let seconds = run.duration.as_secs_f64();
            let rate_kept = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
            bench::ScheduleAdherence::Open { rate, rate_kept, not_begun }
        }
    }
}

/// Merges the summaries of the selected kinds. Returns `None` without a capture.
fn merged<'a>(
    summaries: Option<&'a BTreeMap<CommandRowKey, Summary>>,
    chooses: impl Fn(&CommandRowKey) -> bool,
) -> Option<Summary> {
    let chosen = summaries?.iter().filter(|(key, _)| chooses(key));
    Some(chosen.fold(Summary::new(SummaryPrecision::ROW), |mut whole, (_, part): (&'a CommandRowKey, &'a Summary)| {
        whole.merge(part);
        whole
    }))
}

fn measured(
    client: DurationStatistics,
    wire: Option<&Wire>,
    chooses: impl Fn(&CommandRowKey) -> bool,
) -> ClientWireTimes {
    let times = |summaries| merged(summaries, &chooses).map(|summary| summary.figures());
    let wire_times = times(wire.map(|wire| &wire.commands));
    let difference = times(wire.and_then(|wire| wire.differences.as_ref()));
    ClientWireTimes { client, wire: wire_times, difference }
}

fn total(run: &LoadPointResult, wire: Option<&Wire>) -> ClientWireTimes {
    let client = run.total().figures();
    let in_headline = measured(client, wire, |kind| !is_apart(kind) && kind.2.in_headline());
    match &in_headline.wire {
        // With encryption the wire shows only frames, each a command or a compound.
        Some(seen) if seen.count == 0 => measured(client, wire, |(_, _, group)| *group == CommandGroup::Encrypted),
        _ => in_headline,
    }
}

/// Returns the groups that the client or the wire has, in report order, *Other* before its parts.
fn groups(run: &LoadPointResult, wire: Option<&Wire>) -> Vec<bench::MeasuredGroup> {
    let on_wire = |group: CommandGroup| wire.is_some_and(|wire| wire.commands.keys().any(|(_, _, of)| *of == group));
    let mut result = Vec::new();
    let mut add = |name: &str, part_of: Option<&str>, members: &[CommandGroup]| {
        let client = run.counted.response_times(|(_, _, group)| members.contains(group));
        let operations = client.count();
        if operations == 0 && !members.iter().any(|group| on_wire(*group)) {
            return;
        }
        result.push(bench::MeasuredGroup {
            group: name.to_owned(),
            part_of: part_of.map(str::to_owned),
            headline: members.iter().all(|group| group.in_headline()),
            operations,
            times: measured(client.figures(), wire, |kind| !is_apart(kind) && members.contains(&kind.2)),
        });
    };
    for group in CommandGroup::ALL {
        if group == CommandGroup::OTHER[0] {
            add(OTHER, None, &CommandGroup::OTHER);
        }
        add(group.name(), group.is_other().then_some(OTHER), &[group]);
    }
    result
}

fn commands(run: &LoadPointResult, wire: Option<&Wire>) -> Vec<bench::MeasuredCommand> {
    let own: BTreeMap<CommandRowKey, CommandTallyView<'_>> =
        run.counted.kinds().filter(|(_, counted)| counted.response_time.count() > 0).collect();
    let mut kinds: Vec<CommandRowKey> = own.keys().copied().collect();
    kinds.extend(wire.into_iter().flat_map(|wire| wire.commands.keys()));
    kinds.sort_unstable();
    kinds.dedup();
    let entry = |kind: CommandRowKey| {
        let counted = own.get(&kind);
        let client: DurationStatistics =
            counted.map_or_else(DurationStatistics::default, |counted| counted.response_time.figures());
        let (command, subcommand, group) = kind;
        bench::MeasuredCommand {
            protocol: command.protocol().to_string(),
            command: command.to_string(),
            subcommand: subcommand.map(|subcommand| subcommand.to_string()),
            group: group.name().to_owned(),
            count: client.count,
            errors: counted.map_or_else(BTreeMap::new, |counted| by_name(counted.errors)),
            times: measured(client, wire, |other| *other == kind),
        }
    };
    kinds.into_iter().map(entry).collect()
}

fn operation(operation: &result::OperationResult) -> bench::OperationEntry {
    bench::OperationEntry {
        operation: operation.name.clone(),
        service_time: operation.service.figures(),
        response_time: operation.response.as_ref().map(|response| response.figures()),
        unexpected: by_name(&operation.unexpected),
    }
}

pub(crate) fn interval(interval: &result::IntervalResult) -> bench::IntervalEntry {
    let result::IntervalResult { start, users, operations, errors, bytes_read, bytes_written, p50, p95, max } =
        *interval;
    bench::IntervalEntry { start_ns: start, users, operations, errors, bytes_read, bytes_written, p50, p95, max }
}

fn stall(stall: &result::ResponseStall) -> bench::StallEntry {
    bench::StallEntry { start_ns: stall.start, duration_ns: stall.length.into() }
}

fn host_run(host: &result::HostResult, duration: Duration) -> bench::LoadHostEntry {
    let lost = host.lost.as_ref();
    bench::LoadHostEntry {
        host: host.name.clone(),
        sessions: host.sessions,
        operations: host.commands,
        errors: host.errors,
        bytes_read: host.bytes_read,
        bytes_written: host.bytes_written,
        times: host.times.figures(),
        client_cpu: lost.is_none().then(|| client_cpu(&host.cpu, duration, host.commands)),
        clock_ahead_ns: host.clock.ahead.0,
        clock_bound_ns: host.clock.bound,
        late_ns: host.late_by.into(),
        lost: lost.map(|lost| bench::LostHost { at_ns: lost.at, why: lost.why.clone(), operations: lost.commands }),
    }
}

fn client_cpu(cpu: &result::ClientCpuUsage, duration: Duration, answered: u64) -> bench::ClientCpuEntry {
    let whole = cpu.user + cpu.system;
    let seconds = duration.as_secs_f64();
    bench::ClientCpuEntry {
        user_ns: cpu.user.into(),
        system_ns: cpu.system.into(),
        percent: if seconds > 0.0 { 100.0 * whole.as_secs_f64() / seconds } else { 0.0 },
        per_operation_ns: (answered > 0 && !cpu.busy_poll).then(|| Nanos(Nanos::from(whole).0 / answered as i64)),
        busiest_percent: 100.0 * cpu.busiest,
        limited: cpu.limited,
        late_p99_ns: cpu.late_p99,
        late_max_ns: cpu.late_max,
    }
}

fn capture(seen: LoadPointCapture<'_>, answered: u64) -> Option<RunCapture> {
    match seen {
        LoadPointCapture::NotAsked => None,
        LoadPointCapture::Skipped(why) => Some(RunCapture::Skipped { why }),
        LoadPointCapture::Made(wire, facts) => Some(RunCapture::Made(Captured {
            file: facts.file,
            quality: facts.quality,
            packets: facts.packets,
            dropped_packets: facts.dropped_packets,
            client_commands: answered,
            wire_commands: wire.count(),
            matched: wire.matched(),
            server: facts.server,
        })),
    }
}

#[cfg(test)]
pub(crate) mod tests;

pub(crate) fn signing(signing: ClientSigningPolicy) -> &'static str {
    match signing {
        ClientSigningPolicy::Off => "off",
        ClientSigningPolicy::On => "on",
        ClientSigningPolicy::Required => "required",
    }
}

pub(crate) fn algorithm(algorithm: SigningAlgorithm) -> &'static str {
    match algorithm {
        SigningAlgorithm::Md5 => "MD5",
        SigningAlgorithm::HmacSha256 => "HMAC-SHA256",
        SigningAlgorithm::AesCmac => "AES-128-CMAC",
        SigningAlgorithm::AesGmac => "AES-128-GMAC",
    }
}

pub(crate) fn encryption(encryption: Encryption) -> &'static str {
    match encryption {
        Encryption::Off => "off",
        Encryption::Required(_) => "required",
    }
}

pub(crate) fn cipher(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Aes128Ccm => "AES-128-CCM",
        Cipher::Aes128Gcm => "AES-128-GCM",
        Cipher::Aes256Ccm => "AES-256-CCM",
        Cipher::Aes256Gcm => "AES-256-GCM",
    }
}

/// Converts the result of a capacity search. With `by_rate`, the loads are request rates, all tried with the same
/// number of users.
pub(crate) fn capacity(capacity: &engine::CapacityResult, by_rate: bool) -> bench::CapacityEntry {
    let found = match capacity.users {
        Knee::At(load) | Knee::AtLeast(load) => Some(load),
        Knee::Below(_) => None,
        Knee::Unfinished(load) => load,
    };
    let users = found.and_then(|_| capacity.tried.first()).map(|tried| tried.run.users);
    let rate = |run: &LoadPointResult| match run.pace {
        PacingResult::Open { rate, .. } if by_rate => Some(rate.round() as u32),
        _ => None,
    };
    bench::CapacityEntry {
        criterion: capacity.criterion.to_string(),
        users: if by_rate { users } else { found },
        rate: found.filter(|_| by_rate),
        always: capacity.range.and_then(|range| range.always),
        never: capacity.range.and_then(|range| range.never),
        tried: capacity
            .tried
            .iter()
            .map(|tried| bench::CapacityTrialEntry {
                users: tried.run.users,
                rate: rate(&tried.run),
                found: (!tried.verdict.found.is_empty()).then(|| tried.verdict.found.join(", ")),
                holds: tried.verdict.met,
            })
            .collect(),
    }
}

pub(crate) fn reservation(capacity: &engine::CapacityResult, by_rate: bool) -> Option<String> {
    let criterion = &capacity.criterion;
    match capacity.users {
        Knee::At(_) => None,
        Knee::AtLeast(rate) if by_rate => Some(format!(
            "{criterion} holds at {rate}/s, the highest rate that was tried: the capacity may be higher; give --rates a \
             larger range."
        )),
        Knee::AtLeast(users) => Some(format!(
            "{criterion} holds at {}, the most that were tried: the capacity may be higher; give --users a larger range.",
            counted(users.into(), "user", "users")
        )),
        // The report's answer already says so.
        Knee::Below(_) => None,
        Knee::Unfinished(_) => Some(format!("The search for the capacity with {criterion} was ended early.")),
    }
}

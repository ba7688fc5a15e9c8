//! Warnings about a ramp or launches, one sentence each, the most serious first.

use super::{BenchDocument, BenchRun, BenchRunOutcome, RunCapture, ScheduleAdherence};
use crate::format::{clean, counted, rate as per_second, share, span, thousands, visible_percent};
use smbscope_model::Nanos;

const LAUNCHES_MIN: u64 = 3;
/// Clock error of a host, which shifts its timeline, above which there is a warning: 100 ms.
const CLOCK_BOUND_LARGE: Nanos = Nanos(100_000_000);
const LATE_HOST: Nanos = Nanos(10_000_000);

/// Percentage of error responses that causes a warning. Workloads look for missing files, so some are normal.
const ERRORS_PERCENT: f64 = 1.0;

/// Difference between the commands of client and capture, in percent, above which there is a warning. Some commands
/// start or end at the edges of the run.
const DISAGREEMENT_PERCENT: f64 = 1.0;

/// Percentage of operations not started in an open loop above which there is a warning.
const SHORTFALL_PERCENT: f64 = 1.0;

/// Percentage of the target rate below which a run does not test what it was meant to.
const FAR_PERCENT: f64 = 90.0;

const NAMED_MAX: usize = 4;

pub(super) fn of_ramp(document: &BenchDocument) -> Vec<String> {
    let runs = document.runs.as_slice();
    let mut found = LoadWarnings { document, warnings: Vec::new() };
    for run in runs {
        match &run.ended {
            BenchRunOutcome::Done => {}
            BenchRunOutcome::Interrupted => found.at(&[run], "the run was interrupted; its results so far are kept."),
            BenchRunOutcome::Stopped { why } => found.at(&[run], &format!("the run was stopped: {}.", sentence(why))),
            BenchRunOutcome::Failed { why } => found.at(&[run], &format!("the run failed: {}.", sentence(why))),
        }
    }
    found.where_so(
        |run| run.client_cpu.is_some_and(|cpu| cpu.limited),
        |_| {
            "the client was the limit: the figures say nothing about the server. Use a faster client, or several."
                .to_owned()
        },
    );
    runs.iter().for_each(|run| found.hosts(run));
    runs.iter().for_each(|run| found.stalls(run));
    found.where_so(
        |run| run.unexpected_count() > 0,
        |runs| {
            let count = runs.iter().map(|run| run.unexpected_count()).sum();
            let count = counted(count, "operation ended", "operations ended");
            format!("{count} otherwise than the workload expects.")
        },
    );
    // If all operations end as the workload expects, error responses are part of it, such as lookups of missing files.
    let as_expected = |run: &BenchRun| run.unexpected_count() == 0 && !run.workload_operations.is_empty();
    found.where_so(
        |run| !as_expected(run) && share(run.error_count(), run.operations) >= ERRORS_PERCENT,
        |runs| {
            let errors = runs.iter().map(|run| run.error_count()).sum();
            let percent = visible_percent(errors, runs.iter().map(|run| run.operations).sum());
            format!("the server answered {percent}% of the commands with an error ({}).", thousands(errors))
        },
    );
    found.where_so(
        |run| run.queue.is_some_and(|queue| queue.reached < queue.asked),
        |runs| {
            let queues = || runs.iter().filter_map(|run| run.queue);
            let asked = queues().map(|queue| queue.asked).max().unwrap_or(0);
            let reached = queues().map(|queue| queue.reached).min().unwrap_or(0);
            format!(
                "the workload wants {asked} commands outstanding per user, but at most {reached} were: SMB1 has one \
                 at a time here, and the server's credits limit SMB2 and 3."
            )
        },
    );
    runs.iter().for_each(|run| found.sessions(run));
    found.unanswered();
    runs.iter().for_each(|run| found.shortfall(run));
    found.captures();
    if runs.iter().any(|run| matches!(run.pace, ScheduleAdherence::Closed)) {
        found.warnings.push(
            "Closed loop: users wait for each answer, so a stall of the server holds back the load and hides in the \
             percentiles; a run with --rate shows it."
                .to_owned(),
        );
    }
    found.warnings
}

/// Names the load point that missed its target rate most, for the top of the report, if it was far below.
pub(crate) fn far_below_its_rate(document: &BenchDocument) -> Option<String> {
    let shares = document.runs.iter().filter_map(|run| match run.pace {
        ScheduleAdherence::Open { rate, rate_kept, .. } if rate > 0.0 => {
            Some((run, rate, rate_kept, 100.0 * rate_kept / rate))
        }
        _ => None,
    });
    let (run, rate, kept, percent) =
        shares.filter(|(.., percent)| *percent < FAR_PERCENT).min_by(|a, b| a.3.total_cmp(&b.3))?;
    Some(format!(
        "{} the rate was not reached: {}/s of {}/s ({percent:.0}%). The figures describe a lower load.",
        at(document, &[run]),
        per_second(kept),
        per_second(rate)
    ))
}

struct LoadWarnings<'d> {
    document: &'d BenchDocument,
    warnings: Vec<String>,
}

impl LoadWarnings<'_> {
    fn at(&mut self, runs: &[&BenchRun], text: &str) {
        self.warnings.push(format!("{} {text}", at(self.document, runs)));
    }

    fn where_so(&mut self, is_so: impl Fn(&BenchRun) -> bool, text: impl Fn(&[&BenchRun]) -> String) {
        let found: Vec<&BenchRun> = self.document.runs.iter().filter(|run| is_so(run)).collect();
        if !found.is_empty() {
            self.at(&found, &text(&found));
        }
    }

    fn hosts(&mut self, run: &BenchRun) {
        for (host, lost) in run.lost_hosts() {
            let sessions = counted(host.sessions.into(), "session", "sessions");
            let commands = counted(lost.operations, "command", "commands");
            let text = format!(
                "the load host {} was lost with {sessions}: {}. The figures cover the other hosts only; {commands} \
                 that it had reported are left out.",
                clean(&host.host),
                sentence(&lost.why)
            );
            self.at(&[run], &text);
        }
        if let Some(host) = run.hosts.iter().filter(|host| host.late_ns > LATE_HOST).max_by_key(|host| host.late_ns) {
            let (name, late) = (clean(&host.host), host.late_ns);
            self.at(&[run], &format!("the load host {name} began {late} late: the order to begin came too late."));
        }
        let least_known = run.hosts.iter().max_by_key(|host| host.clock_bound_ns);
        if let Some(host) = least_known.filter(|host| host.clock_bound_ns > CLOCK_BOUND_LARGE) {
            let text = format!(
                "the clock of the load host {} is known only to ±{}: the start of its load and its figures over time \
                 may be off by as much. Response times are not affected.",
                clean(&host.host),
                host.clock_bound_ns
            );
            self.at(&[run], &text);
        }
    }

    fn stalls(&mut self, run: &BenchRun) {
        let Some(longest) = run.stalls.iter().max_by_key(|stall| stall.duration_ns) else { return };
        let count = run.stalls.len();
        let others = if count > 1 { format!(" {count} such stalls; this is the longest.") } else { String::new() };
        self.warnings.push(format!(
            "At {} the server stalled: it answered nothing for {}, {} after the start of the measured part.{others}",
            self.document.load_name(run),
            longest.duration_ns,
            span(longest.start_ns - run.started_ns),
        ));
    }

    fn sessions(&mut self, run: &BenchRun) {
        let Some((reason, most)) = run.failures.iter().max_by_key(|(_, count)| **count) else { return };
        let mostly = if run.failures.len() > 1 { format!("most often ({most}×) ") } else { String::new() };
        let count = run.failures.values().sum();
        let sessions = counted(count, "session could not be made or broke", "sessions could not be made or broke");
        self.at(&[run], &format!("{sessions}: {mostly}{}.", sentence(reason)));
    }

    fn unanswered(&mut self) {
        let unanswered: u64 = self.document.runs.iter().map(|run| run.unanswered).sum();
        if unanswered > 0 {
            let commands = counted(unanswered, "command was", "commands were");
            let have = if unanswered == 1 { "has" } else { "have" };
            self.warnings.push(format!("{commands} outstanding when the connection ended, and {have} no time."));
        }
    }

    fn shortfall(&mut self, run: &BenchRun) {
        let ScheduleAdherence::Open { rate, rate_kept, not_begun } = run.pace else { return };
        let due = rate * run.duration_ns.as_secs_f64();
        if due > 0.0 && 100.0 * not_begun as f64 / due >= SHORTFALL_PERCENT {
            let text = format!(
                "the rate was not kept: {} operations a second of {}; {} had not begun at the end.",
                thousands(rate_kept.round() as u64),
                thousands(rate.round() as u64),
                thousands(not_begun)
            );
            self.at(&[run], &text);
        }
    }

    fn captures(&mut self) {
        let mut said: Option<&str> = None;
        for run in &self.document.runs {
            match &run.capture {
                None => {}
                Some(RunCapture::Skipped { why }) => {
                    if said != Some(why) {
                        self.warnings.push(format!("No capture was made: {}.", sentence(why)));
                    }
                    said = Some(why);
                }
                Some(RunCapture::Made(made)) => {
                    if made.dropped_packets > 0 {
                        let packets = counted(made.dropped_packets, "packet", "packets");
                        self.at(&[run], &format!("the capture lost {packets}: some times on the wire are missing."));
                    }
                    let (client, wire) = (made.client_commands, made.wire_commands);
                    if share(client.abs_diff(wire), client.max(wire)) >= DISAGREEMENT_PERCENT {
                        let (client, wire) = (thousands(client), thousands(wire));
                        self.at(&[run], &format!("the client counted {client} commands, and the capture {wire}."));
                    }
                }
            }
        }
    }
}

/// Formats `At 8 and 16 users`, or `At all load points`.
fn at(document: &BenchDocument, runs: &[&BenchRun]) -> String {
    if runs.len() == document.runs.len() && runs.len() > 1 {
        return "At all load points".to_owned();
    }
    let by_rate = document.is_ramp_of_rates();
    let name = |run: &&BenchRun| if by_rate { document.load_name(run) } else { thousands(run.users.into()) };
    let mut names: Vec<String> = runs.iter().map(name).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let last = if more > 0 { Some(format!("{more} more loads")) } else { names.pop() };
    let named = match (names.is_empty(), last) {
        (true, Some(last)) => last,
        (_, last) => format!("{} and {}", names.join(", "), last.unwrap_or_default()),
    };
    match runs {
        _ if by_rate || more > 0 => format!("At {named}"),
        [only] if only.users == 1 => "At 1 user".to_owned(),
        _ => format!("At {named} users"),
    }
}

fn sentence(text: &str) -> String {
    clean(text).trim_end_matches('.').to_owned()
}

pub(super) fn of_launch(document: &BenchDocument) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(run) = document.runs.first() else { return warnings };
    match &run.ended {
        BenchRunOutcome::Failed { why } => warnings.push(format!("The series ended early: {why}.")),
        BenchRunOutcome::Interrupted => warnings.push("The series was interrupted.".to_owned()),
        BenchRunOutcome::Done | BenchRunOutcome::Stopped { .. } => {}
    }
    let done = run.jobs.as_ref().map_or(0, |jobs| jobs.elapsed.count);
    if (1..LAUNCHES_MIN).contains(&done) {
        let say = if done == 1 { "says" } else { "say" };
        let launches = counted(done, "launch", "launches");
        warnings.push(format!("{launches} {say} little about the spread: use --repetitions 5."));
    }
    match &run.capture {
        Some(RunCapture::Skipped { why }) => warnings.push(format!("The wait for the server is unknown: {why}.")),
        Some(RunCapture::Made(made)) if made.dropped_packets > 0 => warnings.push(format!(
            "The capture lacks {}: waits may be missing.",
            counted(made.dropped_packets, "packet", "packets")
        )),
        _ => {}
    }
    warnings
}

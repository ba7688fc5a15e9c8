//! What weakens the figures of a ramp, a sentence each, the gravest first.

use super::{Capture, Document, Ended, Pace, Run};
use crate::format::{clean, counted, share, span, thousands, visible_percent};

/// Share of error responses, in percent, from which on they are a warning: workloads ask for files that are not there.
const ERRORS_PERCENT: f64 = 1.0;

/// Share of commands, in percent, by which client and capture may differ: some begin or end at the edges of the run.
const DISAGREEMENT_PERCENT: f64 = 1.0;

/// Share of operations, in percent, that an open loop may fail to do in time.
const SHORTFALL_PERCENT: f64 = 1.0;

/// Load points named one by one.
const NAMED_MAX: usize = 4;

pub(super) fn of(document: &Document) -> Vec<String> {
    let runs = document.runs.as_slice();
    let mut warnings = Vec::new();
    failures(document, &mut warnings);
    limited(document, &mut warnings);
    stalls(document, &mut warnings);
    unexpected(document, &mut warnings);
    errors(document, &mut warnings);
    sessions(document, &mut warnings);
    shortfall(document, &mut warnings);
    captures(document, &mut warnings);
    if runs.iter().any(|run| matches!(run.pace, Pace::Closed)) {
        warnings.push(
            "Closed loop: users wait for each answer, so a stall of the server holds back the load and hides in the \
             percentiles; a run with --rate shows it."
                .to_owned(),
        );
    }
    warnings
}

/// `At 8 and 16 users`, or `At all load points`.
fn at(document: &Document, runs: &[&Run], all: usize) -> String {
    if runs.len() == all && all > 1 {
        return "At all load points".to_owned();
    }
    let by_rate = document.is_ramp_of_rates();
    let name = |run: &&Run| if by_rate { document.load_name(run) } else { thousands(run.users.into()) };
    let mut names: Vec<String> = runs.iter().map(name).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let last = if more > 0 { Some(format!("{more} more loads")) } else { names.pop() };
    let named = match (names.is_empty(), last) {
        (true, Some(last)) => last,
        (_, last) => format!("{} and {}", names.join(", "), last.unwrap_or_default()),
    };
    match runs {
        _ if by_rate => format!("At {named}"),
        [only] if only.users == 1 => "At 1 user".to_owned(),
        _ if more > 0 => format!("At {named}"),
        _ => format!("At {named} users"),
    }
}

fn failures(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    for run in runs {
        let at = at(document, &[run], 1);
        match &run.ended {
            Ended::Done => {}
            Ended::Interrupted => warnings.push(format!("{at} the run was interrupted; what was measured is kept.")),
            Ended::Stopped { why } => warnings.push(format!("{at} the run was stopped: {}.", sentence(why))),
            Ended::Failed { why } => warnings.push(format!("{at} the run failed: {}.", sentence(why))),
        }
    }
}

fn limited(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    let limited: Vec<&Run> = runs.iter().filter(|run| run.client_cpu.is_some_and(|cpu| cpu.limited)).collect();
    if !limited.is_empty() {
        warnings.push(format!(
            "{} the client was the limit: the figures say nothing about the server. Use a faster client, or several.",
            at(document, &limited, runs.len())
        ));
    }
}

/// The longest time in which the server answered nothing, at each load.
fn stalls(document: &Document, warnings: &mut Vec<String>) {
    for run in &document.runs {
        let Some(longest) = run.stalls.iter().max_by_key(|stall| stall.duration_ns) else { continue };
        let count = run.stalls.len();
        let others = if count > 1 { format!(" {count} such stalls; this is the longest.") } else { String::new() };
        warnings.push(format!(
            "At {} the server stalled: it answered nothing for {}, {} after the start of the measured part.{others}",
            document.load_name(run),
            longest.duration_ns,
            span(longest.start_ns - run.started_ns),
        ));
    }
}

fn unexpected(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    let found: Vec<&Run> = runs.iter().filter(|run| run.unexpected_count() > 0).collect();
    if !found.is_empty() {
        let count = found.iter().map(|run| run.unexpected_count()).sum();
        let count = counted(count, "operation ended", "operations ended");
        warnings.push(format!("{} {count} otherwise than the workload expects.", at(document, &found, runs.len())));
    }
}

fn errors(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    // Where operations of the workload end as it expects, errors are a part of it: looking for files that are not there.
    let as_expected = |run: &Run| run.unexpected_count() == 0 && !run.workload_operations.is_empty();
    let many = |run: &&Run| !as_expected(run) && share(run.error_count(), run.operations) >= ERRORS_PERCENT;
    let found: Vec<&Run> = runs.iter().filter(many).collect();
    if !found.is_empty() {
        let errors = found.iter().map(|run| run.error_count()).sum();
        let all = found.iter().map(|run| run.operations).sum();
        warnings.push(format!(
            "{} the server answered {} % of the commands with an error ({}).",
            at(document, &found, runs.len()),
            visible_percent(errors, all),
            thousands(errors)
        ));
    }
}

fn sessions(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    for run in runs.iter().filter(|run| !run.failures.is_empty()) {
        let count = run.failures.values().sum();
        let (reason, most) = run.failures.iter().max_by_key(|(_, count)| **count).expect("it is not empty");
        let mostly = if run.failures.len() > 1 { format!("most often ({most}×) ") } else { String::new() };
        let sessions = counted(count, "session could not be made or broke", "sessions could not be made or broke");
        warnings.push(format!("{} {sessions}: {mostly}{}.", at(document, &[run], 1), sentence(reason)));
    }
    let unanswered: u64 = runs.iter().map(|run| run.unanswered).sum();
    if unanswered > 0 {
        let commands = counted(unanswered, "command was", "commands were");
        warnings.push(format!(
            "{commands} under way when the connection ended, and {} no time.",
            match unanswered {
                1 => "has",
                _ => "have",
            }
        ));
    }
}

/// Share of the rate asked for, in percent, below which a run says something else than it was made for.
const FAR_PERCENT: f64 = 90.0;

/// The load point of an open loop that fell furthest behind its rate, far below it, in a sentence for the top of a report.
pub(super) fn far_below_its_rate(document: &Document) -> Option<String> {
    let runs = &document.runs;
    let shares = runs.iter().filter_map(|run| match run.pace {
        Pace::Open { rate, rate_kept, .. } if rate > 0.0 => Some((run, rate, rate_kept, 100.0 * rate_kept / rate)),
        _ => None,
    });
    let (run, rate, kept, percent) =
        shares.filter(|(.., percent)| *percent < FAR_PERCENT).min_by(|a, b| a.3.total_cmp(&b.3))?;
    let shown =
        |rate: f64| if rate < 99.95 { format!("{rate:.1}/s") } else { format!("{}/s", thousands(rate.round() as u64)) };
    Some(format!(
        "{} the rate was not reached: {} of {} ({percent:.0} %). The figures are those of a lower load.",
        at(document, &[run], runs.len()),
        shown(kept),
        shown(rate)
    ))
}

fn shortfall(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    for run in runs {
        let Pace::Open { rate, rate_kept, not_begun } = run.pace else { continue };
        let due = rate * run.duration_ns.as_secs_f64();
        if due > 0.0 && 100.0 * not_begun as f64 / due >= SHORTFALL_PERCENT {
            warnings.push(format!(
                "{} the rate was not kept: {} operations a second of {}; {} had not begun at the end.",
                at(document, &[run], 1),
                thousands(rate_kept.round() as u64),
                thousands(rate.round() as u64),
                thousands(not_begun)
            ));
        }
    }
}

fn captures(document: &Document, warnings: &mut Vec<String>) {
    let runs = &document.runs;
    let mut said: Option<&str> = None;
    for run in runs {
        match &run.capture {
            None => {}
            Some(Capture::Skipped { why }) => {
                if said != Some(why) {
                    warnings.push(format!("No capture was made: {}.", sentence(why)));
                }
                said = Some(why);
            }
            Some(Capture::Made(made)) => {
                let at = at(document, &[run], 1);
                if made.dropped_packets > 0 {
                    let packets = counted(made.dropped_packets, "packet", "packets");
                    warnings.push(format!("{at} the capture lost {packets}: the wire's times are not all."));
                }
                let differ = made.client_commands.abs_diff(made.wire_commands);
                if share(differ, made.client_commands.max(made.wire_commands)) >= DISAGREEMENT_PERCENT {
                    warnings.push(format!(
                        "{at} the client counted {} commands, and the capture {}.",
                        thousands(made.client_commands),
                        thousands(made.wire_commands)
                    ));
                }
            }
        }
    }
}

/// Words of the server or the system as the end of a sentence.
fn sentence(text: &str) -> String {
    clean(text).trim_end_matches('.').to_owned()
}

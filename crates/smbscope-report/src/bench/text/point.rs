//! Details of one load point: commands, errors, operations of the workload, and the course over time.

use super::{breakdown, timed};
use crate::bench::{
    BenchDocument, BenchRun, BenchRunOutcome, MeasuredCommand, OperationEntry, OverloadEntry, ScheduleAdherence,
};
use crate::format::{clean, counted, or_dash, percent, rate, span, thousands, unbroken, visible_percent};
use crate::page::{self, Paint, TextPage};
use crate::tables::{COUNT, ColumnHead, ERRORS, Row, TOTAL_WAIT, Table, Unit, Value, nonzero, percent_of};
use crate::text::{COMMANDS_MIN, LINES};
use smbscope_model::Nanos;
use smbscope_stats::DurationStatistics;
use std::collections::BTreeMap;

const STALLS_LISTED: usize = 10;

const COMMANDS_MAX: usize = 10;

const SLICES_SHOWN: usize = 20;

const OVER_TIME_INDENT: usize = 14;

pub(super) fn render(page: &mut TextPage, document: &BenchDocument, run: &BenchRun) {
    page.blank();
    let load = document.load_name(run);
    let heading = if document.runs.len() > 1 { format!("At {load}") } else { format!("The run with {load}") };
    page.line(Paint::Heading, &heading);
    answer(page, run);
    let text = how_it_went(run);
    page.paragraph(Paint::Plain, &text);
    over_time(page, run);
    stalls(page, run);
    slices(page, run);
    breakdown::hosts(page, run);
    commands(page, run, usize::MAX);
    breakdown::breakdown(page, run);
    breakdown::samba(page, run);
    breakdown::wire_by_command(page, run);
    operations(page, run);
    errors(page, run);
}

pub(super) fn brief(page: &mut TextPage, document: &BenchDocument, run: &BenchRun) {
    match document.runs.len() {
        1 => page.blank(),
        _ => page.heading(&format!("At {}", document.load_name(run))),
    }
    if let Some(server) = run.server.as_ref().and_then(super::breakdown::server_sentence) {
        page.beside(Paint::Plain, "- ", &server);
    }
    slices(page, run);
    let mut most = COMMANDS_MAX;
    let mut below = page.like();
    commands(&mut below, run, most);
    // Reserves a line for the note on expected errors.
    while page.lines() + below.lines() + 1 > LINES && most > COMMANDS_MIN {
        most -= 1;
        below = page.like();
        commands(&mut below, run, most);
    }
    page.append(below);
    if run.error_count() > 0 && ended_as_expected(run) {
        page.paragraph(Paint::Faint, "The workload expects all of these errors.");
    }
}

fn answer(page: &mut TextPage, run: &BenchRun) {
    let Some(answer) = &run.answer else { return };
    page.paragraph(Paint::Heading, &clean(&answer.headline));
    answer.evidence.iter().for_each(|sentence| page.beside(Paint::Plain, "- ", &clean(sentence)));
}

fn slices(page: &mut TextPage, run: &BenchRun) {
    let slices = run.counted.as_ref().and_then(|counted| counted.slices.as_ref());
    slices.iter().for_each(|slices| crate::text::slices::render(page, slices, SLICES_SHOWN));
}

/// Returns true if every operation ended as the workload expects, so that error responses are part of it.
fn ended_as_expected(run: &BenchRun) -> bool {
    run.unexpected_count() == 0 && run.failures.is_empty() && !run.workload_operations.is_empty()
}

fn how_it_went(run: &BenchRun) -> String {
    let mut text = format!("{} commands in {}", thousands(run.operations), unbroken(span(run.duration_ns)));
    match &run.ended {
        BenchRunOutcome::Done => text += ".",
        BenchRunOutcome::Interrupted => text += ", then interrupted.",
        BenchRunOutcome::Stopped { why } => text += &format!(", then stopped: {}.", clean(why).trim_end_matches('.')),
        BenchRunOutcome::Failed { why } => text += &format!(", then failed: {}.", clean(why).trim_end_matches('.')),
    }
    if let ScheduleAdherence::Open { rate: asked, rate_kept, not_begun } = run.pace {
        text += &format!(" Open loop: {} operations/s asked for, {} kept", rate(asked), rate(rate_kept));
        text += &if not_begun > 0 {
            format!("; {} had not begun at the end.", thousands(not_begun))
        } else {
            ".".to_owned()
        };
    }
    if let Some(overload) = run.overload {
        let OverloadEntry { scenarios, late, exceeded, not_begun, late_ns, budget_ns, .. } = overload;
        text += &format!(
            " Overload {}%: of {} scenarios {} began more than {} late",
            percent(overload.count(), scenarios),
            thousands(scenarios),
            thousands(late),
            unbroken(late_ns)
        );
        if let Some(budget) = budget_ns {
            text += &format!(", {} took longer than {}", thousands(exceeded), unbroken(budget));
        }
        text += &format!(", {} did not begin.", thousands(not_begun));
    }
    if let (count, Some(p50)) = (run.connects.count, run.connects.p50) {
        let slowest = run.connects.max.map(|max| format!(", slowest {}", unbroken(max)));
        let slowest = slowest.filter(|_| count > 1).unwrap_or_default();
        text += &format!(
            " {}: median {}{slowest}.",
            counted(count, "session was made", "sessions were made"),
            unbroken(p50)
        );
    }
    if let Some(cpu) = run.client_cpu {
        text += &format!(" The client took {:.0}% of one processor", cpu.percent);
        if let Some(each) = cpu.per_operation_ns {
            text += &format!(", {} a command", unbroken(each));
        }
        text += &format!("; its busiest thread {:.0}%.", cpu.busiest_percent);
        if let Some(late) = cpu.late_p99_ns {
            text += &format!(" 99% of its wake-ups were late by less than {}.", unbroken(late));
        }
    }
    text
}

/// Renders one character per interval, in which stalls show up as gaps in throughput.
fn over_time(page: &mut TextPage, run: &BenchRun) {
    if run.intervals.len() < 2 {
        return;
    }
    let room = page.width().saturating_sub(OVER_TIME_INDENT + 24);
    let line = |values: Vec<Option<f64>>, choose: fn(f64, f64) -> f64| page::line(&values, room, choose);
    let commands = run.intervals.iter().map(|interval| Some(interval.operations as f64)).collect();
    let slowest = run.intervals.iter().map(|interval| interval.max.map(|max| max.as_secs_f64())).collect();
    let each = run.intervals.windows(2).map(|pair| pair[1].start_ns - pair[0].start_ns).min();
    let seconds = each.map_or(1.0, |each| each.as_secs_f64());
    let most = run.intervals.iter().map(|interval| interval.operations).max().unwrap_or_default();
    let worst = run.intervals.iter().filter_map(|interval| interval.max).max();
    page.blank();
    let title = format!("Over time, {} each", each.map_or_else(|| "one second".to_owned(), |each| each.to_string()));
    page.line(Paint::Heading, &title);
    let rows = [
        ("  Commands/s", line(commands, f64::min), format!("at most {}", rate(most as f64 / seconds))),
        ("  Slowest", line(slowest, f64::max), format!("at most {}", or_dash(worst))),
    ];
    for (name, line, most) in rows {
        page.chart(&format!("{name:<OVER_TIME_INDENT$}"), &line, &most);
    }
}

fn stalls(page: &mut TextPage, run: &BenchRun) {
    if run.stalls.is_empty() {
        return;
    }
    page.heading("Stalls: commands were outstanding, and none was answered");
    for stall in run.stalls.iter().take(STALLS_LISTED) {
        let since = span(stall.start_ns - run.started_ns);
        let text = format!("  for {}, {since} after the start", or_dash(Some(stall.duration_ns)));
        page.line(Paint::Plain, &text);
    }
    let more = run.stalls.len().saturating_sub(STALLS_LISTED);
    if more > 0 {
        page.line(Paint::Plain, &format!("  and {} more: --format json lists them", thousands(more as u64)));
    }
}

fn commands(page: &mut TextPage, run: &BenchRun, most: usize) {
    struct Figures<'a> {
        count: u64,
        errors: u64,
        times: &'a DurationStatistics,
    }
    let line = |name: String, count: u64, errors: &BTreeMap<String, u64>, times| {
        Row::new(name, Figures { count, errors: errors.values().sum(), times })
    };
    let none = BTreeMap::new();
    let is_brief = most < usize::MAX;
    let groups = run.groups.iter().filter(|group| !is_brief || group.part_of.is_none());
    let mut groups: Vec<Row<Figures<'_>>> = groups
        .map(|group| {
            let indent = if group.part_of.is_some() { 2 } else { 0 };
            line(group.group.clone(), group.operations, &none, &group.times.client).indented(indent)
        })
        .collect();
    if !groups.is_empty() {
        groups.push(line("Total".to_owned(), run.total.client.count, &run.errors, &run.total.client));
    }
    let mut table = Table::new()
        .column(COUNT, |row: &Figures<'_>| row.count)
        .column(ColumnHead::new("share", "Share", Unit::Percent, "percentage of all commands").expendable(1), |row| {
            percent_of(row.count, run.operations)
        })
        .column(ERRORS, |row| nonzero(row.errors))
        .column(TOTAL_WAIT, |row| timed(row.times).map(|times| Value::from(sum(times))))
        .times(&STATISTICS, |row| timed(row.times))
        .section("Groups", groups);
    let mut found: Vec<&MeasuredCommand> = run.commands.iter().collect();
    found.sort_by_key(|command| {
        let is_waiting = command.group == smbscope_model::CommandGroup::Waiting.name();
        (is_waiting, std::cmp::Reverse(sum(&command.times.client)))
    });
    found.truncate(most);
    for (protocol, heading) in [("SMB1", "SMB1 commands"), ("SMB2", "SMB2/3 commands")] {
        let commands = found.iter().filter(|command| command.protocol == protocol);
        let lines =
            commands.map(|command| line(command.label(), command.count, &command.errors, &command.times.client));
        table = table.section(heading, lines);
    }
    table.render(page);
}

fn sum(times: &DurationStatistics) -> Nanos {
    Nanos::saturating(i128::from(times.mean.map_or(0, |mean| mean.0)) * i128::from(times.count)).max(Nanos(0))
}

const STATISTICS: [(&str, u8); 9] = [
    ("Fastest", 4),
    ("Median", 0),
    ("Average", 2),
    ("p90", 5),
    ("p95", 0),
    ("p99", 0),
    ("p99.9", 3),
    ("Slowest", 0),
    ("StdDev", 6),
];

/// Tabulates the workload's operations by service time, and in an open loop also by time since the intended start.
fn operations(page: &mut TextPage, run: &BenchRun) {
    if run.workload_operations.is_empty() {
        return;
    }
    let open = run.workload_operations.iter().any(|operation| operation.response_time.is_some());
    // Some operations only occur during the workload's setup.
    let happened = |operation: &&OperationEntry| operation.service_time.count > 0 || !operation.unexpected.is_empty();
    let lines = run.workload_operations.iter().filter(happened);
    let mut table = Table::new()
        .column(COUNT, |operation: &&OperationEntry| operation.service_time.count)
        .column(
            ColumnHead::new("unexpected", "Other", Unit::Count, "").explained("ended otherwise than expected"),
            |operation| nonzero(operation.unexpected.values().sum()),
        )
        .times(&[("Median", 0), ("Average", 4), ("p95", 0), ("p99", 2), ("Slowest", 0)], |operation| {
            timed(&operation.service_time)
        });
    if open {
        table = table
            .column(
                ColumnHead::new("due_p50_ns", "Due: Median", Unit::Duration, "median time since the operation was due"),
                |operation| since_due(operation).map(|times| Value::from(times.p50)),
            )
            .times_of(Some(("due", "Due")), &[("p95", 0), ("p99", 1), ("Slowest", 0)], |operation| {
                since_due(operation)
            });
    }
    let lines = lines.map(|operation| Row::new(clean(&operation.operation), operation));
    let rendered = table.section("Operations", lines).render(page);
    let mut text = "An operation is one command or several.".to_owned();
    if open {
        text += " Times count from the start of an operation; times after Due count from when it was due: the wait \
                 of a user on schedule.";
    }
    rendered.note(page, &text);
}

fn since_due(operation: &OperationEntry) -> Option<&DurationStatistics> {
    timed(&operation.service_time).and(operation.response_time.as_ref())
}

fn errors(page: &mut TextPage, run: &BenchRun) {
    let mut found: Vec<(u64, String)> = Vec::new();
    for command in &run.commands {
        for (status, count) in &command.errors {
            let share = format!("{}%", visible_percent(*count, command.count));
            found.push((*count, format!("{status} ({share} of {})", command.label())));
        }
    }
    let heading = if ended_as_expected(run) { "Errors, all of them as the workload expects" } else { "Errors" };
    page.counts(heading, found);
    let unexpected = run.workload_operations.iter().flat_map(|operation| {
        let text = |status: &str| format!("{status} in {}", clean(&operation.operation));
        operation.unexpected.iter().map(move |(status, count)| (*count, text(status)))
    });
    page.counts("Not as the workload expects", unexpected.collect());
    let failures = run.failures.iter().map(|(reason, count)| (*count, clean(reason)));
    page.counts("Sessions that failed", failures.collect());
}

//! Tables of commands and groups: how often, how many packets, and how long.

use super::style::Paint;
use super::table::{Column, Line, Section, Table};
use super::{TextOptions, percent_sign};
use crate::Report;
use crate::format::{average_packets, compact, percent, thousands, wrap};
use crate::names;
use smbscope_model::{Group, Protocol, TimeKind};
use smbscope_stats::{CommandRow, Row};

/// Statuses listed; the rest is added up.
const STATUSES_LISTED: usize = 20;

pub(super) fn render(out: &mut String, report: &Report, options: &TextOptions) {
    let all = &report.aggregate.commands;
    let ordered = in_order(report);
    let mut sections = Vec::new();
    for protocol in [Protocol::Smb1, Protocol::Smb2] {
        let rows = ordered.iter().filter(|row| row.command.protocol() == protocol);
        let lines: Vec<Line> = rows.flat_map(|row| command_lines(row, all, report.aggregate.count)).collect();
        if !lines.is_empty() {
            sections.push(Section { heading: format!("{} commands", names::protocol(protocol)), lines });
        }
    }
    sections.push(Section { heading: "Groups".to_owned(), lines: group_lines(report) });
    Table { columns: columns(), sections }.render(out, options.width, options.color);
    note(out, options);
    errors(out, report, options);
}

/// Commands by their total response time, the longest first; waits by design and encrypted frames last.
pub(super) fn in_order(report: &Report) -> Vec<&CommandRow> {
    let mut rows: Vec<&CommandRow> = report.aggregate.commands.iter().collect();
    rows.sort_by_key(|row| {
        let headline = row.groups.iter().any(|group| group.in_headline());
        (!headline, std::cmp::Reverse(row.row.time(TimeKind::ResponseTime).sum_ns))
    });
    rows
}

/// Name of a row; a command's waits say so, where the command has other uses.
pub(super) fn row_name(row: &CommandRow, all: &[CommandRow]) -> String {
    let name = names::command(row.command);
    let has_other = all.iter().any(|other| other.command == row.command && !other.waiting);
    if row.waiting && has_other { format!("{name} (waiting)") } else { name }
}

fn columns() -> Vec<Column> {
    let column = |head, expendable| Column { head, expendable };
    vec![
        column("Count", 0),
        column("%", 0),
        column("Err", 1),
        column("Untimed", 5),
        column("Pkts", 2),
        column("Fastest", 3),
        column("Median", 0),
        column("Average", 0),
        column("p95", 0),
        column("p99", 0),
        column("Slowest", 0),
        column("StdDev", 4),
        column("Service", 0),
    ]
}

fn cells(row: &Row, whole: u64) -> Vec<String> {
    let time = row.time(TimeKind::ResponseTime);
    let if_any = |n: u64| if n > 0 { thousands(n) } else { String::new() };
    let mut cells =
        vec![thousands(row.count), percent(row.count, whole), if_any(row.errors), if_any(row.untimed()), packets(row)];
    if row.timed > 0 {
        let service = row.time(TimeKind::ServiceTime).p50;
        let times = [time.min, time.p50, time.mean, time.p95, time.p99, time.max, time.stddev, service];
        cells.extend(times.map(compact));
    }
    cells
}

fn packets(row: &Row) -> String {
    average_packets(row.packets, row.packet_exchanges)
}

fn command_lines(command: &CommandRow, all: &[CommandRow], whole: u64) -> Vec<Line> {
    let mut lines = vec![Line { name: row_name(command, all), indent: 0, cells: cells(&command.row, whole) }];
    if names::shows_subcommands(command) {
        lines.extend(command.subcommands.iter().map(|part| Line {
            name: names::subcommand(part.subcommand),
            indent: 2,
            cells: cells(&part.row, whole),
        }));
    }
    lines.extend(command.apart.iter().map(|part| {
        // Not commands of their own: a share of all commands would not add up.
        let mut cells = cells(&part.row, whole);
        cells[1] = String::new();
        Line { name: names::subcommand(part.subcommand), indent: 2, cells }
    }));
    if command.row.count == 0 {
        lines[0].cells.clear();
    }
    lines
}

fn group_lines(report: &Report) -> Vec<Line> {
    let aggregate = &report.aggregate;
    let line = |name: &str, indent: usize, row: &Row| Line {
        name: name.to_owned(),
        indent,
        cells: cells(row, aggregate.count),
    };
    let mut lines = Vec::new();
    for group in Group::ALL {
        if let (Group::Attributes, Some(other)) = (group, &aggregate.other) {
            lines.push(line("Other", 0, other));
        }
        if group == Group::Waiting && aggregate.total.count > 0 {
            lines.push(line("All above", 0, &aggregate.total));
        }
        if let Some(found) = aggregate.groups.iter().find(|row| row.group == group) {
            lines.push(line(group.name(), if group.is_other() { 2 } else { 0 }, &found.row));
        }
    }
    lines
}

fn note(out: &mut String, options: &TextOptions) {
    let text = "Times are response times, from the first packet of the request to the last of the response. \
                Service is the median time from the last packet of the request to the first of the response.";
    for line in wrap(text, options.width) {
        Paint::Faint.line(out, &line, options.color);
    }
}

/// Error responses by command and status, the most frequent first.
fn errors(out: &mut String, report: &Report, options: &TextOptions) {
    let mut found: Vec<(u64, String, String, u64)> = Vec::new();
    for command in &report.aggregate.commands {
        let name = row_name(command, &report.aggregate.commands);
        for (status, count) in &command.row.statuses {
            found.push((*count, status.to_string(), name.clone(), command.row.count));
        }
        if command.row.other_statuses > 0 {
            found.push((command.row.other_statuses, "(other)".to_owned(), name, command.row.count));
        }
    }
    if found.is_empty() {
        return;
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (&a.1, &a.2).cmp(&(&b.1, &b.2))));
    out.push('\n');
    Paint::Heading.line(out, "Errors", options.color);
    for (count, status, command, whole) in found.iter().take(STATUSES_LISTED) {
        let share = percent_sign(*count, *whole);
        out.push_str(&format!("{:>12}  {status}  ({share} of {command})\n", thousands(*count)));
    }
    if found.len() > STATUSES_LISTED {
        let rest = &found[STATUSES_LISTED..];
        let count: u64 = rest.iter().map(|(count, ..)| count).sum();
        out.push_str(&format!("{:>12}  of {} further kinds\n", thousands(count), thousands(rest.len() as u64)));
    }
}

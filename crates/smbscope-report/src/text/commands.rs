//! Tables of commands and groups: how often, how many packets, and how long.

use super::style::Paint;
use super::table::{Column, Line, Section, Table};
use super::{TextOptions, percent_sign};
use crate::Report;
use crate::format::{average_packets, compact, thousands, unbroken, visible_percent, wrap};
use crate::names;
use smbscope_model::{Command, Group, Protocol, TimeKind};
use smbscope_stats::{CommandRow, Row, SubcommandRow};
use std::cmp::Reverse;

/// Statuses listed; the rest is added up.
const STATUSES_LISTED: usize = 20;

pub(super) fn render(out: &mut String, report: &Report, options: &TextOptions) {
    let ordered = in_order(report);
    let mut sections = Vec::new();
    for protocol in [Protocol::Smb1, Protocol::Smb2] {
        let rows = ordered.iter().filter(|row| section_of(row, report) == protocol);
        let lines: Vec<Line> = rows.flat_map(|row| command_lines(row, report)).collect();
        if !lines.is_empty() {
            sections.push(Section { heading: format!("{} commands", names::protocol(protocol)), lines });
        }
    }
    sections.push(Section { heading: "Groups".to_owned(), lines: group_lines(report) });
    let left_out = Table { columns: columns(), sections }.render(out, options.width, options.color);
    note(out, report, &left_out, options);
    errors(out, report, options);
}

/// Commands by their total response time, the longest first; waits by design and encrypted frames last.
pub(super) fn in_order(report: &Report) -> Vec<&CommandRow> {
    let mut rows: Vec<&CommandRow> = report.aggregate.commands.iter().collect();
    rows.sort_by_key(|row| {
        let headline = row.groups.iter().any(|group| group.in_headline());
        (!headline, Reverse(row.row.time(TimeKind::ResponseTime).sum_ns), Reverse(row.row.count))
    });
    rows
}

/// Parts of a command in the same order.
fn parts_in_order(parts: &[SubcommandRow]) -> Vec<&SubcommandRow> {
    let mut parts: Vec<&SubcommandRow> = parts.iter().collect();
    parts.sort_by_key(|part| (Reverse(part.row.time(TimeKind::ResponseTime).sum_ns), Reverse(part.row.count)));
    parts
}

/// Name of a row; a command's waits say so, where the command has other uses.
pub(super) fn row_name(row: &CommandRow, report: &Report) -> String {
    let name = names::command(row.command);
    if section_of(row, report) != row.command.protocol() {
        return format!("{name} (SMB1)");
    }
    let all = &report.aggregate.commands;
    let has_other = all.iter().any(|other| other.command == row.command && !other.waiting);
    if row.waiting && has_other { format!("{name} (waiting)") } else { name }
}

/// Below which protocol's heading a command stands: that of its messages, but an SMB1 NEGOTIATE that led to SMB2 is
/// no use of SMB1 (MS-SMB2 3.3.5.3) and must not look like one.
fn section_of(row: &CommandRow, report: &Report) -> Protocol {
    let is_opening = |command: Command| matches!(command, Command::Smb1(code) if code.0 == 0x72);
    let only_opens = || {
        let smb1 = |dialect: smbscope_model::Dialect| dialect.protocol() == Protocol::Smb1;
        let mut commands = report.aggregate.commands.iter();
        !report.connections.iter().any(|connection| connection.dialect.is_some_and(smb1))
            && report.connections.iter().any(|connection| connection.dialect.is_some())
            && commands.all(|row| row.command.protocol() == Protocol::Smb2 || is_opening(row.command))
    };
    if is_opening(row.command) && only_opens() { Protocol::Smb2 } else { row.command.protocol() }
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
    let mut cells = vec![
        thousands(row.count),
        visible_percent(row.count, whole),
        if_any(row.errors),
        if_any(row.untimed()),
        packets(row),
    ];
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

fn command_lines(command: &CommandRow, report: &Report) -> Vec<Line> {
    let whole = report.aggregate.count;
    let mut lines = vec![Line { name: row_name(command, report), indent: 0, cells: cells(&command.row, whole) }];
    if names::shows_subcommands(command) {
        lines.extend(parts_in_order(&command.subcommands).into_iter().map(|part| Line {
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
            lines.push(line("Other", 0, &other.row));
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

fn note(out: &mut String, report: &Report, left_out: &[&str], options: &TextOptions) {
    let mut text = "Times are response times, from the first packet of the request to the last of the response. \
                    Service is the median time from the last packet of the request to the first of the response."
        .to_owned();
    if report.aggregate.commands.iter().any(|row| section_of(row, report) != row.command.protocol()) {
        text += &format!(" {} opened connections that went on in SMB2/3.", unbroken("NEGOTIATE (SMB1)"));
    }
    if !left_out.is_empty() {
        text += &format!(" A wider page (--width) also shows {}.", left_out.join(", "));
    }
    for line in wrap(&text, options.width) {
        Paint::Faint.line(out, &line, options.color);
    }
}

/// Error responses by command and status, the most frequent first.
fn errors(out: &mut String, report: &Report, options: &TextOptions) {
    let mut found: Vec<(u64, String, String, u64)> = Vec::new();
    for command in &report.aggregate.commands {
        let name = row_name(command, report);
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

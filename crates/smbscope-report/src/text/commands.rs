//! Tables of commands and groups: how often, how many packets, and how long.

use super::page::Page;
use super::percent_sign;
use super::style::Paint;
use super::table::{Column, Line, Section, Table};
use crate::Report;
use crate::format::{average_packets, compact, thousands, unbroken, visible_percent};
use crate::names;
use smbscope_model::{Command, Group, Protocol, TimeKind};
use smbscope_stats::{CommandRow, Row, SubcommandRow};
use std::cmp::Reverse;

/// Statuses listed; the rest is added up.
const STATUSES_LISTED: usize = 20;

pub(super) fn render(page: &mut Page, report: &Report) {
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
    let left_out = Table { columns: columns(), sections }.render(page);
    note(page, report, &left_out);
    errors(page, report);
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
    Column::list(&[
        ("Count", 0),
        ("%", 0),
        ("Err", 1),
        ("Untimed", 5),
        ("Pkts", 2),
        ("Fastest", 3),
        ("Median", 0),
        ("Average", 0),
        ("p95", 0),
        ("p99", 0),
        ("Slowest", 0),
        ("StdDev", 4),
        ("Service", 0),
    ])
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
    let mut lines = vec![Line::new(row_name(command, report), cells(&command.row, whole))];
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
        Line::part(names::subcommand(part.subcommand), cells)
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
            lines.push(line(names::OTHER, 0, &other.row));
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

fn note(page: &mut Page, report: &Report, left_out: &[&str]) {
    let mut text = "Times are response times, from the first packet of the request to the last of the response. \
                    Service is the median time from the last packet of the request to the first of the response."
        .to_owned();
    if report.aggregate.commands.iter().any(|row| section_of(row, report) != row.command.protocol()) {
        text += &format!(" {} opened connections that went on in SMB2/3.", unbroken("NEGOTIATE (SMB1)"));
    }
    page.note(&text, left_out);
}

/// Error responses by command and status, the most frequent first.
fn errors(page: &mut Page, report: &Report) {
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
    page.heading("Errors");
    for (count, status, command, whole) in found.iter().take(STATUSES_LISTED) {
        let share = percent_sign(*count, *whole);
        page.line(Paint::Plain, &format!("{:>12}  {status}  ({share} of {command})", thousands(*count)));
    }
    if found.len() > STATUSES_LISTED {
        let rest = &found[STATUSES_LISTED..];
        let count: u64 = rest.iter().map(|(count, ..)| count).sum();
        page.line(
            Paint::Plain,
            &format!("{:>12}  of {} further kinds", thousands(count), thousands(rest.len() as u64)),
        );
    }
}

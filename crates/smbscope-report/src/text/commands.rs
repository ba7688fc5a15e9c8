//! Tables of commands and groups with counts, packets and times.

use super::page::TextPage;
use super::percent_sign;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::format::{average_packets, or_dash, thousands, unbroken};
use crate::names;
use smbscope_model::{Command, Nanos, Protocol};
use smbscope_stats::{CommandRow, CommandStatistics, SubcommandRow};
use std::borrow::Cow;
use std::cmp::Reverse;

/// Tabulates groups, then commands. With `most`, omits parts and lists at most this many commands.
pub(super) fn render(page: &mut TextPage, report: &Report, most: Option<usize>) {
    if report.aggregate.count == 0 {
        return;
    }
    let mut ordered = in_order(report);
    ordered.truncate(most.unwrap_or(usize::MAX));
    let is_brief = most.is_some();
    let mut table = TextTable::new(columns()).section("Groups", group_lines(report, is_brief));
    for protocol in [Protocol::Smb1, Protocol::Smb2] {
        let rows = ordered.iter().filter(|row| section_of(row, report) == protocol);
        let lines = rows.flat_map(|row| {
            let mut lines = command_lines(row, report);
            lines.truncate(if is_brief { 1 } else { usize::MAX });
            lines
        });
        table = table.section(format!("{} commands", names::protocol(protocol)), lines);
    }
    let left_out = table.render(page);
    if !is_brief {
        note(page, report, &left_out);
    }
}

/// Returns the commands by total response time, longest first. Expected waits and encrypted frames are last.
pub(super) fn in_order(report: &Report) -> Vec<&CommandRow> {
    let mut rows: Vec<&CommandRow> = report.aggregate.commands.iter().collect();
    rows.sort_by_key(|row| {
        let headline = row.groups.iter().any(|group| group.in_headline());
        (!headline, Reverse(row.row.response_time.sum_ns), Reverse(row.row.count))
    });
    rows
}

fn parts_in_order(parts: &[SubcommandRow]) -> Vec<&SubcommandRow> {
    let mut parts: Vec<&SubcommandRow> = parts.iter().collect();
    parts.sort_by_key(|part| (Reverse(part.row.response_time.sum_ns), Reverse(part.row.count)));
    parts
}

/// Returns the name of a row, marked `(waiting)` if the command has other uses too.
pub(super) fn row_name(row: &CommandRow, report: &Report) -> String {
    let name = names::command(row.command);
    if section_of(row, report) != row.command.protocol() {
        return format!("{name} (SMB1)");
    }
    let all = &report.aggregate.commands;
    let has_other = all.iter().any(|other| other.command == row.command && !other.waiting);
    if row.waiting && has_other { format!("{name} (waiting)") } else { name }
}

/// Returns the section of a command, which is the protocol of its messages. An SMB1 NEGOTIATE that led to SMB2 (MS-SMB2
/// 3.3.5.3) is listed under SMB2, so that SMB1 does not seem to be in use.
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

fn columns() -> Vec<TextColumn> {
    TextColumn::list(&[
        ("Count", 0),
        ("Share", 0),
        ("Errors", 0),
        ("Untimed", 6),
        ("Pkts", 3),
        ("Total wait", 0),
        ("Fastest", 4),
        ("Median", 0),
        ("Average", 2),
        ("p95", 0),
        ("p99", 0),
        ("Slowest", 0),
        ("StdDev", 5),
        ("Service", 1),
    ])
}

fn cells(row: &CommandStatistics, whole: u64) -> Vec<String> {
    let time = &row.response_time;
    let if_any = |n: u64| if n > 0 { thousands(n) } else { String::new() };
    let mut cells = vec![
        thousands(row.count),
        percent_sign(row.count, whole),
        if_any(row.errors()),
        if_any(row.untimed()),
        packets(row),
    ];
    if row.timed > 0 {
        cells.push(or_dash(Some(Nanos::saturating(time.sum_ns.max(0)))));
        let service = row.service_time.p50;
        let times = [time.min, time.p50, time.mean, time.p95, time.p99, time.max, time.stddev, service];
        cells.extend(times.map(or_dash));
    }
    cells
}

fn packets(row: &CommandStatistics) -> String {
    average_packets(row.packets, row.packet_exchanges)
}

fn command_lines(command: &CommandRow, report: &Report) -> Vec<TextTableLine> {
    let whole = report.aggregate.count;
    let own = if command.row.count == 0 { Vec::new() } else { cells(&command.row, whole) };
    let mut lines = vec![TextTableLine::new(row_name(command, report), own)];
    if names::shows_subcommands(command) {
        let parts = parts_in_order(&command.subcommands).into_iter();
        lines
            .extend(parts.map(|part| TextTableLine::part(names::subcommand(part.subcommand), cells(&part.row, whole))));
    }
    lines.extend(command.apart.iter().map(|part| {
        // These are not commands, so their shares would not add up.
        let mut cells = cells(&part.row, whole);
        cells[1] = String::new();
        TextTableLine::part(names::subcommand(part.subcommand), cells)
    }));
    lines
}

fn group_lines(report: &Report, is_brief: bool) -> Vec<TextTableLine> {
    let aggregate = &report.aggregate;
    let is_headline = |name: &str| names::groups().any(|(known, _, headline)| known == name && headline);
    let mut total = Some(&aggregate.total).filter(|total| total.count > 0);
    let mut lines = Vec::new();
    let rows = names::group_rows(aggregate).filter(|(_, part_of, _)| !is_brief || part_of.is_none());
    for (name, part_of, row) in rows {
        if !is_headline(name) {
            lines.extend(total.take().map(|total| TextTableLine::new("Total", cells(total, aggregate.count))));
        }
        let line = TextTableLine::new(name, cells(row, aggregate.count));
        lines.push(line.indented(if part_of.is_some() { 2 } else { 0 }));
    }
    lines.extend(total.map(|total| TextTableLine::new("Total", cells(total, aggregate.count))));
    lines
}

fn note(page: &mut TextPage, report: &Report, left_out: &[Cow<'_, str>]) {
    let mut text = "Times are response times, from the first packet of the request to the last of the response. \
                    Commands are sorted by Total wait, the sum of these times. Service is the median time from the \
                    last packet of the request to the first of the response. Share is the percentage of all commands."
        .to_owned();
    if report.aggregate.commands.iter().any(|row| section_of(row, report) != row.command.protocol()) {
        text += &format!(" {} opened connections that went on in SMB2/3.", unbroken("NEGOTIATE (SMB1)"));
    }
    page.note(&text, left_out);
}

pub(super) fn errors(page: &mut TextPage, report: &Report) {
    let mut found: Vec<(u64, String)> = Vec::new();
    for command in &report.aggregate.commands {
        let mut add = |status: &str, count: u64| {
            let share = percent_sign(count, command.row.count);
            found.push((count, format!("{status}  ({share} of {})", row_name(command, report))));
        };
        command.row.errors.iter().for_each(|(status, count)| add(status, *count));
    }
    page.counts("Errors", found);
}

//! Tables of commands and groups with counts, packets and times.

use super::percent_sign;
use crate::Report;
use crate::format::unbroken;
use crate::names;
use crate::page::TextPage;
use crate::tables::{
    COUNT, ColumnHead, ERRORS, RenderedTable, Row, TOTAL_WAIT, Table, Unit, Value, nonzero, percent_of,
};
use smbscope_model::{Command, Nanos, Protocol};
use smbscope_stats::{CommandRow, CommandStatistics, SubcommandRow};
use std::cmp::Reverse;

/// Tabulates groups, then commands. With `most`, omits parts and lists at most this many commands.
pub(super) fn render(page: &mut TextPage, report: &Report, most: Option<usize>) {
    if report.aggregate.count == 0 {
        return;
    }
    let mut ordered = in_order(report);
    ordered.truncate(most.unwrap_or(usize::MAX));
    let is_brief = most.is_some();
    let mut table = table().section("Groups", group_lines(report, is_brief));
    for protocol in [Protocol::Smb1, Protocol::Smb2] {
        let rows = ordered.iter().filter(|row| section_of(row, report) == protocol);
        let lines = rows.flat_map(|row| {
            let mut lines = command_lines(row, report);
            lines.truncate(if is_brief { 1 } else { usize::MAX });
            lines
        });
        table = table.section(format!("{} commands", names::protocol(protocol)), lines);
    }
    let rendered = table.render(page);
    if is_brief {
        rendered.note_cuts(page);
    } else {
        note(page, report, rendered);
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

/// Figures of a row, and the number of commands that its share refers to. None if the row is not part of them.
type Figures<'a> = (&'a CommandStatistics, Option<u64>);

fn table<'a>() -> Table<'a, Figures<'a>> {
    let head = |key, title, unit| ColumnHead::new(key, title, unit, "");
    Table::new()
        .column(COUNT, |(row, _): &Figures<'a>| row.count)
        .column(head("share", "Share", Unit::Percent).explained("percentage of all commands"), |(row, whole)| {
            whole.map(|whole| percent_of(row.count, whole))
        })
        .column(ERRORS, |(row, _)| nonzero(row.errors()))
        .column(
            head("untimed", "Untimed", Unit::Count).explained("commands without a response time").expendable(6),
            |(row, _)| nonzero(row.untimed()),
        )
        .column(
            head("packets", "Pkts", Unit::Number).explained("mean number of packets of a command").expendable(3),
            |(row, _)| {
                let mean = (row.packet_exchanges > 0).then(|| row.packets as f64 / row.packet_exchanges as f64);
                mean.map(|mean| Value::Number(mean, format!("{mean:.1}")))
            },
        )
        .column(TOTAL_WAIT.explained("sum of the response times"), |(row, _)| {
            Value::from(Nanos::saturating(row.response_time.sum_ns.max(0))).shown_if(row.timed > 0)
        })
        .times(
            &[("Fastest", 4), ("Median", 0), ("Average", 2), ("p95", 0), ("p99", 0), ("Slowest", 0), ("StdDev", 5)],
            |(row, _)| (row.timed > 0).then_some(&row.response_time),
        )
        .column(
            head("service", "Service", Unit::Duration)
                .explained("median time from the last packet of the request to the first of the response")
                .expendable(1),
            |(row, _)| Value::from(row.service_time.p50).shown_if(row.timed > 0),
        )
}

fn command_lines<'a>(command: &'a CommandRow, report: &Report) -> Vec<Row<Figures<'a>>> {
    let whole = Some(report.aggregate.count);
    let mut lines = vec![match command.row.count {
        0 => Row::heading(row_name(command, report)),
        _ => Row::new(row_name(command, report), (&command.row, whole)),
    }];
    if names::shows_subcommands(command) {
        let parts = parts_in_order(&command.subcommands).into_iter();
        lines.extend(parts.map(|part| Row::part(names::subcommand(part.subcommand), (&part.row, whole))));
    }
    // These are not commands, so their shares would not add up.
    lines.extend(command.apart.iter().map(|part| Row::part(names::subcommand(part.subcommand), (&part.row, None))));
    lines
}

fn group_lines(report: &Report, is_brief: bool) -> Vec<Row<Figures<'_>>> {
    let aggregate = &report.aggregate;
    let whole = Some(aggregate.count);
    let is_headline = |name: &str| names::groups().any(|(known, _, headline)| known == name && headline);
    let mut total = Some(&aggregate.total).filter(|total| total.count > 0);
    let mut lines = Vec::new();
    let rows = names::group_rows(aggregate).filter(|(_, part_of, _)| !is_brief || part_of.is_none());
    for (name, part_of, row) in rows {
        if !is_headline(name) {
            lines.extend(total.take().map(|total| Row::new("Total", (total, whole))));
        }
        lines.push(Row::new(name, (row, whole)).indented(if part_of.is_some() { 2 } else { 0 }));
    }
    lines.extend(total.map(|total| Row::new("Total", (total, whole))));
    lines
}

fn note(page: &mut TextPage, report: &Report, rendered: RenderedTable) {
    let mut text = "Times are response times, from the first packet of the request to the last of the response. \
                    Commands are sorted by Total wait."
        .to_owned();
    if report.aggregate.commands.iter().any(|row| section_of(row, report) != row.command.protocol()) {
        text += &format!(" {} opened connections that went on in SMB2/3.", unbroken("NEGOTIATE (SMB1)"));
    }
    rendered.note(page, &text);
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

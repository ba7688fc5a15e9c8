//! Report in the layout of 1997: Swartz, *Adding Response Time Measurement of CIFS File Server Performance to
//! NetBench*, appendix A, with its names and order, and columns in seconds.
//!
//! As in the paper, *Count* is the number of commands whose packets are all known (timed commands, and messages without
//! a response by design), while *% Tot* is the share of all SMB commands.

use crate::Report;
use crate::format::{average_packets, clean, clock, percent, seconds};
use crate::text::filter_note;
use crate::totals::{PacketCounts, control};
use crate::{names, warnings};
use smbscope_model::{DirectionCounts, Subcommand};
use smbscope_stats::{CommandRow, CommandStatistics, Distribution};
use std::fmt::Write;

const DECADES: [&str; 10] =
    ["<0.000001", "<0.00001", "<0.0001", "<0.001", "<0.01", "<0.1", "<1", "<10", "<100", ">=100"];

const PAPER: [(&str, &str); 2] = [
    ("request_end_missing", "final packet of SMB missing"),
    ("response_end_missing", "final packet of response missing"),
];

const STARS: f64 = 40.0;

pub fn render(report: &Report) -> String {
    let mut out = String::new();
    banner(&mut out, report);
    if let Some(note) = filter_note(report) {
        put(&mut out, &clean(&note));
    }
    put(&mut out, &format!("{}\n", report.quality_sentence()));
    packets(&mut out, report);
    let commands = by_name(report);
    command_table(&mut out, report, &commands);
    group_table(&mut out, report);
    command_distributions(&mut out, &commands);
    group_distributions(&mut out, report);
    warning_table(&mut out, report);
    out.lines().fold(String::with_capacity(out.len()), |all, line| all + line.trim_end() + "\n")
}

fn banner(out: &mut String, report: &Report) {
    let title = match (&report.title, report.captures.first()) {
        (Some(title), _) => clean(title),
        (None, Some(capture)) => clean(&capture.name),
        (None, None) => "SMB response times".to_owned(),
    };
    let stars = "*".repeat(title.chars().count() + 4);
    put(out, &format!("{stars}\n* {title} *\n{stars}\n"));
}

fn packets(out: &mut String, report: &Report) {
    let counts = PacketCounts::from_report(report);
    counted(out, "Packets:", counts.all, None);
    counted(out, "  IP/TCP:", counts.data(), Some(counts.all));
    counted(out, "  IP/TCP Ack:", counts.acks, Some(counts.all));
    counted(out, "  IP/TCP UAk:", counts.unacknowledged, Some(counts.all));
    if counts.others() > 0 {
        counted(out, "  not SMB:", counts.others(), Some(counts.all));
    }
    put(out, "");
    counted(out, "  retrans:", counts.retransmitted, Some(counts.all));
    put(out, &format!("{:<17}{:>10} (or more)\n", "  dropped:", counts.dropped));
    counted(out, "Continue:", counts.continuations, Some(counts.all));
    put(out, "");
    direction(out, "Commands:", &counts.commands, counts.all, Some(counts.asynchronous));
    direction(out, "Replies:", &counts.replies, counts.all, None);
    if let (Some(first), Some(last)) = (report.first, report.last) {
        let elapsed = last - first;
        put(out, &format!("Elapsed time: {} ({} seconds)\n", clock(elapsed), seconds(elapsed, 5)));
    }
}

fn counted(out: &mut String, label: &str, count: u64, whole: Option<u64>) {
    let share = whole.map_or_else(String::new, |whole| format!("{:>7}%", percent(count, whole)));
    put(out, &format!("{label:<17}{count:>10}{share}"));
}

fn direction(out: &mut String, label: &str, counts: &DirectionCounts, all: u64, asynchronous: Option<u64>) {
    let mut line = |label: &str, count: u64, whole: u64, inset: usize| {
        put(out, &format!("{label:<17}{count:>10}{:>inset$}{:>7}%", "", percent(count, whole)));
    };
    line(label, counts.packets, all, 0);
    line("  SMB:", counts.message_packets, counts.packets, 0);
    line("  continue:", counts.continuation_packets, counts.packets, 0);
    if let Some(asynchronous) = asynchronous {
        let synchronous = counts.continuation_packets - asynchronous;
        line("    sync:", synchronous, counts.continuation_packets, 8);
        line("    async:", asynchronous, counts.continuation_packets, 8);
    }
    line("  TCP ack:", counts.pure_acks, counts.packets, 0);
    line("  TCP retry:", counts.retransmitted, counts.packets, 0);
    if control(counts) > 0 {
        line("  TCP control:", control(counts), counts.packets, 0);
    }
    put(out, "");
}

/// Returns the commands by name, as in the paper, SMB1 before SMB2.
fn by_name(report: &Report) -> Vec<(String, &CommandRow)> {
    let all = &report.aggregate.commands;
    let mut commands: Vec<(String, &CommandRow)> = all
        .iter()
        .map(|row| {
            let name = names::classic_command(row.command);
            let has_other = all.iter().any(|other| other.command == row.command && !other.waiting);
            (if row.waiting && has_other { format!("{name} (waiting)") } else { name }, row)
        })
        .collect();
    commands.sort_by(|a, b| (a.1.command.protocol(), &a.0).cmp(&(b.1.command.protocol(), &b.0)));
    commands
}

fn command_table(out: &mut String, report: &Report, commands: &[(String, &CommandRow)]) {
    put(out, &head("SMB Command", "Avg."));
    for (name, command) in commands {
        put(out, &table_line(name, &command.row, report.aggregate.count));
        if names::shows_subcommands(command) {
            for part in &command.subcommands {
                let name = format!("  {}", names::classic_subcommand(part.subcommand));
                put(out, &table_line(&name, &part.row, report.aggregate.count));
            }
        }
        for part in &command.apart {
            let name = format!("  {}", names::classic_subcommand(part.subcommand));
            let packets = average_packets(part.row.packets, part.row.packet_exchanges);
            put(out, &format!("{name:<26}{:>7}{:>8}{packets:>6}", "", ""));
        }
    }
    put(out, "");
}

fn group_table(out: &mut String, report: &Report) {
    put(out, &head("Groups:", ""));
    for (name, row) in groups(report, "  ") {
        put(out, &table_line(&name, row, report.aggregate.count));
    }
    put(out, "");
}

fn head(name: &str, packets: &str) -> String {
    let first = format!("{:<26}{:>7}{:>8}{packets:>6}\n", "", "", "");
    let first = if packets.is_empty() { String::new() } else { first };
    let columns = ["Fastest", "Slowest", "Median", "Average"].map(|column| format!("{column:>10}")).concat();
    format!("{first}{name:<26}{:>7}{:>8}{:>6}{columns}{:>9}", "Count", "% Tot", "Pkts", "StdDev")
}

fn table_line(name: &str, row: &CommandStatistics, whole: u64) -> String {
    let count = row.packet_exchanges;
    let packets = average_packets(row.packets, count);
    let mut line = format!("{name:<26}{count:>7}{:>7}%{packets:>6}", percent(count, whole));
    let time = &row.response_time;
    for time in [time.min, time.max, time.p50, time.mean].into_iter().flatten() {
        let _ = write!(line, "{:>10}", seconds(time, 5));
    }
    if let Some(stddev) = time.stddev {
        let _ = write!(line, "{:>9}", seconds(stddev, 4));
    }
    line
}

/// Returns the groups that occurred. *Other* comes before its parts, which get a prefix.
fn groups<'a>(report: &'a Report, part_prefix: &str) -> impl Iterator<Item = (String, &'a CommandStatistics)> {
    names::group_rows(&report.aggregate)
        .map(move |(name, part_of, row)| (format!("{}{name}", part_of.map_or("", |_| part_prefix)), row))
}

fn command_distributions(out: &mut String, commands: &[(String, &CommandRow)]) {
    put(out, "Response time distributions per command:\n");
    for (name, command) in commands {
        let raw = command.apart.iter().any(|part| part.subcommand == Subcommand::AsyncPortion);
        let note = if raw { " (synchronous portion only)" } else { "" };
        distribution(out, &format!("{name}{note}"), &command.row.distribution);
        if names::shows_subcommands(command) {
            for part in &command.subcommands {
                let part_name = names::classic_subcommand(part.subcommand);
                distribution(out, &format!("{name} ({part_name})"), &part.row.distribution);
            }
        }
    }
}

fn group_distributions(out: &mut String, report: &Report) {
    for (name, row) in groups(report, "Other.") {
        distribution(out, &format!("Group - {name}"), &row.distribution);
    }
}

fn distribution(out: &mut String, name: &str, distribution: &Distribution) {
    let decades = distribution.decades();
    if decades.is_empty() {
        return;
    }
    put(out, &format!("{name}:"));
    for decade in decades {
        let stars = "*".repeat((decade.percent / 100.0 * STARS).round() as usize);
        let (count, percent, cumulative) = (decade.count, decade.percent, decade.cumulative_percent);
        put(out, &format!("  {:<10}{count:>9}{percent:>7.1}%{cumulative:>8.1}%  {stars}", DECADES[decade.index]));
    }
    put(out, "");
}

fn warning_table(out: &mut String, report: &Report) {
    let warnings = warnings::of_report(report);
    if warnings.is_empty() {
        return;
    }
    put(out, "Warnings:");
    for warning in warnings {
        let paper = PAPER.iter().find(|(counter, _)| warning.counter == Some(counter));
        let text = paper.map_or_else(|| clean(&warning.text), |(_, text)| (*text).to_owned());
        match (warning.count, warning.share) {
            (Some(count), Some((whole, _))) => {
                put(out, &format!("  {:<60}{count:>10}{:>7}%", text + ":", percent(count, whole)))
            }
            (Some(count), None) => put(out, &format!("  {:<60}{count:>10}", text + ":")),
            (None, _) => put(out, &format!("  {text}")),
        }
    }
}

fn put(out: &mut String, lines: &str) {
    for line in lines.split('\n') {
        out.push_str(&clean(line));
        out.push('\n');
    }
}

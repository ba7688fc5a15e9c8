//! Tables of commands and groups with counts, packets and times; the response time distribution by decade, and the
//! timeline with throughput, errors and response times per bin.
//!
//! Bands of the distribution state both bounds, since "below 1 ms" would include all faster bands.

use super::percent_sign;
use crate::format::{date, share, span, time_of_day, unbroken, visible_percent};
use crate::page::{Paint, TextPage, bar, level};
use crate::tables::{
    COUNT, ColumnHead, ERRORS, RenderedTable, Row, TOTAL_WAIT, Table, Unit, Value, nonzero, per_second, percent_of,
};
use crate::{Report, names};
use smbscope_model::{Command, Nanos, Protocol, Timestamp};
use smbscope_stats::{CommandRow, CommandStatistics, Decade, Distribution, SubcommandRow, TimelineCounts};
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
fn in_order(report: &Report) -> Vec<&CommandRow> {
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
fn row_name(row: &CommandRow, report: &Report) -> String {
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

/// Heading of the bands, as wide as the widest band, so that the tables of all reports look alike.
const BANDS: &str = "    Band         ";

/// Widest bar, and the width of the columns before it.
const BAR_MAX: usize = 50;
const BAR_INDENT: usize = 50;

const HEADING: &str = "Share by band, %\n(from, to)";

const NAME_MIN: usize = 18;

/// Width of a share with blanks and its character of the histogram.
const SHARE: usize = 6;

pub(super) fn distribution(page: &mut TextPage, report: &Report) {
    groups(page, report);
    commands(page, report);
}

fn groups(page: &mut TextPage, report: &Report) {
    let width = page.width().saturating_sub(BAR_INDENT).min(BAR_MAX);
    let mut lines = Vec::new();
    for (name, part_of, row) in names::group_rows(&report.aggregate).filter(|(.., row)| row.timed > 0) {
        let name = part_of.map_or_else(|| name.to_owned(), |whole| format!("{whole}: {name}"));
        lines.push(Row::across(Paint::Plain, name).indented(2));
        let decades = row.distribution.decades().into_iter();
        lines.extend(decades.map(|decade| Row::new(band_name(decade.index), decade).indented(4)));
    }
    let percent = |percent: f64| Value::Number(percent, format!("{percent:.1}%"));
    Table::new()
        .titled("Latency distribution by group")
        .column(
            ColumnHead::new("commands", "Commands", Unit::Count, "timed commands in the band").at_least(9),
            |decade: &Decade| decade.count,
        )
        .column(
            ColumnHead::new("share", "Share", Unit::Percent, "percentage of the group").at_least(7).set_off(),
            |decade| percent(decade.percent),
        )
        .column(
            ColumnHead::new("cumulative", "Cumulative", Unit::Percent, "percentage in this band or a faster one")
                .set_off(),
            |decade| percent(decade.cumulative_percent),
        )
        .column(ColumnHead::chart("bar").set_off(), |decade| bar(decade.percent, 100.0, width))
        .section(BANDS, lines)
        .render(page);
}

fn commands(page: &mut TextPage, report: &Report) {
    let rows: Vec<(String, &CommandStatistics)> = in_order(report)
        .into_iter()
        .filter(|row| row.row.timed > 0)
        .map(|row| (row_name(row, report), &row.row))
        .collect();
    let mut whole = Distribution::default();
    rows.iter().for_each(|(_, row)| whole.merge(&row.distribution));
    let mut decades: Vec<usize> = whole.decades().iter().map(|decade| decade.index).collect();
    // Bands that don't fit are merged into the next one, which then starts at 0.
    let fitting = (page.width().saturating_sub(NAME_MIN + 2) / (SHARE + 2)).max(1);
    decades.drain(..decades.len().saturating_sub(fitting));
    let Some(&lowest) = decades.first() else { return };
    let from = |index: usize| if index == lowest { "0".to_owned() } else { band_from(index) };
    let mut table = Table::new().names(NAME_MIN..=usize::MAX);
    for &index in &decades {
        let head = ColumnHead::new("band", "", Unit::Percent, "").keyed(format!("band_{index}"));
        let head = head.titled(format!("{}\n{}", from(index), band_to(index))).at_least(SHARE);
        table = table.column(head, move |(counts, timed): &([u64; 10], u64)| match counts[index] {
            0 => Value::Text("·".to_owned()),
            count => Value::Number(share(count, *timed), visible_percent(count, *timed)),
        });
    }
    let shape = |(counts, timed): &([u64; 10], u64)| -> String {
        decades.iter().map(|index| level(counts[*index] as f64, *timed as f64).unwrap_or(' ')).collect()
    };
    let lines = rows.into_iter().map(|(name, row)| {
        let mut counts = row.distribution.counts();
        counts[lowest] = counts[..=lowest].iter().sum();
        Row::new(name, (counts, row.timed))
    });
    table.column(ColumnHead::chart("shape").set_off(), shape).section(HEADING, lines).render(page);
}

/// Formats a band by its index: `100 µs – 1 ms`, `< 1 µs`, `≥ 100 s`.
fn band_name(index: usize) -> String {
    let edge = |index: usize| Distribution::EDGES.get(index).map(|edge| round(&edge.to_string()));
    match (index.checked_sub(1).and_then(edge), edge(index)) {
        (Some(from), Some(to)) => match (from.split_once(' '), to.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} – {to}"),
            _ => format!("{from} – {to}"),
        },
        (None, Some(to)) => format!("< {to}"),
        (from, None) => format!("≥ {}", from.unwrap_or_default()),
    }
}

fn band_from(index: usize) -> String {
    let edge = index.checked_sub(1).and_then(|index| Distribution::EDGES.get(index));
    edge.map_or_else(|| "0".to_owned(), |edge| round(&edge.to_string()).replace(' ', ""))
}

fn band_to(index: usize) -> String {
    let edge = Distribution::EDGES.get(index);
    edge.map_or_else(|| "–∞".to_owned(), |edge| format!("–{}", round(&edge.to_string()).replace(' ', "")))
}

fn round(time: &str) -> String {
    let (number, unit) = time.split_once(' ').unwrap_or((time, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

const TIMELINE_BAR_MAX: usize = 40;

const INDENT: usize = 2;

const BAR_HEADING: &str = "Total wait";

pub(super) fn timeline(page: &mut TextPage, report: &Report) {
    let timeline = &report.aggregate.timeline;
    if report.interval.is_none() || timeline.bins.is_empty() {
        return;
    }
    let decimals = decimals(timeline.width);
    let clock = 8 + if decimals > 0 { decimals + 1 } else { 0 };
    let seconds = timeline.width.as_secs_f64();
    let megabytes = move |bytes: u64| {
        let per_second = bytes as f64 / seconds;
        Value::Number(per_second, format!("{:.2}", per_second / 1e6))
    };
    let head = |key, title, unit, about, width| ColumnHead::new(key, title, unit, about).at_least(width);
    let mut table = Table::new()
        .column(
            head("commands", "Commands", Unit::Count, "commands that began in the bin", 8),
            |bin: &&TimelineCounts| bin.commands,
        )
        .column(head("commands_per_second", "/s", Unit::PerSecond, "commands per second", 8), |bin| {
            per_second(bin.commands as f64 / seconds)
        })
        .column(ERRORS.at_least(7), |bin| nonzero(bin.errors))
        .column(head("request_bytes", "MB/s up", Unit::BytesPerSecond, "", 8).explained("requests"), |bin| {
            megabytes(bin.request_bytes)
        })
        .column(head("response_bytes", "MB/s down", Unit::BytesPerSecond, "", 9).explained("responses"), |bin| {
            megabytes(bin.response_bytes)
        })
        .column(head("mean_ns", "Average", Unit::Duration, "mean response time", 8), |bin| {
            (bin.timed > 0).then(|| Value::from(Nanos((bin.response_time_sum_ns / i128::from(bin.timed)) as i64)))
        })
        .column(head("max_ns", "Slowest", Unit::Duration, "longest response time", 8), |bin| bin.response_time_max);
    let taken = INDENT + clock + table.room() + 2;
    // A narrow page has no room for bars or their heading.
    let room = Some(page.width().saturating_sub(taken).min(TIMELINE_BAR_MAX)).filter(|room| *room >= BAR_HEADING.len());
    let most = timeline.bins.iter().map(|(_, bin)| bin.response_time_sum_ns).max().unwrap_or(0) as f64;
    if let Some(room) = room {
        let head = ColumnHead::chart("total_wait").titled(BAR_HEADING).set_off();
        table = table.column(head.explained("sum of the response times"), move |bin| {
            bar(bin.response_time_sum_ns as f64, most, room)
        });
    }
    let mut lines = Vec::new();
    let mut day = None;
    let mut next: Option<Timestamp> = None;
    for (start, bin) in &timeline.bins {
        if let Some(gap) = next.map(|next| *start - next).filter(|gap| gap.0 > 0) {
            lines.push(Row::across(Paint::Faint, format!("… {} without a command", span(gap))));
        }
        let today = date(*start).map(|date| date.chars().take(10).collect::<String>());
        if today != day {
            let named = today.as_deref().unwrap_or("unknown date,");
            lines.push(Row::across(Paint::Plain, format!("{named} UTC")));
            day = today;
        }
        lines.push(Row::new(time_of_day(*start, decimals), bin));
        next = Some(Timestamp(start.0.saturating_add(timeline.width.0)));
    }
    let title = format!("Time line, in bins of {}", span(timeline.width));
    let rendered = table.titled(title).section("", lines.into_iter().map(|line| line.indented(INDENT))).render(page);
    rendered.note(page, "");
}

/// Returns the decimals of a second needed to show the start of bins.
fn decimals(width: Nanos) -> usize {
    [(1_000_000_000, 0), (1_000_000, 3), (1_000, 6)]
        .into_iter()
        .find(|(unit, _)| width.0 % unit == 0)
        .map_or(9, |(_, decimals)| decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_named_by_both_edges() {
        let names: Vec<String> = (0..10).map(band_name).collect();
        let expected = [
            "< 1 µs",
            "1 – 10 µs",
            "10 – 100 µs",
            "100 µs – 1 ms",
            "1 – 10 ms",
            "10 – 100 ms",
            "100 ms – 1 s",
            "1 – 10 s",
            "10 – 100 s",
            "≥ 100 s",
        ];
        assert_eq!(names, expected);
        assert_eq!([band_from(3), band_to(3), band_from(0), band_to(9)], ["100µs", "–1ms", "0", "–∞"]);
    }
}

//! Timeline: a line per bin with throughput, errors and response times.

use super::bars::bar;
use super::page::TextPage;
use super::style::Paint;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::format::{date, or_dash, rate, span, thousands, time_of_day};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::TimelineCounts;

const BAR_MAX: usize = 40;

const INDENT: usize = 2;

/// Columns of a bin with their minimum widths.
const COLUMNS: [(&str, usize); 7] =
    [("Commands", 8), ("/s", 8), ("Errors", 7), ("MB/s up", 8), ("MB/s down", 9), ("Average", 8), ("Slowest", 8)];

const BAR_HEADING: &str = "Total wait";

pub(super) fn render(page: &mut TextPage, report: &Report) {
    let timeline = &report.aggregate.timeline;
    if report.interval.is_none() || timeline.bins.is_empty() {
        return;
    }
    let decimals = decimals(timeline.width);
    let clock = 8 + if decimals > 0 { decimals + 1 } else { 0 };
    let mut columns: Vec<TextColumn> = COLUMNS.map(|(head, width)| TextColumn::new(head).at_least(width)).into();
    let taken = INDENT + clock + columns.iter().map(TextColumn::room).sum::<usize>() + 2;
    // A narrow page has no room for bars or their heading.
    let room = Some(page.width().saturating_sub(taken).min(BAR_MAX)).filter(|room| *room >= BAR_HEADING.len());
    if room.is_some() {
        columns.push(TextColumn::new(BAR_HEADING).set_off().left_aligned());
    }
    let most = timeline.bins.iter().map(|(_, bin)| bin.response_time_sum_ns).max().unwrap_or(0);
    let mut lines = Vec::new();
    let mut day = None;
    let mut next: Option<Timestamp> = None;
    for (start, bin) in &timeline.bins {
        if let Some(gap) = next.map(|next| *start - next).filter(|gap| gap.0 > 0) {
            lines.push(TextTableLine::across(Paint::Faint, format!("… {} without a command", span(gap))));
        }
        let today = date(*start).map(|date| date.chars().take(10).collect::<String>());
        if today != day {
            let named = today.as_deref().unwrap_or("unknown date,");
            lines.push(TextTableLine::across(Paint::Plain, format!("{named} UTC")));
            day = today;
        }
        let bar = room.map(|room| bar(bin.response_time_sum_ns as f64, most as f64, room));
        let cells = cells(bin, timeline.width).into_iter().chain(bar).collect();
        lines.push(TextTableLine::new(time_of_day(*start, decimals), cells));
        next = Some(Timestamp(start.0.saturating_add(timeline.width.0)));
    }
    let title = format!("Time line, in bins of {}", span(timeline.width));
    TextTable::new(columns).titled(title).section("", lines.into_iter().map(|line| line.indented(INDENT))).render(page);
    let mut note = "MB/s are those of requests (up) and responses (down).".to_owned();
    if room.is_some() {
        note += &format!(" {BAR_HEADING} is the sum of the response times.");
    }
    page.paragraph(Paint::Faint, &note);
}

fn cells(bin: &TimelineCounts, width: Nanos) -> [String; 7] {
    let seconds = width.as_secs_f64();
    let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6 / seconds);
    let mean = (bin.timed > 0).then(|| Nanos((bin.response_time_sum_ns / i128::from(bin.timed)) as i64));
    [
        thousands(bin.commands),
        rate(bin.commands as f64 / seconds),
        if bin.errors > 0 { thousands(bin.errors) } else { String::new() },
        megabytes(bin.request_bytes),
        megabytes(bin.response_bytes),
        or_dash(mean),
        or_dash(bin.response_time_max),
    ]
}

/// Returns the decimals of a second needed to show the start of bins.
fn decimals(width: Nanos) -> usize {
    [(1_000_000_000, 0), (1_000_000, 3), (1_000, 6)]
        .into_iter()
        .find(|(unit, _)| width.0 % unit == 0)
        .map_or(9, |(_, decimals)| decimals)
}

//! The time line: a line a bin, with what was asked and answered, and how long it took.

use super::distribution::bar;
use super::page::Page;
use super::style::Paint;
use crate::Report;
use crate::format::{compact, date, rate, span, thousands, time_of_day};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::Bin;

/// Widest bar.
const BAR_MAX: usize = 40;

/// What the bars show.
const BAR_HEADING: &str = "Waited";

pub(super) fn render(page: &mut Page, report: &Report) {
    let timeline = &report.aggregate.timeline;
    if report.interval.is_none() || timeline.bins.is_empty() {
        return;
    }
    let decimals = decimals(timeline.width);
    let clock = 8 + if decimals > 0 { decimals + 1 } else { 0 };
    let head = format!(
        "  {:clock$} {:>8} {:>8} {:>7} {:>8} {:>9} {:>8} {:>8}",
        "", "Commands", "/s", "Err", "MB/s up", "MB/s down", "Average", "Slowest",
    );
    let room = page.width().saturating_sub(head.chars().count() + 2).min(BAR_MAX);
    // A narrow page has no room for bars, nor for their heading.
    let (bars, room) = if room < BAR_HEADING.len() { ("", 0) } else { (BAR_HEADING, room) };
    page.heading(&format!("Time line, in bins of {}", span(timeline.width)));
    page.line(Paint::Heading, format!("{head}  {bars}").trim_end());

    let most = timeline.bins.iter().map(|(_, bin)| bin.response_time_sum_ns).max().unwrap_or(0).max(1);
    let mut day = None;
    let mut next: Option<Timestamp> = None;
    for (start, bin) in &timeline.bins {
        if let Some(gap) = next.map(|next| *start - next).filter(|gap| gap.0 > 0) {
            page.line(Paint::Faint, &format!("  … {} without a command", span(gap)));
        }
        let today = date(*start).map(|date| date.chars().take(10).collect::<String>());
        if today != day {
            page.line(Paint::Plain, &format!("  {} UTC", today.as_deref().unwrap_or("unknown date,")));
            day = today;
        }
        let bar = bar(100.0 * bin.response_time_sum_ns as f64 / most as f64, room);
        let text = format!("  {} {}  {bar}", time_of_day(*start, decimals), cells(bin, timeline.width));
        page.line(Paint::Plain, text.trim_end());
        next = Some(Timestamp(start.0.saturating_add(timeline.width.0)));
    }
    let mut note = "MB/s are those of requests (up) and responses (down).".to_owned();
    if room > 0 {
        note += &format!(" {BAR_HEADING} is the sum of the response times.");
    }
    page.paragraph(Paint::Faint, &note);
}

/// The figures of a bin.
fn cells(bin: &Bin, width: Nanos) -> String {
    let seconds = width.as_secs_f64();
    let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6 / seconds);
    let mean = (bin.timed > 0).then(|| Nanos((bin.response_time_sum_ns / i128::from(bin.timed)) as i64));
    format!(
        "{:>8} {:>8} {:>7} {:>8} {:>9} {:>8} {:>8}",
        thousands(bin.commands),
        rate(bin.commands as f64 / seconds),
        if bin.errors > 0 { thousands(bin.errors) } else { String::new() },
        megabytes(bin.request_bytes),
        megabytes(bin.response_bytes),
        compact(mean),
        compact(bin.response_time_max),
    )
}

/// Decimals of a second that the starts of bins need.
fn decimals(width: Nanos) -> usize {
    [(1_000_000_000, 0), (1_000_000, 3), (1_000, 6)]
        .into_iter()
        .find(|(unit, _)| width.0 % unit == 0)
        .map_or(9, |(_, decimals)| decimals)
}

//! The time line: a line a bin, with what was asked and answered, and how long it took.

use super::TextOptions;
use super::distribution::bar;
use super::style::Paint;
use crate::Report;
use crate::format::{compact, date, span, thousands, time_of_day, wrap};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::{Bin, Timeline};

/// Widest bar.
const BAR_MAX: usize = 40;

pub(super) fn render(out: &mut String, report: &Report, options: &TextOptions) {
    let timeline = &report.aggregate.timeline;
    if report.interval.is_none() || timeline.bins.is_empty() {
        return;
    }
    let decimals = decimals(timeline.width);
    let clock = 8 + if decimals > 0 { decimals + 1 } else { 0 };
    out.push('\n');
    Paint::Heading.line(out, &format!("Time line, {} a line", span(timeline.width)), options.color);
    let head = format!(
        "  {:clock$}{:>9}{:>9}{:>8}{:>9}{:>10}{:>9}{:>9}  Waited",
        "", "Commands", "/s", "Err", "MB/s up", "MB/s down", "Average", "Slowest",
    );
    Paint::Heading.line(out, &head, options.color);
    let most = timeline.bins.iter().map(|(_, bin)| bin.response_time_sum_ns).max().unwrap_or(0);
    let bar_room = options.width.saturating_sub(clock + 67).min(BAR_MAX);
    let mut day = None;
    let mut next: Option<Timestamp> = None;
    for (start, bin) in &timeline.bins {
        if let Some(gap) = next.map(|next| *start - next).filter(|gap| gap.0 > 0) {
            Paint::Faint.line(out, &format!("  … {} without a command", span(gap)), options.color);
        }
        let today = date(*start).map(|date| date.chars().take(10).collect::<String>());
        if today != day {
            out.push_str(&format!("  {} UTC\n", today.as_deref().unwrap_or("unknown date,")));
            day = today;
        }
        line(
            out,
            *start,
            bin,
            timeline,
            decimals,
            bar(100.0 * bin.response_time_sum_ns as f64 / most.max(1) as f64, bar_room),
            options,
        );
        next = Some(Timestamp(start.0.saturating_add(timeline.width.0)));
    }
    let note = "MB/s are those of requests (up) and responses (down); Waited is the sum of the response times.";
    wrap(note, options.width).iter().for_each(|line| Paint::Faint.line(out, line, options.color));
}

fn line(
    out: &mut String,
    start: Timestamp,
    bin: &Bin,
    timeline: &Timeline,
    decimals: usize,
    bar: String,
    options: &TextOptions,
) {
    let seconds = timeline.width.as_secs_f64();
    let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6 / seconds);
    let mean = (bin.timed > 0).then(|| Nanos((bin.response_time_sum_ns / i128::from(bin.timed)) as i64));
    let text = format!(
        "  {}{:>9}{:>9}{:>8}{:>9}{:>10}{:>9}{:>9}  {bar}",
        time_of_day(start, decimals),
        thousands(bin.commands),
        rate(bin.commands as f64 / seconds),
        if bin.errors > 0 { thousands(bin.errors) } else { String::new() },
        megabytes(bin.request_bytes),
        megabytes(bin.response_bytes),
        compact(mean),
        compact(bin.response_time_max),
    );
    Paint::Plain.line(out, text.trim_end(), options.color);
}

/// Decimals of a second that the starts of bins need.
fn decimals(width: Nanos) -> usize {
    [(1_000_000_000, 0), (1_000_000, 3), (1_000, 6)]
        .into_iter()
        .find(|(unit, _)| width.0 % unit == 0)
        .map_or(9, |(_, decimals)| decimals)
}

/// As many decimals as a small number needs.
fn rate(per_second: f64) -> String {
    if per_second < 99.95 { format!("{per_second:.1}") } else { thousands(per_second.round() as u64) }
}

//! Table of slices, in the requested order.

use super::page::TextPage;
use super::percent_sign;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::format::{bytes, counted, or_dash, shorten_path, span, thousands, unbroken};
use crate::json::slices::{SliceEntry, SliceFigures, SliceListing};
use crate::slices::{heading, name};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, SLICES_MAX};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Width of the name column, which holds paths and pairs of addresses.
const NAMES: RangeInclusive<usize> = 32..=80;

pub(crate) fn render(page: &mut TextPage, slices: &SliceListing, top: usize) {
    if slices.entries.is_empty() {
        return;
    }
    let waited = SliceFigures::sum(slices.entries.iter().map(|entry| &entry.figures).chain(&slices.other));
    let waited = waited.response_time_sum_ns;
    let (listed, rest) = slices.entries.split_at(slices.entries.len().min(top));
    let line = |entry: &SliceEntry| TextTableLine::new(name(&entry.key), cells(&entry.figures, waited));
    let mut lines: Vec<TextTableLine> = listed.iter().map(line).collect();
    let others = SliceFigures::sum(rest.iter().map(|entry| &entry.figures).chain(&slices.other));
    if others.count > 0 {
        let name = match &slices.other {
            Some(_) => "(others)".to_owned(),
            None => format!("({})", counted(rest.len() as u64, "other", "others")),
        };
        lines.push(TextTableLine::new(name, cells(&others, waited)));
    }
    let table = TextTable::new(columns(&slices.sort)).names(NAMES).section(heading(&slices.by), lines);
    let left_out = table.with_shorter(page.width(), shorten_path).render(page);
    note(page, slices, &left_out);
}

/// Returns the columns. The one that sorts the slices is never left out.
fn columns(sort: &str) -> Vec<TextColumn> {
    let unless = |by: &str, expendable: u8| if sort == by { 0 } else { expendable };
    TextColumn::list(&[
        ("Count", 0),
        ("Total wait", 0),
        ("Share", 0),
        ("Errors", unless("errors", 4)),
        ("Read", unless("bytes", 6)),
        ("Written", unless("bytes", 7)),
        ("Median", 0),
        ("Average", unless("mean", 1)),
        ("p95", 0),
        ("p99", unless("p99", 2)),
        ("Slowest", 0),
        ("Service", unless("service_time", 3)),
    ])
}

/// Formats a row. Sums of several slices have no percentiles.
fn cells(slice: &SliceFigures, waited: i64) -> Vec<String> {
    let if_any = |n: u64, show: fn(u64) -> String| if n > 0 { show(n) } else { String::new() };
    let if_timed = |text: String| if slice.timed > 0 { text } else { String::new() };
    let mut cells = vec![
        thousands(slice.count),
        if_timed(or_dash(Some(Nanos(slice.response_time_sum_ns.max(0))))),
        if_timed(part_of(slice.response_time_sum_ns, waited)),
        if_any(slice.errors, thousands),
        if_any(slice.bytes_read, bytes),
        if_any(slice.bytes_written, bytes),
    ];
    let DurationStatistics { p50, mean, p95, p99, max, .. } = slice.response_time;
    if slice.timed > 0 && p50.is_some() {
        cells.extend([p50, mean, p95, p99, max, slice.service_time.p50].map(or_dash));
    } else if slice.timed > 0 {
        cells.extend([String::new(), or_dash(mean), String::new(), String::new(), or_dash(max)]);
    }
    cells
}

fn part_of(part: i64, whole: i64) -> String {
    let micros = |ns: i64| (ns.max(0) / 1_000) as u64;
    percent_sign(micros(part), micros(whole))
}

fn note(page: &mut TextPage, slices: &SliceListing, left_out: &[Cow<'_, str>]) {
    let mut text =
        "Total wait is the sum of response times, Share that of the total wait; expected waits count as commands only."
            .to_owned();
    if slices.missed_at_most_ns > 0 {
        let most = thousands(SLICES_MAX as u64);
        let missed = Nanos(slices.missed_at_most_ns);
        text += &format!(
            " There are more than {most} slices: those with the largest total wait are kept, and may lack up to {} each.",
            unbroken(span(missed))
        );
    }
    page.note(&text, left_out);
}

//! The table of slices: who, where or what waited, the longest first or in the order asked for.

use super::page::Page;
use super::percent_sign;
use super::table::{Column, Line, Table};
use crate::Report;
use crate::format::{bytes, compact, counted, shorten_path, span, thousands, unbroken};
use crate::slices::{Sum, heading, name};
use smbscope_model::Nanos;
use smbscope_stats::{SLICES_MAX, Slice, Slices};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The name column, which holds paths and pairs of addresses.
const NAMES: RangeInclusive<usize> = 35..=80;

pub(super) fn render(page: &mut Page, report: &Report, top: usize) {
    let Some(slices) = &report.slices else { return };
    if slices.entries.is_empty() {
        return;
    }
    let waited = Sum::of(slices.entries.iter().chain(&slices.other)).response_time_ns;
    let listed = slices.entries.len().min(top);
    let mut lines: Vec<Line> =
        slices.entries[..listed].iter().map(|slice| Line::new(name(slices, slice), cells(slice, waited))).collect();
    let rest = Sum::of(slices.entries[listed..].iter().chain(&slices.other));
    if rest.count > 0 {
        let more = slices.entries.len() - listed;
        let name = match &slices.other {
            Some(_) => "(others)".to_owned(),
            None => format!("({})", counted(more as u64, "other", "others")),
        };
        lines.push(Line::new(name, sum_cells(&rest, waited)));
    }
    let table = Table::new(columns()).names(NAMES).section(heading(slices), lines);
    let left_out = table.with_shorter(page.width(), shorten_path).render(page);
    note(page, slices, &left_out);
}

fn columns() -> Vec<Column> {
    Column::list(&[
        ("Count", 0),
        ("Total wait", 0),
        ("Share", 0),
        ("Errors", 4),
        ("Read", 6),
        ("Written", 7),
        ("Median", 0),
        ("Average", 1),
        ("p95", 0),
        ("p99", 2),
        ("Slowest", 0),
        ("Service", 3),
    ])
}

fn cells(slice: &Slice, waited: i128) -> Vec<String> {
    let sum = Sum::of([slice]);
    let mut cells = sum_cells(&sum, waited);
    if slice.figures.timed > 0 {
        let time = &slice.figures.response_time;
        let times = [time.p50, time.mean, time.p95, time.p99, time.max, slice.service_time.p50];
        cells.splice(6.., times.map(compact));
    }
    cells
}

fn sum_cells(sum: &Sum, waited: i128) -> Vec<String> {
    let if_any = |n: u64, show: fn(u64) -> String| if n > 0 { show(n) } else { String::new() };
    let nanos = |ns: i128| Nanos(ns.clamp(0, i64::MAX.into()) as i64);
    let mut cells = vec![
        thousands(sum.count),
        if sum.timed > 0 { compact(Some(nanos(sum.response_time_ns))) } else { String::new() },
        if sum.timed > 0 { part_of(sum.response_time_ns, waited) } else { String::new() },
        if_any(sum.errors, thousands),
        if_any(sum.bytes_read, bytes),
        if_any(sum.bytes_written, bytes),
    ];
    if sum.timed > 0 {
        let mean = nanos(sum.response_time_ns / i128::from(sum.timed));
        cells.extend([String::new(), compact(Some(mean)), String::new(), String::new(), compact(sum.slowest)]);
    }
    cells
}

/// A share of the time that was waited in all, in percent.
fn part_of(part: i128, whole: i128) -> String {
    let micros = |ns: i128| (ns.max(0) / 1_000) as u64;
    percent_sign(micros(part), micros(whole))
}

fn note(page: &mut Page, slices: &Slices, left_out: &[Cow<'_, str>]) {
    let mut text =
        "Total wait is the sum of response times, Share that of the total wait; expected waits count as commands only."
            .to_owned();
    if slices.missed_at_most_ns > 0 {
        let most = thousands(SLICES_MAX as u64);
        let missed = Nanos(slices.missed_at_most_ns.min(i64::MAX.into()) as i64);
        text += &format!(
            " There are more than {most} slices: those with the largest total wait are kept, and may lack up to {} each.",
            unbroken(span(missed))
        );
    }
    page.note(&text, left_out);
}

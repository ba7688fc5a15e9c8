//! Table of slices, in the requested order, and names of slices for people.

use super::page::TextPage;
use super::percent_sign;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::format::{bytes, clean, counted, or_dash, shorten_path, span, thousands, unbroken};
use crate::json::slices::{SliceEntry, SliceEntryKey, SliceEntryValue, SliceFigures, SliceListing};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, Field, SLICES_MAX};
use std::borrow::Cow;
use std::ops::RangeInclusive;

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
        "Total wait is the sum of response times, Share its percentage of all total waits; expected waits count as \
         commands only."
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

const UNKNOWN: &str = "(unknown)";

/// Formats a slice's key as one name: `10.0.0.5 office\accounts\ledger.mdb`.
pub(crate) fn name(SliceEntryKey(parts): &SliceEntryKey) -> String {
    let mut name = String::new();
    let mut before = None;
    for (i, (field, value)) in parts.iter().enumerate() {
        // For an unknown file on an unknown share, one `(unknown)` is enough.
        let below = parts.get(i + 1).filter(|(below, _)| matches!(below, Field::File | Field::Directory));
        if let (Field::Share, SliceEntryValue::Unknown, Some((_, SliceEntryValue::Unknown))) = (field, value, below) {
            continue;
        }
        let separator = match (before, field) {
            (None, _) => "",
            // Share and path form one name.
            (Some(Field::Share), Field::File | Field::Directory) => "\\",
            (Some(Field::FlowId), Field::Connection) => " ",
            _ => "  ",
        };
        name += separator;
        name += &clean(&shown(*field, value));
        before = Some(*field);
    }
    name
}

pub(crate) fn heading(by: &[String]) -> String {
    format!("By {}", by.join(", "))
}

fn shown(field: Field, value: &SliceEntryValue) -> String {
    match (field, value) {
        (Field::Extension, SliceEntryValue::Text(text)) if text.is_empty() => "(none)".to_owned(),
        (Field::File, SliceEntryValue::Text(text)) if text.is_empty() => "(root)".to_owned(),
        (Field::Size, SliceEntryValue::Number(least)) => size(*least),
        (_, SliceEntryValue::Number(number)) => format!("#{number}"),
        (_, SliceEntryValue::Text(text)) => text.clone(),
        (_, SliceEntryValue::Unknown) => UNKNOWN.to_owned(),
    }
}

/// Formats a size class, from one power of two to the next: `4 KiB to 8 KiB`.
fn size(least: u64) -> String {
    let show = |bytes: u64| match bytes.checked_ilog2().map_or(0, |exponent| exponent / 10) {
        0 => format!("{bytes} B"),
        step => format!("{} {}iB", bytes >> (10 * step), ["", "K", "M", "G", "T", "P", "E"][step as usize]),
    };
    match least.checked_mul(2) {
        _ if least == 0 => show(0),
        Some(next) => format!("{} to {}", show(least), show(next)),
        None => format!("from {}", show(least)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_by_their_bounds() {
        let names = [0, 1, 512, 4_096, 1 << 20, 1 << 63].map(size);
        let expected = ["0 B", "1 B to 2 B", "512 B to 1 KiB", "4 KiB to 8 KiB", "1 MiB to 2 MiB", "from 8 EiB"];
        assert_eq!(names, expected);
    }
}

//! Table of slices, in the requested order, and names of slices for people.

use crate::format::{clean, counted, span, thousands, unbroken};
use crate::json::listings::{SliceEntry, SliceEntryKey, SliceEntryValue, SliceFigures, SliceListing};
use crate::page::TextPage;
use crate::tables::{
    BYTES_READ, BYTES_WRITTEN, COUNT, ColumnHead, ERRORS, RenderedTable, Row, TOTAL_WAIT, Table, Unit, Value, nonzero,
    percent_of,
};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, Field, SLICES_MAX};
use std::ops::RangeInclusive;

const NAMES: RangeInclusive<usize> = 32..=80;

pub(crate) fn render(page: &mut TextPage, slices: &SliceListing, top: usize) {
    if slices.entries.is_empty() {
        return;
    }
    let waited = SliceFigures::sum(slices.entries.iter().map(|entry| &entry.figures).chain(&slices.other));
    let waited = waited.response_time_sum_ns;
    let (listed, rest) = slices.entries.split_at(slices.entries.len().min(top));
    let mut lines: Vec<_> = listed.iter().map(|entry| Row::new(name(&entry.key), SliceRow::new(entry))).collect();
    let others = SliceFigures::sum(rest.iter().map(|entry| &entry.figures).chain(&slices.other));
    if others.count > 0 {
        let name = match &slices.other {
            Some(_) => "(others)".to_owned(),
            None => format!("({})", counted(rest.len() as u64, "other", "others")),
        };
        lines.push(Row::new(name, SliceRow::other(&others)));
    }
    let rendered = table(&slices.sort, waited).section(heading(&slices.by), lines).render_paths(page);
    note(page, slices, rendered);
}

/// A slice, or the sum of slices that are not listed.
pub(crate) struct SliceRow<'a> {
    figures: &'a SliceFigures,
    missed_at_most_ns: i64,
    is_other: bool,
}

impl<'a> SliceRow<'a> {
    pub(crate) fn new(SliceEntry { figures, missed_at_most_ns, .. }: &'a SliceEntry) -> SliceRow<'a> {
        SliceRow { figures, missed_at_most_ns: *missed_at_most_ns, is_other: false }
    }

    pub(crate) fn other(figures: &'a SliceFigures) -> SliceRow<'a> {
        SliceRow { figures, missed_at_most_ns: 0, is_other: true }
    }

    fn times(&self) -> Option<&DurationStatistics> {
        (self.figures.timed > 0).then_some(&self.figures.response_time)
    }

    /// Sums of several slices have no percentiles.
    fn percentiles(&self) -> Option<&DurationStatistics> {
        self.times().filter(|times| times.p50.is_some())
    }
}

/// Returns the table for people and programs. The column that sorts the slices is never left out. `waited` is the total
/// wait of all slices.
pub(crate) fn table<'a>(sort: &str, waited: i64) -> Table<'a, SliceRow<'a>> {
    let unless = |by: &str, expendable: u8| if sort == by { 0 } else { expendable };
    let bytes = |count: u64| Value::Bytes(count).shown_if(count > 0);
    let sum = |row: &SliceRow| row.figures.response_time_sum_ns;
    let head = |key, title, unit, about| ColumnHead::new(key, title, unit, about);
    Table::new()
        .names(NAMES)
        .column(COUNT, |row: &SliceRow<'a>| row.figures.count)
        .column(
            TOTAL_WAIT.for_people().explained("sum of response times; expected waits count as commands only"),
            move |row| row.times().map(|_| Value::from(Nanos(sum(row).max(0)))),
        )
        .column(
            head("share", "Share", Unit::Percent, "").for_people().explained("percentage of all total waits"),
            move |row| row.times().map(|_| part_of(sum(row), waited)),
        )
        .column(head("timed", "Timed", Unit::Count, "commands with a response time").for_programs(), |row| {
            row.figures.timed
        })
        .column(ERRORS.expendable(unless("errors", 4)), |row| nonzero(row.figures.errors))
        .column(BYTES_READ.expendable(unless("bytes", 6)), move |row| bytes(row.figures.bytes_read))
        .column(BYTES_WRITTEN.expendable(unless("bytes", 7)), move |row| bytes(row.figures.bytes_written))
        .column(
            head("response_time_sum_ns", "Total wait", Unit::Duration, "sum of response times").for_programs(),
            move |row| Nanos(sum(row)),
        )
        .times(&[("Median", 0)], SliceRow::percentiles)
        .times(&[("Average", unless("mean", 1))], SliceRow::times)
        .times(&[("p95", 0), ("p99", unless("p99", 2))], SliceRow::percentiles)
        .times(&[("Slowest", 0)], SliceRow::times)
        .column(
            head("service", "Service", Unit::Duration, "median service time")
                .for_people()
                .expendable(unless("service_time", 3)),
            |row| row.percentiles().map(|_| Value::from(row.figures.service_time.p50)),
        )
        .all_times("response_time", |row| &row.figures.response_time)
        .all_times("service_time", |row| &row.figures.service_time)
        .column(
            head("missed_at_most_ns", "", Unit::Duration, "wait that the sum may lack, because slices were evicted")
                .for_programs(),
            |row| Nanos(row.missed_at_most_ns),
        )
        .column(
            head("is_other", "", Unit::Text, "`true` for the sum of evicted slices, which has no name").for_programs(),
            |row| row.is_other.to_string(),
        )
}

fn part_of(part: i64, whole: i64) -> Value {
    let micros = |ns: i64| (ns.max(0) / 1_000) as u64;
    percent_of(micros(part), micros(whole))
}

fn note(page: &mut TextPage, slices: &SliceListing, rendered: RenderedTable) {
    let mut text = String::new();
    if slices.missed_at_most_ns > 0 {
        let most = thousands(SLICES_MAX as u64);
        let missed = Nanos(slices.missed_at_most_ns);
        text = format!(
            "There are more than {most} slices: those with the largest total wait are kept, and may lack up to {} each.",
            unbroken(span(missed))
        );
    }
    rendered.note(page, &text);
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

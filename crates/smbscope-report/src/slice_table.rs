//! The slices as CSV (RFC 4180): a row a slice, in the order asked for, with every figure; times in nanoseconds.
//!
//! What is unknown or has too few values is an empty field; the share's root is `\`, and `(none)` is no extension. The
//! row that adds up what was evicted has no key and `true` in `is_other`.

use crate::csv::CellStyle;
use crate::{Report, slices};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, Field, SliceFieldValue, SliceStatistics};
use std::io::{self, Write};

/// The statistics of a time, in the order of their columns.
const STATISTICS: [&str; 9] = ["min", "max", "mean", "stddev", "p50", "p90", "p95", "p99", "p999"];

/// Writes the table; nothing for a report without slices.
pub fn write(report: &Report, style: CellStyle, out: impl Write) -> io::Result<()> {
    let Some(slices) = &report.aggregate.slices else { return Ok(()) };
    let mut table = ::csv::Writer::from_writer(out);
    let mut header: Vec<String> = slices.fields.iter().map(|field| field.name().to_owned()).collect();
    let counts = ["count", "timed", "errors", "bytes_read", "bytes_written", "response_time_sum_ns"];
    header.extend(counts.map(str::to_owned));
    for time in ["response_time", "service_time"] {
        header.extend(STATISTICS.map(|statistic| format!("{time}_{statistic}_ns")));
    }
    header.extend(["missed_at_most_ns", "is_other"].map(str::to_owned));
    table.write_record(&header)?;
    let named = slices.entries.iter().map(|slice| (slice, false));
    for (slice, is_other) in named.chain(slices.other.iter().map(|slice| (slice, true))) {
        let mut row: Vec<String> = (0..slices.fields.len())
            .map(|i| slice.key.get(i).map_or_else(String::new, |part| cell(slices.fields[i], part, style)))
            .collect();
        row.extend(figures(slice));
        row.push(is_other.to_string());
        table.write_record(&row)?;
    }
    table.flush()
}

fn cell(field: Field, part: &SliceFieldValue, style: CellStyle) -> String {
    let name = match (field, part) {
        (Field::Extension, SliceFieldValue::Text(text)) if text.is_empty() => "(none)".to_owned(),
        (Field::File | Field::Directory, SliceFieldValue::Text(text)) if text.is_empty() => "\\".to_owned(),
        (_, part) => slices::text(part),
    };
    style.cell(&name, &mut String::new()).to_owned()
}

fn figures(slice: &SliceStatistics) -> Vec<String> {
    let SliceStatistics { figures, service_time, missed_at_most_ns, .. } = slice;
    let counts = [figures.count, figures.timed, figures.errors, figures.bytes_read, figures.bytes_written];
    let mut cells: Vec<String> = counts.map(|count| count.to_string()).into();
    cells.push(figures.response_time.sum_ns.to_string());
    for DurationStatistics { min, max, mean, stddev, p50, p90, p95, p99, p999, .. } in
        [&figures.response_time, service_time]
    {
        let times = [min, max, mean, stddev, p50, p90, p95, p99, p999];
        cells.extend(times.map(|time| time.map_or_else(String::new, |Nanos(ns)| ns.to_string())));
    }
    cells.push(missed_at_most_ns.to_string());
    cells
}

//! Slices as CSV (RFC 4180): one row per slice, in the requested order, with all figures; times in nanoseconds.
//!
//! Unknown values and statistics of too few values are empty. The root of a share is `\`, and a missing extension
//! `(none)`. The row with the sum of evicted slices has no key and `true` in `is_other`.

use crate::csv::CellStyle;
use crate::{Report, json};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, Field, SliceFieldValue, SliceStatistics};
use std::io::{self, Write};

const STATISTICS: [&str; 9] = ["min", "max", "mean", "stddev", "p50", "p90", "p95", "p99", "p999"];

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
        (_, part) => json::slices::text(part),
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

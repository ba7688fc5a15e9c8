//! Slices as CSV (RFC 4180): one row per slice, in the requested order, with all figures; times in nanoseconds.
//!
//! Unknown values and statistics of too few values are empty. The root of a share is `\`, and a missing extension
//! `(none)`. The row with the sum of evicted slices has no key and `true` in `is_other`.

use crate::Report;
use crate::csv::CellStyle;
use crate::json::slices::{SliceEntryValue, SliceListing};
use crate::text::slices::{SliceRow, table};
use smbscope_stats::Field;
use std::io::{self, Write};

pub fn write(report: &Report, style: CellStyle, out: impl Write) -> io::Result<()> {
    let Some(slices) = &report.aggregate.slices else { return Ok(()) };
    let fields = &slices.fields;
    let slices = SliceListing::new(slices);
    let table = table(&slices.sort, 0);
    let mut out = ::csv::Writer::from_writer(out);
    out.write_record(fields.iter().map(|field| field.name()).chain(table.keys()))?;
    for entry in &slices.entries {
        let key = entry.key.0.iter().map(|(field, value)| cell(*field, value, style));
        out.write_record(key.chain(table.plain_cells(&SliceRow::new(entry))))?;
    }
    if let Some(other) = &slices.other {
        let key = fields.iter().map(|_| String::new());
        out.write_record(key.chain(table.plain_cells(&SliceRow::other(other))))?;
    }
    out.flush()
}

fn cell(field: Field, value: &SliceEntryValue, style: CellStyle) -> String {
    let name = match (field, value) {
        (Field::Extension, SliceEntryValue::Text(text)) if text.is_empty() => "(none)".to_owned(),
        (Field::File | Field::Directory, SliceEntryValue::Text(text)) if text.is_empty() => "\\".to_owned(),
        (_, SliceEntryValue::Text(text)) => text.clone(),
        (_, SliceEntryValue::Number(number)) => number.to_string(),
        (_, SliceEntryValue::Unknown) => String::new(),
    };
    style.cell(&name, &mut String::new()).to_owned()
}

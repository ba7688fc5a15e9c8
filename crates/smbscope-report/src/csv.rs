//! The exchange table as CSV (RFC 4180), one row per exchange, written as a stream, and slices. The columns are described
//! in [`table`](crate::table). Unknown values are empty. [`CellStyle`] controls the escaping of names.

use crate::Report;
use crate::format::clean;
use crate::json::listings::{SliceEntryValue, SliceListing};
use crate::table::{COLUMNS, CellText, Cells, ExchangeRow, ExchangeTable, Provenance};
use crate::text::slices::{SliceRow, table};
use csv::ByteRecord;
use smbscope_model::Exchange;
use smbscope_stats::Field;
use std::io::{self, Write};

/// Escaping of names that come from a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellStyle {
    /// Writes names unchanged. Otherwise an apostrophe is prepended if a name starts like a formula or with an
    /// apostrophe, so that removing one leading apostrophe restores the name.
    pub raw: bool,
    /// Replaces control characters, line breaks and bidirectional marks, for output on a terminal.
    pub terminal: bool,
}

/// Characters that start a formula in spreadsheets, in both widths, and characters that they skip before it.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

impl CellStyle {
    /// Returns the escaped name. `scratch` must be empty.
    pub(crate) fn cell<'a>(self, name: &'a str, scratch: &'a mut String) -> &'a str {
        let mut chars = name.chars();
        let first = chars.next();
        // A sign alone is not a formula: `-` is the name of standard input.
        let is_formula = first.is_some_and(|first| FORMULA.contains(&first)) && chars.next().is_some();
        let quoted = !self.raw && (is_formula || first == Some('\''));
        if !quoted && !self.terminal {
            return name;
        }
        if quoted {
            scratch.push('\'');
        }
        match self.terminal {
            true => scratch.push_str(&clean(name)),
            false => scratch.push_str(name),
        }
        scratch
    }
}

pub struct CsvExchangeWriter<W: Write> {
    out: csv::Writer<W>,
    record: CsvRow,
}

#[derive(Default)]
struct CsvRow {
    fields: ByteRecord,
    scratch: String,
    style: CellStyle,
    cell: String,
}

impl<W: Write> CsvExchangeWriter<W> {
    /// Writes the header. Names are escaped for spreadsheets.
    pub fn new(out: W) -> io::Result<CsvExchangeWriter<W>> {
        CsvExchangeWriter::with_style(out, CellStyle::default())
    }

    pub fn with_style(out: W, style: CellStyle) -> io::Result<CsvExchangeWriter<W>> {
        let mut out = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out);
        out.write_record(COLUMNS.map(|column| column.name)).map_err(io_error)?;
        Ok(CsvExchangeWriter { out, record: CsvRow { style, ..CsvRow::default() } })
    }

    pub fn into_inner(self) -> io::Result<W> {
        self.out.into_inner().map_err(|error| io::Error::new(error.error().kind(), error.to_string()))
    }
}

impl<W: Write> ExchangeTable for CsvExchangeWriter<W> {
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()> {
        self.record.fields.clear();
        ExchangeRow::new(exchange, exchange_id, capture_names).fill(&mut self.record);
        self.out.write_byte_record(&self.record.fields).map_err(io_error)
    }

    /// Flushes the output. CSV has no place for the provenance.
    fn finish(mut self, _: &Provenance) -> io::Result<()> {
        self.out.flush()
    }
}

impl CsvRow {
    fn unknown(&mut self) {
        self.fields.push_field(b"");
    }

    /// Appends decimal digits without a formatter, because a row has twenty numbers.
    fn number(&mut self, mut rest: u64, is_negative: bool) {
        let mut digits = [0; 21];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if is_negative {
            at -= 1;
            digits[at] = b'-';
        }
        self.fields.push_field(&digits[at..]);
    }
}

impl Cells for CsvRow {
    fn ordinal(&mut self, value: Option<u64>) {
        self.wide(value);
    }

    fn bytes(&mut self, value: u64) {
        self.number(value, false);
    }

    fn packets(&mut self, value: u32) {
        self.number(value.into(), false);
    }

    fn port(&mut self, value: u16) {
        self.number(value.into(), false);
    }

    fn wide(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.number(value, false),
            None => self.unknown(),
        }
    }

    fn instant(&mut self, value: Option<i64>) {
        self.duration(value);
    }

    fn duration(&mut self, value: Option<i64>) {
        match value {
            Some(value) => self.number(value.unsigned_abs(), value < 0),
            None => self.unknown(),
        }
    }

    fn flag(&mut self, value: bool) {
        self.fields.push_field(if value { b"true" } else { b"false" });
    }

    fn name(&mut self, value: Option<impl CellText>) {
        self.text(value);
    }

    fn text(&mut self, value: Option<impl CellText>) {
        let Some(value) = value else { return self.unknown() };
        self.scratch.clear();
        self.cell.clear();
        let name = value.written(&mut self.scratch);
        self.fields.push_field(self.style.cell(name, &mut self.cell).as_bytes());
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Writes slices, one row each, in the requested order, with all figures; times in nanoseconds.
///
/// Unknown values and statistics of too few values are empty. The root of a share is `\`, and a missing extension
/// `(none)`. The row with the sum of evicted slices has no key and `true` in `is_other`.
pub fn write_slices(report: &Report, style: CellStyle, out: impl Write) -> io::Result<()> {
    let Some(slices) = &report.aggregate.slices else { return Ok(()) };
    let fields = &slices.fields;
    let slices = SliceListing::new(slices);
    let table = table(&slices.sort, 0);
    let mut out = ::csv::Writer::from_writer(out);
    out.write_record(fields.iter().map(|field| field.name()).chain(table.keys().map(|(key, ..)| key)))?;
    for entry in &slices.entries {
        let key = entry.key.0.iter().map(|(field, value)| slice_cell(*field, value, style));
        out.write_record(key.chain(table.plain_cells(&SliceRow::new(entry))))?;
    }
    if let Some(other) = &slices.other {
        let key = fields.iter().map(|_| String::new());
        out.write_record(key.chain(table.plain_cells(&SliceRow::other(other))))?;
    }
    out.flush()
}

/// Returns key, unit and description of the columns after the fields of a slice.
pub fn slice_columns() -> Vec<(String, &'static str, &'static str)> {
    table("", 0).keys().map(|(key, unit, about)| (key.to_owned(), unit, about)).collect()
}

fn slice_cell(field: Field, value: &SliceEntryValue, style: CellStyle) -> String {
    let name = match (field, value) {
        (Field::Extension, SliceEntryValue::Text(text)) if text.is_empty() => "(none)".to_owned(),
        (Field::File | Field::Directory, SliceEntryValue::Text(text)) if text.is_empty() => "\\".to_owned(),
        (_, SliceEntryValue::Text(text)) => text.clone(),
        (_, SliceEntryValue::Number(number)) => number.to_string(),
        (_, SliceEntryValue::Unknown) => String::new(),
    };
    style.cell(&name, &mut String::new()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(style: CellStyle, name: &str) -> String {
        style.cell(name, &mut String::new()).to_owned()
    }

    #[test]
    fn a_name_that_begins_as_a_formula_is_no_formula() {
        let style = CellStyle::default();
        // OWASP's list for CSV injection.
        for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\u{ff1d}1", "'=1"] {
            assert_eq!(cell(style, name), format!("'{name}"));
            assert_eq!(cell(CellStyle { raw: true, ..style }, name), name);
        }
        for name in ["", "-", "a=1", "\\=1", "10.0.0.1", "::1", "~$x.docx"] {
            assert_eq!(cell(style, name), name);
        }
    }

    #[test]
    fn a_cell_on_a_terminal_is_one_clean_line() {
        let style = CellStyle { raw: false, terminal: true };
        assert_eq!(cell(style, "-a\nb\u{1b}[2J\u{202e}\u{9b}c"), "'-a\u{fffd}b\u{fffd}[2J\u{fffd}\u{fffd}c");
        assert_eq!(cell(CellStyle { raw: true, ..style }, "-a\n"), "-a\u{fffd}");
    }
}

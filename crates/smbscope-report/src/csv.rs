//! The exchange table as CSV (RFC 4180): a row an exchange, written as it comes.
//!
//! The columns are those of [`table`](crate::table). What is unknown is an empty field.

use crate::table::{COLUMNS, Cells, ExchangeTable, Provenance, Row, Written};
use csv::ByteRecord;
use smbscope_model::Exchange;
use std::io::{self, Write};

/// Writes exchanges as rows.
pub struct ExchangeWriter<W: Write> {
    out: csv::Writer<W>,
    record: Record,
}

/// A row under construction; its buffers are used again for each.
#[derive(Default)]
struct Record {
    fields: ByteRecord,
    scratch: String,
}

impl<W: Write> ExchangeWriter<W> {
    /// Writes the header.
    pub fn new(out: W) -> io::Result<ExchangeWriter<W>> {
        let mut out = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out);
        out.write_record(COLUMNS.map(|column| column.name)).map_err(io_error)?;
        Ok(ExchangeWriter { out, record: Record::default() })
    }

    /// Writes what is still buffered and gives the output back.
    pub fn into_inner(self) -> io::Result<W> {
        self.out.into_inner().map_err(|error| io::Error::new(error.error().kind(), error.to_string()))
    }
}

impl<W: Write> ExchangeTable for ExchangeWriter<W> {
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()> {
        self.record.fields.clear();
        Row::new(exchange, exchange_id, capture_names).fill(&mut self.record);
        self.out.write_byte_record(&self.record.fields).map_err(io_error)
    }

    /// CSV has no place for where it comes from.
    fn finish(mut self, _: &Provenance) -> io::Result<()> {
        self.out.flush()
    }
}

impl Record {
    fn unknown(&mut self) {
        self.fields.push_field(b"");
    }

    /// Decimal digits without going through a formatter: a row has twenty numbers.
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

impl Cells for Record {
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

    fn name(&mut self, value: Option<impl Written>) {
        self.text(value);
    }

    fn text(&mut self, value: Option<impl Written>) {
        let Some(value) = value else { return self.unknown() };
        self.scratch.clear();
        self.fields.push_field(value.written(&mut self.scratch).as_bytes());
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

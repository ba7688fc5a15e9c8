//! The exchange table as Apache Parquet: the columns of [`table`](crate::table), typed, compressed with zstd.
//!
//! Points in time are integers of nanoseconds, as in CSV, and not timestamps: every reader takes those, while Spark
//! refuses timestamps of nanoseconds and others round them. What is unknown is null. Names (commands, users, shares …)
//! are dictionaries in Arrow, which pandas and Polars read as categories; in the file, every text is encoded with a
//! dictionary as long as that is small.
//!
//! The file's key-value metadata say where it comes from: [`VERSION`], [`SCHEMA`], [`CAPTURES`] and [`QUALITY`].
//!
//! Memory is bounded: rows are gathered in batches of [`BATCH_ROWS`], or fewer where their texts take
//! [`BATCH_TEXT_BYTES`], and encoded in row groups of [`GROUP_ROWS`], or fewer where these take [`GROUP_BYTES`]. Only
//! the footer grows with the file: by 5 KB for each row group.

use crate::table::{COLUMNS, Cells, ExchangeTable, Kind, Provenance, Row, Written};
use crate::{Report, json};
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, StringDictionaryBuilder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use smbscope_model::Exchange;
use smbscope_stats::Aggregator;
use std::io::{self, Write};
use std::sync::Arc;

/// Metadata key: version of smbscope.
pub const VERSION: &str = "smbscope.version";
/// Metadata key: name and version of the columns, [`SCHEMA_VALUE`].
pub const SCHEMA: &str = "smbscope.schema";
/// What [`SCHEMA`] says.
pub const SCHEMA_VALUE: &str = "smbscope.exchanges/1";
/// Metadata key: the captures, as the array `captures` of the JSON report.
pub const CAPTURES: &str = "smbscope.captures";
/// Metadata key: what the captures could not show, as the object `quality` of the JSON report.
pub const QUALITY: &str = "smbscope.quality";
/// Metadata key: the filter that chose the rows; absent where there was none.
pub const FILTER: &str = "smbscope.filter";

/// Rows encoded at once.
pub const BATCH_ROWS: usize = 8 << 10;
/// Bytes of text in rows encoded at once.
pub const BATCH_TEXT_BYTES: usize = 4 << 20;
/// Rows of a row group.
pub const GROUP_ROWS: usize = 128 << 10;
/// Bytes of a row group under construction.
pub const GROUP_BYTES: usize = 32 << 20;

/// Writes exchanges in row groups.
pub struct ExchangeWriter<W: Write + Send> {
    out: ArrowWriter<W>,
    schema: SchemaRef,
    batch: Batch,
    /// For the sentence about the captures' quality.
    aggregator: Aggregator,
}

impl<W: Write + Send> ExchangeWriter<W> {
    /// Begins the file.
    pub fn new(out: W) -> io::Result<ExchangeWriter<W>> {
        let fields = COLUMNS.map(|column| Field::new(column.name, data_type(column.kind), true));
        let schema = Arc::new(Schema::new(Vec::from(fields)));
        let out = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties())).map_err(io_error)?;
        Ok(ExchangeWriter { out, schema, batch: Batch::new(), aggregator: Aggregator::new() })
    }

    fn write_batch(&mut self) -> io::Result<()> {
        let columns = self.batch.take();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|error| io_error(error.into()))?;
        self.out.write(&batch).map_err(io_error)?;
        if self.out.memory_size() > GROUP_BYTES {
            self.out.flush().map_err(io_error)?;
        }
        Ok(())
    }

    fn describe(&mut self, key: &str, value: String) {
        self.out.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
}

impl<W: Write + Send> ExchangeTable for ExchangeWriter<W> {
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()> {
        self.aggregator.record(exchange);
        self.batch.add(&Row::new(exchange, exchange_id, capture_names));
        if self.batch.is_full() { self.write_batch() } else { Ok(()) }
    }

    fn finish(mut self, provenance: &Provenance) -> io::Result<()> {
        if self.batch.rows > 0 {
            self.write_batch()?;
        }
        let report = Report {
            title: None,
            captures: provenance.captures.to_vec(),
            quality: provenance.quality.clone(),
            skipped: provenance.skipped.to_vec(),
            connections: Vec::new(),
            aggregate: self.aggregator.finish(),
            first: None,
            last: None,
            version: provenance.version.to_owned(),
            warnings: Vec::new(),
            filter: provenance.filter.clone(),
            interval: None,
            slow: crate::Thresholds::default(),
            explanation: crate::Explanation::default(),
        };
        self.describe(VERSION, report.version.clone());
        self.describe(SCHEMA, SCHEMA_VALUE.to_owned());
        self.describe(CAPTURES, json::captures(&report)?);
        self.describe(QUALITY, json::quality(&report)?);
        if let Some(filter) = &report.filter {
            self.describe(FILTER, filter.expression.clone());
        }
        // Closing would take the output along, and with it whatever went wrong when its buffer is written.
        self.out.finish().map_err(io_error)?;
        self.out.inner_mut().flush()
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Ordinal | Kind::Bytes | Kind::Instant | Kind::Duration => DataType::Int64,
        Kind::Wide => DataType::UInt64,
        Kind::Packets => DataType::UInt32,
        Kind::Port => DataType::UInt16,
        Kind::Flag => DataType::Boolean,
        Kind::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        Kind::Text => DataType::Utf8,
    }
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("smbscope version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in COLUMNS {
        // Numbers that differ from row to row, and of which each is near the one before.
        if matches!(column.kind, Kind::Ordinal | Kind::Instant | Kind::Duration) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// Rows that are not encoded yet, column by column.
struct Batch {
    columns: Vec<Values>,
    rows: usize,
    text_bytes: usize,
    /// The column whose turn it is.
    at: usize,
    scratch: String,
}

enum Values {
    Signed(Int64Builder),
    Wide(UInt64Builder),
    Packets(UInt32Builder),
    Port(UInt16Builder),
    Flag(BooleanBuilder),
    Name(StringDictionaryBuilder<Int32Type>),
    Text(StringBuilder),
}

impl Values {
    fn new(kind: Kind) -> Values {
        match kind {
            Kind::Ordinal | Kind::Bytes | Kind::Instant | Kind::Duration => Values::Signed(Int64Builder::new()),
            Kind::Wide => Values::Wide(UInt64Builder::new()),
            Kind::Packets => Values::Packets(UInt32Builder::new()),
            Kind::Port => Values::Port(UInt16Builder::new()),
            Kind::Flag => Values::Flag(BooleanBuilder::new()),
            Kind::Name => Values::Name(StringDictionaryBuilder::new()),
            Kind::Text => Values::Text(StringBuilder::new()),
        }
    }

    /// The values as an array; what follows begins a new one.
    fn take(&mut self) -> ArrayRef {
        match self {
            Values::Signed(values) => Arc::new(values.finish()),
            Values::Wide(values) => Arc::new(values.finish()),
            Values::Packets(values) => Arc::new(values.finish()),
            Values::Port(values) => Arc::new(values.finish()),
            Values::Flag(values) => Arc::new(values.finish()),
            Values::Name(values) => Arc::new(values.finish()),
            Values::Text(values) => Arc::new(values.finish()),
        }
    }
}

impl Batch {
    fn new() -> Batch {
        let columns = COLUMNS.iter().map(|column| Values::new(column.kind)).collect();
        Batch { columns, rows: 0, text_bytes: 0, at: 0, scratch: String::new() }
    }

    fn add(&mut self, row: &Row) {
        self.at = 0;
        row.fill(self);
        self.rows += 1;
    }

    fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.text_bytes >= BATCH_TEXT_BYTES
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        (self.rows, self.text_bytes) = (0, 0);
        self.columns.iter_mut().map(Values::take).collect()
    }

    fn next(&mut self) -> &mut Values {
        self.at += 1;
        &mut self.columns[self.at - 1]
    }

    fn signed(&mut self, value: Option<i64>) {
        match self.next() {
            Values::Signed(values) => values.append_option(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }
}

/// Why a value always meets a column of its kind.
const DIFFERENT: &str = "kinds and calls are made from one list, in `columns.rs`";

impl Cells for Batch {
    fn ordinal(&mut self, value: Option<u64>) {
        // Nothing that is counted one by one gets as far as 63 bits.
        self.signed(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn bytes(&mut self, value: u64) {
        self.ordinal(Some(value));
    }

    fn packets(&mut self, value: u32) {
        match self.next() {
            Values::Packets(values) => values.append_value(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn port(&mut self, value: u16) {
        match self.next() {
            Values::Port(values) => values.append_value(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn wide(&mut self, value: Option<u64>) {
        match self.next() {
            Values::Wide(values) => values.append_option(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn instant(&mut self, value: Option<i64>) {
        self.signed(value);
    }

    fn duration(&mut self, value: Option<i64>) {
        self.signed(value);
    }

    fn flag(&mut self, value: bool) {
        match self.next() {
            Values::Flag(values) => values.append_value(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn name(&mut self, value: Option<impl Written>) {
        self.text(value);
    }

    fn text(&mut self, value: Option<impl Written>) {
        self.scratch.clear();
        self.at += 1;
        let text = value.as_ref().map_or("", |value| value.written(&mut self.scratch));
        self.text_bytes += text.len();
        let text = Some(text).filter(|text| !text.is_empty());
        match &mut self.columns[self.at - 1] {
            Values::Name(values) => values.append_option(text),
            Values::Text(values) => values.append_option(text),
            _ => unreachable!("{DIFFERENT}"),
        }
    }
}

/// What the output said, where it was that.
pub(crate) fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

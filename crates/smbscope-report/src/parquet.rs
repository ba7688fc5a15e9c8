//! The exchange table as Apache Parquet: the columns of [`table`](crate::table), typed and compressed with zstd.
//!
//! Timestamps are integers in nanoseconds, as in CSV, because every reader supports those: Spark rejects nanosecond
//! timestamps, and others round them. Unknown values are null. Names (commands, users, shares …) are dictionaries in
//! Arrow, which pandas and Polars read as categories. In the file, texts are dictionary-encoded while the dictionary is
//! small.
//!
//! The key-value metadata state the origin of the file: [`VERSION`], [`SCHEMA`], [`CAPTURES`], [`QUALITY`] and
//! [`FILTER`].
//!
//! Memory is bounded: rows are collected in batches of [`BATCH_ROWS`], or fewer if their texts reach
//! [`BATCH_TEXT_BYTES`], and encoded in row groups of [`GROUP_ROWS`], or fewer if they reach [`GROUP_BYTES`]. Only the
//! footer grows with the file, by 5 KB per row group.

pub use crate::table::{BATCH_ROWS, BATCH_TEXT_BYTES};

use crate::table::{COLUMNS, ExchangeBatches, ExchangeColumnKind, ExchangeTable, Provenance};
use crate::{Filtered, Report, json};
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use smbscope_model::Exchange;
use smbscope_stats::Census;
use std::io::{self, Write};

pub const VERSION: &str = "smbscope.version";
/// Metadata key for the name and version of the columns, [`SCHEMA_VALUE`].
pub const SCHEMA: &str = "smbscope.schema";
pub const SCHEMA_VALUE: &str = "smbscope.exchanges/1";
/// Metadata key for the captures, in the form of `captures` in the JSON report.
pub const CAPTURES: &str = "smbscope.captures";
/// Metadata key for gaps in the captures, in the form of `quality` in the JSON report.
pub const QUALITY: &str = "smbscope.quality";
/// Metadata key for the filter of the rows. Missing if there was none.
pub const FILTER: &str = "smbscope.filter";

pub const GROUP_ROWS: usize = 128 << 10;
pub const GROUP_BYTES: usize = 32 << 20;

pub struct ParquetExchangeWriter<W: Write + Send> {
    out: ArrowWriter<W>,
    batches: ExchangeBatches,
    census: Census,
}

impl<W: Write + Send> ParquetExchangeWriter<W> {
    pub fn new(out: W) -> io::Result<ParquetExchangeWriter<W>> {
        let batches = ExchangeBatches::default();
        let out = ArrowWriter::try_new(out, batches.schema(), Some(properties())).map_err(io_error)?;
        Ok(ParquetExchangeWriter { out, batches, census: Census::default() })
    }

    fn write_batch(&mut self, batch: Option<RecordBatch>) -> io::Result<()> {
        let Some(batch) = batch else { return Ok(()) };
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

impl<W: Write + Send> ExchangeTable for ParquetExchangeWriter<W> {
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()> {
        self.census.record(exchange);
        let full = self.batches.add(exchange, exchange_id, capture_names);
        self.write_batch(full)
    }

    fn finish(mut self, provenance: &Provenance) -> io::Result<()> {
        let rest = self.batches.rest();
        self.write_batch(rest)?;
        let whole = std::mem::take(&mut self.census);
        // Without a filter, every exchange is a row.
        let every = || Filtered { expression: String::new(), matched: whole.exchanges, whole };
        let report = Report {
            captures: provenance.captures.to_vec(),
            quality: provenance.quality.clone(),
            skipped: provenance.skipped.to_vec(),
            encapsulations: provenance.encapsulations.to_vec(),
            version: provenance.version.to_owned(),
            filter: Some(provenance.filter.clone().unwrap_or_else(every)),
            ..Report::default()
        };
        self.describe(VERSION, report.version.clone());
        self.describe(SCHEMA, SCHEMA_VALUE.to_owned());
        self.describe(CAPTURES, json::captures(&report)?);
        self.describe(QUALITY, json::quality(&report)?);
        if let Some(filter) = &provenance.filter {
            self.describe(FILTER, filter.expression.clone());
        }
        // `finish` instead of `close`, which consumes the output and loses errors of its final flush.
        self.out.finish().map_err(io_error)?;
        self.out.inner_mut().flush()
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
        // These numbers differ from row to row, but only slightly.
        if matches!(
            column.kind,
            ExchangeColumnKind::Ordinal | ExchangeColumnKind::Instant | ExchangeColumnKind::Duration
        ) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// Unwraps an I/O error of the output from a Parquet error.
pub(crate) fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

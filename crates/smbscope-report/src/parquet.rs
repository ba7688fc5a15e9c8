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

/// Rows of a row group.
pub const GROUP_ROWS: usize = 128 << 10;
/// Bytes of a row group under construction.
pub const GROUP_BYTES: usize = 32 << 20;

/// Writes exchanges in row groups.
pub struct ParquetExchangeWriter<W: Write + Send> {
    out: ArrowWriter<W>,
    batches: ExchangeBatches,
    /// For the sentence about the captures' quality.
    census: Census,
}

impl<W: Write + Send> ParquetExchangeWriter<W> {
    /// Begins the file.
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
        // Without a filter, all exchanges are rows.
        let every = || Filtered { expression: String::new(), matched: whole.exchanges, whole };
        let report = Report {
            captures: provenance.captures.to_vec(),
            quality: provenance.quality.clone(),
            skipped: provenance.skipped.to_vec(),
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
        // Closing would take the output along, and with it whatever went wrong when its buffer is written.
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
        // Numbers that differ from row to row, and of which each is near the one before.
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

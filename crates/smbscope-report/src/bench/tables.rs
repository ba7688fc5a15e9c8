//! `intervals.parquet` and `server.parquet` of a run directory. Timestamps are integer nanoseconds since the Unix
//! epoch, durations integer nanoseconds, as in the exchange table. Unknown values are null.

use super::BenchRun;
use crate::parquet::io_error;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use smbscope_model::Timestamp;
use std::io::{self, Write};
use std::sync::Arc;

/// Metadata key for the name and version of the columns.
pub const SCHEMA_KEY: &str = "smbscope.schema";
pub const INTERVALS_SCHEMA: &str = "smbscope.intervals/1";
pub const SERVER_SCHEMA: &str = "smbscope.server/1";

#[derive(Debug, Clone, PartialEq)]
pub struct ServerMetric {
    pub time: Timestamp,
    /// Name: `cpu_busy`, `disk_read`, `smbd_processes` …
    pub metric: String,
    pub value: f64,
    pub unit: String,
}

pub fn write_intervals(runs: &[BenchRun], out: impl Write + Send) -> io::Result<()> {
    let rows = || runs.iter().enumerate().flat_map(|(at, run)| run.intervals.iter().map(move |i| (at, run, i)));
    let column = |value: &dyn Fn(usize, &BenchRun, &super::IntervalEntry) -> Option<i64>| -> ArrayRef {
        Arc::new(rows().map(|(at, run, interval)| value(at, run, interval)).collect::<Int64Array>())
    };
    let count = |value: u64| Some(i64::try_from(value).unwrap_or(i64::MAX));
    let columns = [
        ("run", column(&|at, _, _| Some(at as i64 + 1))),
        ("users", column(&|_, run, _| Some(run.users.into()))),
        ("start_ns", column(&|_, _, interval| Some(interval.start_ns.0))),
        ("connected", column(&|_, _, interval| Some(interval.users.into()))),
        ("operations", column(&|_, _, interval| count(interval.operations))),
        ("errors", column(&|_, _, interval| count(interval.errors))),
        ("bytes_read", column(&|_, _, interval| count(interval.bytes_read))),
        ("bytes_written", column(&|_, _, interval| count(interval.bytes_written))),
        ("p50_ns", column(&|_, _, interval| interval.p50.map(|time| time.0))),
        ("p95_ns", column(&|_, _, interval| interval.p95.map(|time| time.0))),
        ("max_ns", column(&|_, _, interval| interval.max.map(|time| time.0))),
    ];
    write(INTERVALS_SCHEMA, columns.into(), out)
}

pub fn write_server(metrics: &[ServerMetric], out: impl Write + Send) -> io::Result<()> {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time_ns", Arc::new(metrics.iter().map(|metric| Some(metric.time.0)).collect::<Int64Array>())),
        ("metric", Arc::new(metrics.iter().map(|metric| Some(metric.metric.as_str())).collect::<StringArray>())),
        ("value", Arc::new(metrics.iter().map(|metric| Some(metric.value)).collect::<Float64Array>())),
        ("unit", Arc::new(metrics.iter().map(|metric| Some(metric.unit.as_str())).collect::<StringArray>())),
    ];
    write(SERVER_SCHEMA, columns, out)
}

fn write(schema: &str, columns: Vec<(&str, ArrayRef)>, out: impl Write + Send) -> io::Result<()> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .map_err(|error| io_error(error.into()))?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("smbscope version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new(SCHEMA_KEY.to_owned(), schema.to_owned())]))
        .build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(io_error)?;
    writer.write(&batch).map_err(io_error)?;
    // `finish` instead of `close`, which consumes the output and loses errors of its final flush.
    writer.finish().map_err(io_error)?;
    writer.inner_mut().flush()
}

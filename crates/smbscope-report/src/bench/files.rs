//! The other files of a run directory: `histograms.hgrm`, `intervals.parquet` and `server.parquet`.
//!
//! In Parquet, timestamps are integer nanoseconds since the Unix epoch, durations integer nanoseconds, as in the exchange
//! table. Unknown values are null.

use super::{BenchRun, IntervalEntry};
use crate::parquet::io_error;
use crate::tables::{BYTES_READ, BYTES_WRITTEN, ColumnHead, ERRORS, Table, Unit, Value, per_second};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use smbscope_model::{Nanos, Timestamp};
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

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
    type Row<'a> = (usize, &'a BenchRun, &'a IntervalEntry);
    let head = |key, title, unit, about| ColumnHead::new(key, title, unit, about);
    let table = Table::new()
        .column(head("run", "Run", Unit::Count, "number of the load point, from 1"), |(at, ..): &Row<'_>| {
            *at as u64 + 1
        })
        .column(head("users", "Users", Unit::Count, "users of the load point"), |(_, run, _)| run.users)
        .column(head("start_ns", "Start", Unit::Instant, "start of the interval"), |(.., interval)| interval.start_ns)
        .column(head("connected", "Connected", Unit::Count, "connected users"), |(.., interval)| interval.users)
        .column(head("operations", "Commands", Unit::Count, "commands answered"), |(.., interval)| interval.operations)
        .column(ERRORS, |(.., interval)| interval.errors)
        .column(BYTES_READ, |(.., interval)| Value::Bytes(interval.bytes_read))
        .column(BYTES_WRITTEN, |(.., interval)| Value::Bytes(interval.bytes_written))
        .column(head("p50_ns", "Median", Unit::Duration, "median response time"), |(.., interval)| interval.p50)
        .column(head("p95_ns", "p95", Unit::Duration, "95th percentile"), |(.., interval)| interval.p95)
        .column(head("max_ns", "Slowest", Unit::Duration, "longest response time"), |(.., interval)| interval.max);
    let runs = runs.iter().enumerate();
    let rows = runs.flat_map(|(at, run)| run.intervals.iter().map(move |interval| (at, run, interval)));
    write(INTERVALS_SCHEMA, &table, &rows.collect::<Vec<_>>(), out)
}

pub fn write_server(metrics: &[ServerMetric], out: impl Write + Send) -> io::Result<()> {
    let head = |key, title, unit, about| ColumnHead::new(key, title, unit, about);
    let table = Table::new()
        .column(head("time_ns", "Time", Unit::Instant, "end of the second"), |metric: &&ServerMetric| metric.time)
        .column(head("metric", "Metric", Unit::Text, "name"), |metric| metric.metric.as_str())
        .column(head("value", "Value", Unit::Number, "value"), |metric| per_second(metric.value))
        .column(head("unit", "Unit", Unit::Text, "unit of the value"), |metric| metric.unit.as_str());
    write(SERVER_SCHEMA, &table, &metrics.iter().collect::<Vec<_>>(), out)
}

fn write<T>(schema: &str, table: &Table<'_, T>, rows: &[T], out: impl Write + Send) -> io::Result<()> {
    let batch = table.batch(rows).map_err(|error| io_error(error.into()))?;
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

pub const ALL: &str = "All";

#[derive(Debug, Clone)]
pub struct TaggedHistogram {
    pub users: u32,
    pub group: String,
    pub started: Timestamp,
    pub duration: Nanos,
    pub histogram: Histogram<u64>,
}

/// `histograms.hgrm` of a run directory: one HdrHistogram per load point and group.
///
/// The format is HdrHistogram's interval log 1.3, readable by `HistogramLogReader` and its ports: a line holds tag,
/// start, length, largest value, and the histogram in V2 encoding, deflated and in base64. Values are response times in
/// nanoseconds with three significant digits; the largest value is in milliseconds. Tags are `8-users/Read`, and
/// `8-users/All` for all headline groups together.
///
/// Times of the log are seconds since `start`, which is stated in the header.
pub fn write_histograms(start: Timestamp, histograms: &[TaggedHistogram], mut out: impl Write) -> io::Result<()> {
    let duration = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    let begin = UNIX_EPOCH + duration(start.0);
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]").with_start_time(begin).with_base_time(begin);
    builder.with_max_value_divisor(NS_PER_MS);
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    for found in histograms {
        let tag = tag(found);
        let tag = Tag::new(&tag).ok_or_else(|| io::Error::other(format!("no name for a histogram: {tag}")))?;
        let since = duration(found.started.0.saturating_sub(start.0));
        log.write_histogram(&found.histogram, since, duration(found.duration.0), Some(tag)).map_err(failed)?;
    }
    out.flush()
}

const NS_PER_MS: f64 = 1e6;

/// Returns a tag such as `8-users/Read`. Tags must not contain blanks or commas.
fn tag(found: &TaggedHistogram) -> String {
    let group: String = found.group.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
    format!("{}-users/{group}", found.users)
}

fn failed(error: impl fmt::Debug) -> io::Error {
    io::Error::other(format!("a histogram could not be written: {error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use smbscope_stats::{Summary, SummaryPrecision};

    #[test]
    fn what_is_written_is_read_by_the_readers_of_hdrhistogram() {
        let start = Timestamp(871_291_800_000_000_000);
        let found = |users: u32, group: &str, values: &[i64]| {
            let mut summary = Summary::new(SummaryPrecision::ROW);
            values.iter().for_each(|value| summary.record(Nanos(*value)));
            TaggedHistogram {
                users,
                group: group.to_owned(),
                started: Timestamp(start.0 + i64::from(users) * 1_500_000_000),
                duration: Nanos(10_000_000_000),
                histogram: summary.histogram(),
            }
        };
        let written = [found(1, "Read", &[500, 2_000_000]), found(8, ALL, &[7])];
        let mut text = Vec::new();
        write_histograms(start, &written, &mut text).unwrap();
        let entries: Vec<LogEntry> = IntervalLogIterator::new(&text).map(Result::unwrap).collect();
        let [LogEntry::StartTime(began), LogEntry::BaseTime(_), rest @ ..] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!(began.as_secs(), 871_291_800);
        assert_eq!(rest.len(), written.len());
        let mut deserializer = Deserializer::new();
        for (entry, (tag, seconds, before)) in
            rest.iter().zip([("1-users/Read", 1.5, &written[0]), ("8-users/All", 12.0, &written[1])])
        {
            let LogEntry::Interval(interval) = entry else { panic!("{entry:?}") };
            assert_eq!(interval.tag().map(|tag| tag.as_str()), Some(tag));
            assert_eq!(interval.start_timestamp().as_secs_f64(), seconds);
            let bytes = decoded(interval.encoded_histogram());
            let again: Histogram<u64> = deserializer.deserialize(&mut bytes.as_slice()).unwrap();
            assert_eq!(again, before.histogram);
        }
    }

    fn decoded(base64: &str) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digits: Vec<u32> =
            base64.bytes().filter_map(|c| ALPHABET.iter().position(|known| *known == c)).map(|at| at as u32).collect();
        let bytes = |chunk: &[u32]| {
            let bits = chunk.iter().enumerate().fold(0, |bits, (at, digit)| bits | digit << (18 - 6 * at));
            bits.to_be_bytes()[1..chunk.len()].to_vec()
        };
        digits.chunks(4).flat_map(bytes).collect()
    }
}

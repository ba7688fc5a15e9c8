//! `histograms.hgrm` of a run directory: one HdrHistogram per load point and group.
//!
//! The format is HdrHistogram's interval log 1.3, readable by `HistogramLogReader` and its ports: a line holds tag,
//! start, length, largest value, and the histogram in V2 encoding, deflated and in base64. Values are response times in
//! nanoseconds with three significant digits; the largest value is in milliseconds. Tags are `8-users/Read`, and
//! `8-users/All` for all headline groups together.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use smbscope_model::{Nanos, Timestamp};
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

pub const ALL: &str = "All";

#[derive(Debug, Clone)]
pub struct TaggedHistogram {
    pub users: u32,
    pub group: String,
    pub started: Timestamp,
    pub duration: Nanos,
    pub histogram: Histogram<u64>,
}

/// Writes the log. Its times are seconds since `start`, which is stated in the header.
pub fn write(start: Timestamp, histograms: &[TaggedHistogram], mut out: impl Write) -> io::Result<()> {
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
        write(start, &written, &mut text).unwrap();
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

//! Commands over time, in bins ([`crate::bins`]). The width is the smallest of 1, 2, 4 … times the requested width
//! (default 1 s) that needs no more than [`BINS_MAX`] bins.

use crate::bins::{self, BinTable};
use crate::derived;
use crate::split::CommandSpan;
use crate::summary::{Summary, SummaryPrecision};
use serde::{Deserialize, Serialize};
use smbscope_model::{Exchange, Nanos, TimeKind, Timestamp};

/// Bins of the time line; then they widen.
pub const BINS_MAX: usize = 4_096;

const SECOND: Nanos = Nanos(1_000_000_000);

#[derive(Debug, Clone, PartialEq)]
pub struct BinnedTimeline {
    pub width: Nanos,
    pub bins: Vec<(Timestamp, TimelineCounts)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineBinning {
    pub origin: Timestamp,
    /// Requested width, which doubles while there are too many bins.
    pub width: Nanos,
    pub most: usize,
    /// Compute percentiles for each bin, within 1.6%, or exactly if a bin has few values.
    pub percentiles: bool,
}

impl Default for TimelineBinning {
    fn default() -> TimelineBinning {
        TimelineBinning { origin: Timestamp(0), width: SECOND, most: BINS_MAX, percentiles: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimelineCounts {
    /// Commands that began in the bin. The fields up to `response_time_p95` refer to these.
    pub commands: u64,
    pub complete: u64,
    pub errors: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub timed: u64,
    pub response_time_sum_ns: i128,
    pub response_time_max: Option<Nanos>,
    pub response_time_p50: Option<Nanos>,
    /// Absent unless percentiles were requested and there are enough values.
    pub response_time_p95: Option<Nanos>,
    pub busy: Nanos,
    pub outstanding: Nanos,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TimelineTally {
    bin: TimelineCounts,
    times: Option<Box<Summary>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TimelineTable {
    bins: BinTable<TimelineTally>,
    percentiles: bool,
}

impl TimelineTable {
    pub(crate) fn new(intervals: TimelineBinning) -> TimelineTable {
        let TimelineBinning { origin, width, most, percentiles } = intervals;
        TimelineTable { bins: BinTable::with_origin(origin, width.max(Nanos(1)), most), percentiles }
    }

    /// Adds an exchange to the bin in which it starts, and its duration to all that it overlaps.
    pub(crate) fn record(&mut self, exchange: &Exchange, stretch: Option<&CommandSpan>, is_command: bool) {
        let Some(start) = exchange.start() else { return };
        let tally = self.bins.at(start);
        let bin = &mut tally.bin;
        bin.request_bytes += exchange.request.bytes;
        bin.response_bytes += exchange.response.bytes;
        if is_command {
            bin.commands += 1;
            bin.errors += u64::from(derived::failed(exchange));
            if exchange.is_complete() {
                bin.complete += 1;
                let time = exchange.time(TimeKind::ResponseTime).filter(|_| exchange.group.in_headline());
                if let Some(time) = time {
                    bin.timed += 1;
                    bin.response_time_sum_ns += i128::from(time.0);
                    bin.response_time_max = bin.response_time_max.max(Some(time));
                    if self.percentiles {
                        tally.times.get_or_insert_with(|| Box::new(Summary::new(SummaryPrecision::FILE))).record(time);
                    }
                }
            }
        }
        if let Some(CommandSpan { start, end, .. }) = stretch {
            self.bins.spread(start.0, end.0, |tally, length| tally.bin.outstanding.0 += length);
        }
    }

    pub(crate) fn busy(&mut self, from: i64, to: i64) {
        self.bins.spread(from, to, |tally, length| tally.bin.busy.0 += length);
    }

    pub(crate) fn merge(&mut self, other: &TimelineTable) {
        self.bins.merge(&other.bins);
    }

    pub(crate) fn finish(&self) -> BinnedTimeline {
        let with_percentiles = |tally: TimelineTally| match tally.times {
            Some(times) => {
                let figures = times.figures();
                TimelineCounts { response_time_p50: figures.p50, response_time_p95: figures.p95, ..tally.bin }
            }
            None => tally.bin,
        };
        let mut bins: Vec<(Timestamp, TimelineCounts)> =
            self.bins.finish().into_iter().map(|(start, tally)| (start, with_percentiles(tally))).collect();
        // Drop bins in which connections were busy only with commands that are not counted.
        bins.retain(|(_, bin)| bin.commands > 0 || bin.outstanding.0 > 0 || bin.request_bytes + bin.response_bytes > 0);
        BinnedTimeline { width: self.bins.width(), bins }
    }
}

impl bins::BinValue for TimelineTally {
    fn add(&mut self, other: &TimelineTally) {
        let (mine, theirs) = (&mut self.bin, &other.bin);
        mine.commands += theirs.commands;
        mine.complete += theirs.complete;
        mine.errors += theirs.errors;
        mine.request_bytes += theirs.request_bytes;
        mine.response_bytes += theirs.response_bytes;
        mine.timed += theirs.timed;
        mine.response_time_sum_ns += theirs.response_time_sum_ns;
        mine.response_time_max = mine.response_time_max.max(theirs.response_time_max);
        mine.busy.0 += theirs.busy.0;
        mine.outstanding.0 += theirs.outstanding.0;
        match (&mut self.times, &other.times) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    fn record(table: &mut TimelineTable, exchange: &Exchange) {
        table.record(exchange, CommandSpan::from_exchange(exchange).as_ref(), true);
    }

    const S: i64 = SECOND.0;

    #[test]
    fn a_bin_holds_what_starts_in_it() {
        let mut table = TimelineTable::new(TimelineBinning::default());
        record(&mut table, &read(10 * S, 300));
        record(&mut table, &read(11 * S - 1, 500));
        record(&mut table, &read(11 * S, 700));
        let timeline = table.finish();
        let shown: Vec<_> = timeline.bins.iter().map(|(t, b)| (t.0 / S, b.commands, b.response_time_sum_ns)).collect();
        assert_eq!((timeline.width, shown), (SECOND, vec![(10, 2, 800), (11, 1, 700)]));
        assert_eq!(timeline.bins[0].1.response_time_max, Some(Nanos(500)));
    }

    #[test]
    fn the_time_of_a_command_lies_in_the_bins_in_which_it_is_outstanding() {
        let mut table = TimelineTable::new(TimelineBinning::default());
        record(&mut table, &read(10 * S + S / 2, 2 * S));
        record(&mut table, &read(11 * S, S / 4));
        let outstanding: Vec<_> = table.finish().bins.iter().map(|(t, b)| (t.0 / S, b.outstanding.0)).collect();
        assert_eq!(outstanding, [(10, S / 2), (11, S + S / 4), (12, S / 2)]);
    }

    #[test]
    fn percentiles_of_bins_are_those_of_what_began_there_in_any_partition() {
        let intervals = TimelineBinning { origin: Timestamp(S / 2), percentiles: true, ..TimelineBinning::default() };
        let mut whole = TimelineTable::new(intervals);
        let mut parts = [whole.clone(), whole.clone()];
        for n in 0..200 {
            let exchange = read(S / 2 + (n % 2) * S + n, (n + 1) * 1_000_000);
            record(&mut whole, &exchange);
            record(&mut parts[usize::from(n % 3 == 0)], &exchange);
        }
        let [mut left, right] = parts;
        left.merge(&right);
        assert_eq!(left.finish(), whole.finish());
        let bins = whole.finish().bins;
        assert_eq!(
            bins.iter().map(|(start, bin)| (start.0, bin.complete)).collect::<Vec<_>>(),
            [(S / 2, 100), (3 * S / 2, 100)]
        );
        // 1, 3 … 199 ms: the median is 100 ms, rank 94.05 is 189.1 ms; within a 64th.
        let near = |found: Option<Nanos>, expected: i64| (found.unwrap().0 - expected).abs() <= expected / 64;
        assert!(near(bins[0].1.response_time_p50, 100_000_000) && near(bins[0].1.response_time_p95, 189_100_000));
    }
}

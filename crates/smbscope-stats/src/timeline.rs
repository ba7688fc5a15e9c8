//! Commands and response times over time, and response time as a function of outstanding commands: the curve of Swartz
//! (1997), figures 2 and 3, from any capture.
//!
//! Time is divided into bins ([`crate::bins`]). For [`BinnedTimeline`], their width is the smallest of 1, 2, 4 … times
//! the requested width (default 1 s) that needs no more than [`BINS_MAX`]. For [`HeatMap`], it is the smallest of 1, 2,
//! 4 … ms that needs no more than [`INTERVALS_MAX`]; each interval has a histogram of the response times of the
//! commands that begin in it.

use crate::bins::{self, BinTable};
use crate::derived;
use crate::split::CommandSpan;
use crate::summary::{Summary, SummaryPrecision};
use serde::{Deserialize, Serialize};
use smbscope_model::{Exchange, Nanos, TimeKind, Timestamp};
use std::collections::BTreeMap;
use std::sync::LazyLock;

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

/// Intervals of the heat map; then they widen.
pub const INTERVALS_MAX: usize = 512;
/// Histogram buckets per factor of ten; each is 10% wide.
pub const BUCKETS_A_DECADE: usize = 24;
const BUCKETS_A_ROW: usize = 4;
/// From 1 µs to 1,000 s, with one bucket below and one above.
const DECADES: usize = 9;
const LOWEST_NS: f64 = 1_000.0;
const INTERVAL_WIDTH: Nanos = Nanos(1_000_000);

static EDGES: LazyLock<Vec<i64>> = LazyLock::new(|| {
    let decade = |bucket: usize| bucket as f64 / BUCKETS_A_DECADE as f64;
    let edges = (0..=DECADES * BUCKETS_A_DECADE).map(|bucket| (LOWEST_NS * 10f64.powf(decade(bucket))).round() as i64);
    std::iter::once(0).chain(edges).collect()
});

/// Response times over time, without expected waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatMap {
    /// Width of an interval: the smallest of 1, 2, 4 … ms that needs no more than 512 intervals.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub width_ns: Nanos,
    /// Lower edges of the response time buckets, ascending. The first bucket begins at 0; the last has no upper edge.
    pub edges_ns: Vec<Nanos>,
    /// Intervals in which a command began or was outstanding, in time order.
    pub bins: Vec<HeatMapBin>,
}

impl HeatMap {
    pub fn if_any(self) -> Option<HeatMap> {
        (!self.bins.is_empty()).then_some(self)
    }
}

/// One interval of a heat map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatMapBin {
    /// Start of the interval.
    pub start_ns: Timestamp,
    /// Sum of the times for which commands were outstanding within the interval.
    pub outstanding_ns: Nanos,
    /// Bytes of the requests that began in the interval.
    pub request_bytes: u64,
    /// Bytes of the responses to these requests.
    pub response_bytes: u64,
    /// Pairs of bucket index and count, for commands that began in the interval.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<(usize, std::num::NonZeroU64)>"))]
    pub counts: Vec<(usize, u64)>,
}

/// Response time as a function of load (Swartz 1997, figures 2 and 3, from a capture).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Concurrency {
    /// Mean number of outstanding commands per interval of heatmap.width_ns, over all connections: lower bound,
    /// inclusive.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub outstanding_from: f64,
    /// Upper bound, exclusive.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub outstanding_to: f64,
    /// Total time spent in this load class.
    pub time_ns: Nanos,
    /// Commands of the headline groups with a response time that began in these intervals.
    pub commands: u64,
    /// Bytes of the requests of these commands.
    pub request_bytes: u64,
    /// Bytes of the responses to these commands.
    pub response_bytes: u64,
    /// The mean is exact. Percentiles have the resolution of a histogram with 24 buckets per decade (10%); p50 needs 1
    /// value, p95 needs 20.
    pub response_time: LoadTimes,
}

/// The mean is exact. Percentiles have the resolution of a histogram with 24 buckets per decade (10%); p50 needs 1
/// value, p95 needs 20.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadTimes {
    /// Arithmetic mean.
    pub mean: Option<Nanos>,
    /// Median.
    pub p50: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct HeatMapColumn {
    outstanding: i64,
    request_bytes: u64,
    response_bytes: u64,
    timed: u64,
    sum_ns: i128,
    counts: Vec<(u16, u32)>,
}

impl HeatMapColumn {
    fn count(&mut self, bucket: u16, count: u32) {
        match self.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }
}

impl bins::BinValue for HeatMapColumn {
    fn add(&mut self, other: &HeatMapColumn) {
        self.outstanding += other.outstanding;
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
        self.timed += other.timed;
        self.sum_ns += other.sum_ns;
        other.counts.iter().for_each(|(bucket, count)| self.count(*bucket, *count));
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeatTable {
    bins: BinTable<HeatMapColumn>,
}

impl HeatTable {
    pub(crate) fn new() -> HeatTable {
        HeatTable { bins: BinTable::new(INTERVAL_WIDTH, INTERVALS_MAX) }
    }

    pub(crate) fn record(&mut self, exchange: &Exchange, CommandSpan { start, end, .. }: &CommandSpan) {
        let column = self.bins.at(*start);
        column.request_bytes += exchange.request.bytes;
        column.response_bytes += exchange.response.bytes;
        let time = exchange.time(TimeKind::ResponseTime).filter(|_| exchange.is_complete());
        if let Some(time) = time {
            column.timed += 1;
            column.sum_ns += i128::from(time.0);
            column.count(bucket(time), 1);
        }
        self.bins.spread(start.0, end.0, |column, length| column.outstanding += length);
    }

    pub(crate) fn merge(&mut self, other: &HeatTable) {
        self.bins.merge(&other.bins);
    }

    pub(crate) fn finish(&self) -> HeatMap {
        let bins = self.bins.finish().into_iter().map(|(start_ns, column)| HeatMapBin {
            start_ns,
            outstanding_ns: Nanos(column.outstanding),
            request_bytes: column.request_bytes,
            response_bytes: column.response_bytes,
            counts: rows(&column.counts),
        });
        HeatMap {
            width_ns: self.bins.width(),
            edges_ns: (0..ROWS)
                .map(|row| Nanos(EDGES[if row == 0 { 0 } else { 1 + (row - 1) * BUCKETS_A_ROW }]))
                .collect(),
            bins: bins.collect(),
        }
    }

    /// Groups the intervals with outstanding commands by load, in classes that differ by a factor of √2, ascending.
    pub(crate) fn concurrency(&self) -> Vec<Concurrency> {
        let width = self.bins.width();
        let mut classes: BTreeMap<i32, (i64, HeatMapColumn)> = BTreeMap::new();
        for (_, column) in self.bins.finish() {
            if column.outstanding > 0 {
                let load = column.outstanding as f64 / width.0 as f64;
                let class = ((2.0 * load.log2()).floor() as i32).max(LOWEST_CLASS);
                let (time, sum) = classes.entry(class).or_default();
                *time = time.saturating_add(width.0);
                bins::BinValue::add(sum, &column);
            }
        }
        let edge = |class: i32| 2f64.powf(f64::from(class) / 2.0);
        classes
            .into_iter()
            .map(|(class, (time, column))| Concurrency {
                outstanding_from: if class == LOWEST_CLASS { 0.0 } else { edge(class) },
                outstanding_to: edge(class + 1),
                time_ns: Nanos(time),
                commands: column.timed,
                request_bytes: column.request_bytes,
                response_bytes: column.response_bytes,
                response_time: LoadTimes {
                    mean: (column.timed > 0).then(|| Nanos((column.sum_ns / i128::from(column.timed)) as i64)),
                    p50: quantile(&column, 0.50, 1),
                    p95: quantile(&column, 0.95, 20),
                },
            })
            .collect()
    }
}

const ROWS: usize = 2 + DECADES * BUCKETS_A_DECADE / BUCKETS_A_ROW;
const LOWEST_CLASS: i32 = -9;

fn bucket(time: Nanos) -> u16 {
    (EDGES.partition_point(|edge| *edge <= time.0).max(1) - 1) as u16
}

fn rows(counts: &[(u16, u32)]) -> Vec<(usize, u64)> {
    let mut rows: Vec<(usize, u64)> = Vec::new();
    for (bucket, count) in counts {
        let row = usize::from(*bucket).saturating_sub(1) / BUCKETS_A_ROW + usize::from(*bucket > 0);
        match rows.last_mut() {
            Some((last, sum)) if *last == row => *sum += u64::from(*count),
            _ => rows.push((row, u64::from(*count))),
        }
    }
    rows
}

/// Returns the geometric middle of the bucket that holds a quantile. Absent with fewer than `needed` values.
fn quantile(column: &HeatMapColumn, fraction: f64, needed: u64) -> Option<Nanos> {
    let total: u64 = column.counts.iter().map(|(_, count)| u64::from(*count)).sum();
    if total < needed {
        return None;
    }
    let rank = (total - 1) as f64 * fraction;
    let mut seen = 0;
    for (bucket, count) in &column.counts {
        seen += u64::from(*count);
        if seen as f64 > rank {
            let low = EDGES[usize::from(*bucket)];
            let middle = match EDGES.get(usize::from(*bucket) + 1) {
                Some(high) if low > 0 => ((low as f64) * (*high as f64)).sqrt(),
                Some(high) => *high as f64 / 2.0,
                None => low as f64,
            };
            return Some(Nanos(middle.round() as i64));
        }
    }
    None
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

    const MS: i64 = 1_000_000;

    fn record_heat(table: &mut HeatTable, exchange: &Exchange) {
        table.record(exchange, &CommandSpan::from_exchange(exchange).expect("this is no expected wait"));
    }

    #[test]
    fn a_time_lies_between_the_edges_of_its_bucket() {
        for time in [0, 999, 1_000, 1_001, 9_999, 10_000, 123_456_789, 1_000_000_000_000, i64::MAX] {
            let bucket = usize::from(bucket(Nanos(time)));
            assert!(EDGES[bucket] <= time && EDGES.get(bucket + 1).is_none_or(|high| time < *high), "{time}");
        }
    }

    #[test]
    fn a_row_of_the_map_holds_what_lies_between_its_edges() {
        let mut table = HeatTable::new();
        let times = [500, 1_000, 1_467, 1_468, 9_999, 10_000, 2_000_000_000_000];
        times.into_iter().for_each(|time| record_heat(&mut table, &read(0, time)));
        let map = table.finish();
        let counts = &map.bins[0].counts;
        for (row, count) in counts {
            let high = map.edges_ns.get(row + 1).map_or(i64::MAX, |edge| edge.0);
            let expected = times.iter().filter(|time| (map.edges_ns[*row].0..high).contains(time)).count();
            assert_eq!(*count, expected as u64, "row {row}");
        }
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), times.len() as u64);
        // Six rows per decade: 1 µs · 10^(1/6) = 1.468 µs.
        assert_eq!(
            (map.edges_ns[0].0, map.edges_ns[1].0, map.edges_ns[2].0, map.edges_ns[7].0),
            (0, 1_000, 1_468, 10_000)
        );
    }

    #[test]
    fn intervals_are_classed_by_what_is_outstanding_in_them() {
        let mut table = HeatTable::new();
        record_heat(&mut table, &read(0, MS));
        (0..4).for_each(|_| record_heat(&mut table, &read(MS, MS)));
        let classes = table.concurrency();
        let shown: Vec<_> =
            classes.iter().map(|class| (class.outstanding_from, class.time_ns.0 / MS, class.commands)).collect();
        assert_eq!(shown, [(1.0, 1, 1), (4.0, 1, 4)]);
        assert_eq!((classes[1].response_time.mean, classes[1].response_time.p95), (Some(Nanos(MS)), None));
        let p50 = classes[1].response_time.p50.expect("four values").0 as f64;
        assert!((p50 / MS as f64 - 1.0).abs() < 0.06, "{p50} is the middle of a bucket of 10%");
    }
}

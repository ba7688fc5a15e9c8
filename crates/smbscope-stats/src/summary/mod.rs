//! Summaries of durations, with percentiles that are exact up to a stated number of values.
//!
//! Count, minimum, maximum, sum and sum of squares are integers, so mean and standard deviation are exact, and the
//! merge of any partition equals the whole.
//!
//! Percentiles follow Hyndman and Fan, "Sample Quantiles in Statistical Packages" (The American Statistician 50(4),
//! 1996), definition 7: linear interpolation between the order statistics around rank (n − 1)·p, the default of R,
//! NumPy and pandas. A percentile with too few values is absent: p50 needs 1 value, p90 10, p95 20, p99 100, p999
//! 1,000, so that at least one value is expected beyond it.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smbscope_model::Nanos;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryPrecision {
    /// Percentiles are exact up to this many values.
    pub exact: usize,
    pub beyond: Beyond,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Beyond {
    /// A histogram of three significant digits: percentiles are within 0.1%, in 100 to 400 KB.
    Histogram,
    /// A sketch: percentiles are within 1.6%, in 8 bytes for each occupied 3% of the range.
    Sketch,
    Nothing,
}

impl SummaryPrecision {
    pub const ROW: SummaryPrecision = SummaryPrecision { exact: 10_000, beyond: Beyond::Histogram };
    pub const ENTITY: SummaryPrecision = SummaryPrecision { exact: 256, beyond: Beyond::Sketch };
    pub const FILE: SummaryPrecision = SummaryPrecision { exact: 64, beyond: Beyond::Sketch };
    pub const MOMENTS: SummaryPrecision = SummaryPrecision { exact: 0, beyond: Beyond::Nothing };
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    limit: SummaryPrecision,
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
    sum_of_squares: u128,
    values: SummaryValues,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum SummaryValues {
    Exact(Vec<i64>),
    Histogram(Buffered),
    Sketch(Sketch),
    Nothing,
}

/// Histogram with an input buffer: CPU caches miss once per batch instead of once per value.
#[derive(Debug, Clone)]
struct Buffered {
    /// Negative values (responses that overtake their request, in `service_time` only) are recorded as 0.
    histogram: Box<Histogram<u64>>,
    waiting: Vec<i64>,
}

/// Values buffered before a histogram.
const BUFFERED_MAX: usize = 256;

const RESIZES: &str = "an auto-resizing histogram takes every 64-bit value";

impl Buffered {
    fn new() -> Buffered {
        let histogram = Histogram::new(3).expect("three significant digits are within 0 to 5");
        Buffered { histogram: Box::new(histogram), waiting: Vec::with_capacity(BUFFERED_MAX) }
    }

    fn record(&mut self, value: i64) {
        self.waiting.push(value);
        if self.waiting.len() == BUFFERED_MAX {
            self.enter();
        }
    }

    fn enter(&mut self) {
        for value in self.waiting.drain(..) {
            self.histogram.record(value.max(0) as u64).expect(RESIZES);
        }
    }

    fn add(&mut self, other: &Buffered) {
        self.histogram.add(other.histogram.as_ref()).expect("auto-resizing histograms of equal precision add up");
        other.waiting.iter().for_each(|value| self.record(*value));
    }

    fn whole(&self) -> Cow<'_, Histogram<u64>> {
        if self.waiting.is_empty() {
            return Cow::Borrowed(&self.histogram);
        }
        let mut whole = self.clone();
        whole.enter();
        Cow::Owned(*whole.histogram)
    }
}

impl Serialize for Buffered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.whole();
        let buckets = whole.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        buckets.collect::<Vec<(u64, u64)>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Buffered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Buffered, D::Error> {
        let mut result = Buffered::new();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            result.histogram.record_n(value, count).expect(RESIZES);
        }
        Ok(result)
    }
}

/// Statistics of a time in nanoseconds. The standard deviation divides by n − 1. Percentiles interpolate linearly
/// (Hyndman and Fan 7), are exact up to 10,000 values and have three significant digits above; p50 needs 1 value, p90
/// 10, p95 20, p99 100, p999 1000. Statistics with too few values are null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Times"))]
pub struct DurationStatistics {
    /// Number of values.
    pub count: u64,
    /// Sum of all values in nanoseconds. Not serialized, so 0 after deserialization.
    #[serde(skip)]
    pub sum_ns: i128,
    /// Minimum.
    pub min: Option<Nanos>,
    /// Maximum.
    pub max: Option<Nanos>,
    /// Arithmetic mean, rounded to whole nanoseconds.
    pub mean: Option<Nanos>,
    /// Sample standard deviation (divisor n − 1), rounded to whole nanoseconds.
    pub stddev: Option<Nanos>,
    /// Median.
    pub p50: Option<Nanos>,
    /// 90th percentile.
    pub p90: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
    /// 99.9th percentile.
    pub p999: Option<Nanos>,
    #[serde(skip)]
    pub approximate: bool,
}

const PERCENTILES: [(u64, u64); 5] = [(500, 1), (900, 10), (950, 20), (990, 100), (999, 1_000)];

impl Summary {
    pub fn new(limit: SummaryPrecision) -> Summary {
        let values = SummaryValues::Exact(Vec::new());
        Summary { limit, count: 0, min: i64::MAX, max: i64::MIN, sum: 0, sum_of_squares: 0, values }
    }

    pub(crate) fn empty(&self) -> Summary {
        Summary::new(self.limit)
    }

    pub fn record(&mut self, value: Nanos) {
        let value = value.0;
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value);
        // Overflows with two durations of 292 years. Saturation does not depend on the order either.
        let magnitude = u128::from(value.unsigned_abs());
        self.sum_of_squares = self.sum_of_squares.saturating_add(magnitude * magnitude);
        match &mut self.values {
            SummaryValues::Exact(values) if values.len() < self.limit.exact => values.push(value),
            SummaryValues::Exact(_) => {
                self.leave_exact();
                self.values.record(value);
            }
            values => values.record(value),
        }
    }

    /// Adds the values of another summary. Both must have the same limit, unless one is empty.
    pub fn merge(&mut self, other: &Summary) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        debug_assert_eq!(self.limit, other.limit);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        if self.count > self.limit.exact as u64 {
            self.leave_exact();
        }
        match (&mut self.values, &other.values) {
            (SummaryValues::Exact(mine), SummaryValues::Exact(theirs)) => mine.extend_from_slice(theirs),
            (mine, SummaryValues::Exact(theirs)) => theirs.iter().for_each(|value| mine.record(*value)),
            (SummaryValues::Histogram(mine), SummaryValues::Histogram(theirs)) => mine.add(theirs),
            (SummaryValues::Sketch(mine), SummaryValues::Sketch(theirs)) => mine.merge(theirs),
            (SummaryValues::Nothing, SummaryValues::Nothing) => {}
            (
                SummaryValues::Exact(_)
                | SummaryValues::Histogram(_)
                | SummaryValues::Sketch(_)
                | SummaryValues::Nothing,
                _,
            ) => {
                unreachable!("the count decides the form, and the limits are equal")
            }
        }
    }

    /// Returns an HdrHistogram of nanoseconds with three significant digits. Negative values count as 0.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut result = Buffered::new();
        match &self.values {
            SummaryValues::Exact(values) => values.iter().for_each(|value| result.record(*value)),
            SummaryValues::Histogram(histogram) => return histogram.whole().into_owned(),
            SummaryValues::Sketch(sketch) => {
                for (value, count) in sketch.iter() {
                    result.histogram.record_n(value, count).expect(RESIZES);
                }
            }
            SummaryValues::Nothing => {}
        }
        result.enter();
        *result.histogram
    }

    pub(crate) fn sum_ns(&self) -> i128 {
        self.sum
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn figures(&self) -> DurationStatistics {
        if self.count == 0 {
            return DurationStatistics::default();
        }
        let [p50, p90, p95, p99, p999] = self.percentiles();
        DurationStatistics {
            count: self.count,
            sum_ns: self.sum,
            min: Some(Nanos(self.min)),
            max: Some(Nanos(self.max)),
            mean: Some(Nanos(rounded_quotient(self.sum, i128::from(self.count)))),
            stddev: self.stddev(),
            p50,
            p90,
            p95,
            p99,
            p999,
            approximate: !matches!(self.values, SummaryValues::Exact(_)),
        }
    }

    /// Computes √((n·Σx² − (Σx)²) / (n·(n − 1))), with the numerator in integers. Absent on overflow.
    fn stddev(&self) -> Option<Nanos> {
        if self.count < 2 {
            return None;
        }
        let n = u128::from(self.count);
        let magnitude = self.sum.unsigned_abs();
        let numerator = n.checked_mul(self.sum_of_squares)?.checked_sub(magnitude.checked_mul(magnitude)?)?;
        let variance = numerator as f64 / (n as f64 * (n - 1) as f64);
        Some(Nanos(variance.sqrt().round() as i64))
    }

    fn percentiles(&self) -> [Option<Nanos>; 5] {
        let mut result = [None; 5];
        if matches!(self.values, SummaryValues::Nothing) {
            return result;
        }
        // Each percentile is interpolated between the order statistics of ranks `low` and `low + 1`.
        let places = PERCENTILES.map(|(per_mille, _)| {
            let scaled = u128::from(self.count - 1) * u128::from(per_mille);
            ((scaled / 1_000) as u64, (scaled % 1_000) as i128)
        });
        let ranks: Vec<u64> = places.iter().flat_map(|(low, _)| [*low, (*low + 1).min(self.count - 1)]).collect();
        let at = self.order_statistics(&ranks);
        for (i, (_, needed)) in PERCENTILES.into_iter().enumerate() {
            if self.count >= needed {
                let (low, high) = (i128::from(at[2 * i]), i128::from(at[2 * i + 1]));
                result[i] =
                    Some(Nanos((low as i64).saturating_add(rounded_quotient((high - low) * places[i].1, 1_000))));
            }
        }
        result
    }

    /// Cumulative distribution with at most 128 points: every hundredth, and finer near the end.
    pub fn cumulative(&self) -> Vec<(Nanos, f64)> {
        if self.count == 0 || matches!(self.values, SummaryValues::Nothing) {
            return Vec::new();
        }
        let last = self.count - 1;
        let per_100_000 = (0..=99).map(|n| n * 1_000).chain([99_500, 99_800, 99_900, 99_950, 99_980, 99_990, 99_999]);
        let mut ranks: Vec<u64> =
            per_100_000.map(|part: u64| (u128::from(last) * u128::from(part) / 100_000) as u64).chain([last]).collect();
        ranks.dedup();
        let values = self.order_statistics(&ranks);
        let mut points: Vec<(Nanos, f64)> = Vec::new();
        for (value, rank) in values.into_iter().zip(ranks) {
            let fraction = (rank + 1) as f64 / self.count as f64;
            match points.last_mut() {
                Some((known, known_fraction)) if known.0 == value => *known_fraction = fraction,
                _ => points.push((Nanos(value), fraction)),
            }
        }
        points
    }

    /// Ranks start at 0. Values from buckets are middles, limited to minimum and maximum.
    fn order_statistics(&self, ranks: &[u64]) -> Vec<i64> {
        match &self.values {
            SummaryValues::Exact(values) => {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                ranks.iter().map(|rank| sorted[*rank as usize]).collect()
            }
            SummaryValues::Histogram(histogram) => {
                let whole = histogram.whole();
                let middle = |value| whole.median_equivalent(value);
                let buckets = whole.iter_recorded().map(|b| (middle(b.value_iterated_to()), b.count_at_value()));
                self.among_buckets(buckets, ranks)
            }
            SummaryValues::Sketch(sketch) => self.among_buckets(sketch.iter(), ranks),
            SummaryValues::Nothing => unreachable!("percentiles need at least one value"),
        }
    }

    fn among_buckets(&self, buckets: impl Iterator<Item = (u64, u64)>, ranks: &[u64]) -> Vec<i64> {
        let mut result = vec![self.max; ranks.len()];
        let mut found = 0;
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|i| ranks[*i]);
        let mut seen = 0u64;
        for (middle, count) in buckets {
            seen += count;
            let middle = middle.min(i64::MAX as u64) as i64;
            while found < order.len() && ranks[order[found]] < seen {
                result[order[found]] = middle.clamp(self.min, self.max);
                found += 1;
            }
        }
        result
    }

    fn leave_exact(&mut self) {
        if let SummaryValues::Exact(values) = &mut self.values {
            let values = std::mem::take(values);
            self.values = match self.limit.beyond {
                Beyond::Histogram => SummaryValues::Histogram(Buffered::new()),
                Beyond::Sketch => SummaryValues::Sketch(Sketch::default()),
                Beyond::Nothing => SummaryValues::Nothing,
            };
            values.into_iter().for_each(|value| self.values.record(value));
        }
    }
}

impl SummaryValues {
    fn record(&mut self, value: i64) {
        match self {
            SummaryValues::Exact(values) => values.push(value),
            SummaryValues::Histogram(histogram) => histogram.record(value),
            SummaryValues::Sketch(sketch) => sketch.record(value),
            SummaryValues::Nothing => {}
        }
    }
}

impl PartialEq for Summary {
    fn eq(&self, other: &Summary) -> bool {
        let moments = |s: &Summary| (s.limit, s.count, s.min, s.max, s.sum, s.sum_of_squares);
        moments(self) == moments(other)
            && match (&self.values, &other.values) {
                (SummaryValues::Exact(a), SummaryValues::Exact(b)) => {
                    let (mut a, mut b) = (a.clone(), b.clone());
                    a.sort_unstable();
                    b.sort_unstable();
                    a == b
                }
                (SummaryValues::Histogram(a), SummaryValues::Histogram(b)) => {
                    let counts = |h: &Histogram<u64>| -> Vec<(u64, u64)> {
                        h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
                    };
                    counts(&a.whole()) == counts(&b.whole())
                }
                (SummaryValues::Sketch(a), SummaryValues::Sketch(b)) => a == b,
                (SummaryValues::Nothing, SummaryValues::Nothing) => true,
                _ => false,
            }
    }
}

/// Divides by a positive denominator, rounding to nearest and halves away from zero.
fn rounded_quotient(numerator: i128, denominator: i128) -> i64 {
    let half = denominator / 2;
    let shifted = if numerator < 0 { numerator - half } else { numerator + half };
    (shifted / denominator).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Buckets per power of two. The relative error is at most 1/(2 · `PER_OCTAVE`), 1.6%.
const PER_OCTAVE: u64 = 1 << BITS;
const BITS: u32 = 5;
/// Low bits of an entry that hold the count. The bits above hold the bucket.
const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// Percentiles of very many sets of durations in little memory: a histogram whose bucket width grows with the value.
///
/// As in DDSketch (Masson, Rim and Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-Error
/// Guarantees", PVLDB 12(12), 2019), the relative error is bounded, and the merge of any partition equals the whole.
/// Buckets divide each power of two into [`PER_OCTAVE`] equal parts, as in HdrHistogram, which needs no logarithm. Only
/// occupied buckets take memory (8 bytes each), a few dozen for one file or client; available crates also keep the
/// empty ones in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sketch {
    entries: Vec<u64>,
}

fn bucket(value: u64) -> u64 {
    if value < PER_OCTAVE {
        return value;
    }
    let octave = value.ilog2() - BITS;
    // The leading one of the value increments the octave.
    (u64::from(octave) << BITS) + (value >> octave)
}

fn middle(bucket: u64) -> u64 {
    if bucket < 2 * PER_OCTAVE {
        return bucket;
    }
    let octave = (bucket >> BITS) - 1;
    let least = (PER_OCTAVE + bucket % PER_OCTAVE) << octave;
    least + (1 << octave) / 2
}

impl Sketch {
    fn record(&mut self, value: i64) {
        self.add(bucket(value.max(0) as u64), 1);
    }

    fn merge(&mut self, other: &Sketch) {
        other.entries.iter().for_each(|entry| self.add(entry >> COUNT_BITS, entry & COUNT));
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.entries.iter().map(|entry| (middle(entry >> COUNT_BITS), entry & COUNT))
    }

    fn add(&mut self, bucket: u64, count: u64) {
        match self.entries.binary_search_by_key(&bucket, |entry| entry >> COUNT_BITS) {
            // 2^48 commands are 8 years at a million per second.
            Ok(at) => self.entries[at] += count.min(COUNT - (self.entries[at] & COUNT)),
            Err(at) => self.entries.insert(at, bucket << COUNT_BITS | count),
        }
    }
}

#[cfg(test)]
mod tests;

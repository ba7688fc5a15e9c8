//! Small histograms of durations for what is kept every second or shown every moment: 32 bins an octave, so a percentile
//! is within 1.6 % of the value. The figures of a whole run come from `smbscope_stats::Summary`, which is finer.

use smbscope_model::Nanos;
use std::time::Duration;

/// Bins an octave, and values below it that have a bin each.
const FINE: u64 = 32;
/// The last octave begins at 2^41 ns, 37 minutes; what takes longer is put there.
const LAST_OCTAVE: u32 = 41;
const BINS: usize = (FINE as usize) * (LAST_OCTAVE as usize - 5 + 2);

/// The bin of a value in nanoseconds.
fn bin(value: u64) -> u16 {
    if value < FINE {
        return value as u16;
    }
    let octave = value.ilog2().min(LAST_OCTAVE);
    let shift = octave - FINE.ilog2();
    let within = (value >> shift).min(2 * FINE - 1) - FINE;
    (FINE + u64::from(shift) * FINE + within) as u16
}

/// The middle of a bin.
fn middle(bin: u16) -> u64 {
    let bin = u64::from(bin);
    if bin < FINE {
        return bin;
    }
    let shift = (bin - FINE) / FINE;
    let low = ((bin - FINE) % FINE + FINE) << shift;
    low + (1 << shift) / 2
}

/// The value at `per_mille` of what is counted in ascending bins; absent where fewer than `needed` values are.
fn percentile(
    counts: impl Iterator<Item = (u16, u64)>,
    total: u64,
    max: Nanos,
    per_mille: u64,
    needed: u64,
) -> Option<Nanos> {
    if total < needed {
        return None;
    }
    // The rank nearest to (n − 1)·p, counted from 0.
    let rank = ((total - 1) * per_mille + 500) / 1_000;
    let mut seen = 0;
    for (bin, count) in counts {
        seen += count;
        if seen > rank {
            return Some(Nanos(middle(bin) as i64).min(max));
        }
    }
    Some(max)
}

/// Per mille, and of how many values at least, as in `smbscope_stats::Summary`.
const P50: (u64, u64) = (500, 1);
const P95: (u64, u64) = (950, 20);
const P99: (u64, u64) = (990, 100);

/// Few values over a narrow range: only bins that are not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sparse {
    bins: Vec<(u16, u64)>,
    total: u64,
    max: Nanos,
}

impl Sparse {
    pub(crate) fn record(&mut self, value: Duration) {
        let nanos = value.as_nanos().min(i64::MAX as u128) as u64;
        self.add(bin(nanos), 1);
        self.max = self.max.max(Nanos(nanos as i64));
    }

    fn add(&mut self, bin: u16, count: u64) {
        match self.bins.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(i) => self.bins[i].1 += count,
            Err(i) => self.bins.insert(i, (bin, count)),
        }
        self.total += count;
    }

    pub(crate) fn merge(&mut self, other: &Sparse) {
        other.bins.iter().for_each(|(bin, count)| self.add(*bin, *count));
        self.max = self.max.max(other.max);
    }

    pub(crate) fn p50(&self) -> Option<Nanos> {
        percentile(self.bins.iter().copied(), self.total, self.max, P50.0, P50.1)
    }

    pub(crate) fn p95(&self) -> Option<Nanos> {
        percentile(self.bins.iter().copied(), self.total, self.max, P95.0, P95.1)
    }

    pub(crate) fn max(&self) -> Option<Nanos> {
        (self.total > 0).then_some(self.max)
    }
}

/// Many values at little cost each.
#[derive(Debug, Clone)]
pub(crate) struct Dense {
    bins: Box<[u32; BINS]>,
    total: u64,
    max: Nanos,
}

impl Default for Dense {
    fn default() -> Dense {
        Dense { bins: Box::new([0; BINS]), total: 0, max: Nanos(0) }
    }
}

impl Dense {
    pub(crate) fn record(&mut self, value: Duration) {
        let nanos = value.as_nanos().min(i64::MAX as u128) as u64;
        self.bins[usize::from(bin(nanos))] += 1;
        self.total += 1;
        self.max = self.max.max(Nanos(nanos as i64));
    }

    /// Moves all that is in `other` here.
    pub(crate) fn take_from(&mut self, other: &mut Dense) {
        if other.total == 0 {
            return;
        }
        for (mine, theirs) in self.bins.iter_mut().zip(other.bins.iter_mut()) {
            *mine = mine.saturating_add(std::mem::take(theirs));
        }
        self.total += std::mem::take(&mut other.total);
        self.max = self.max.max(std::mem::take(&mut other.max));
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn p50(&self) -> Option<Nanos> {
        percentile(self.counts(), self.total, self.max, P50.0, P50.1)
    }

    pub(crate) fn p95(&self) -> Option<Nanos> {
        percentile(self.counts(), self.total, self.max, P95.0, P95.1)
    }

    pub(crate) fn p99(&self) -> Option<Nanos> {
        percentile(self.counts(), self.total, self.max, P99.0, P99.1)
    }

    fn counts(&self) -> impl Iterator<Item = (u16, u64)> {
        self.bins.iter().enumerate().map(|(bin, count)| (bin as u16, u64::from(*count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_within_1_6_percent_of_the_middle_of_its_bin() {
        for value in (0..60).flat_map(|octave| [1u64 << octave, (1 << octave) + (1 << octave) / 3, (2 << octave) - 1]) {
            let shown = middle(bin(value));
            if value < 1 << 42 {
                assert!(shown.abs_diff(value) as f64 <= value as f64 / 64.0, "{value} is shown as {shown}");
            }
            assert!(usize::from(bin(value)) < BINS);
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values_and_absent_where_too_few() {
        let mut sparse = Sparse::default();
        let mut dense = Dense::default();
        for micros in 1..=19 {
            sparse.record(Duration::from_micros(micros));
            dense.record(Duration::from_micros(micros));
        }
        assert_eq!((sparse.p95(), dense.p95()), (None, None));
        sparse.record(Duration::from_millis(5));
        dense.record(Duration::from_millis(5));
        // Rank 9.5 of 0 to 19 is rounded to 10: 11 µs; rank 18.05 to 18: 19 µs.
        let near = |found: Option<Nanos>, expected: i64| (found.unwrap().0 - expected).abs() <= expected / 60;
        assert!(near(sparse.p50(), 11_000) && near(sparse.p95(), 19_000), "{sparse:?}");
        assert_eq!((sparse.p50(), sparse.p95()), (dense.p50(), dense.p95()));
        assert_eq!(sparse.max(), Some(Nanos(5_000_000)));
    }

    #[test]
    fn the_99th_percentile_is_of_at_least_100_values() {
        let mut dense = Dense::default();
        (1..=99).for_each(|millis| dense.record(Duration::from_millis(millis)));
        assert_eq!(dense.p99(), None);
        dense.record(Duration::from_secs(5));
        // Rank 98.01 of 0 to 99 is rounded to 98: 99 ms.
        let found = dense.p99().unwrap().0;
        assert!((found - 99_000_000).abs() <= 99_000_000 / 64, "{found}");
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let mut whole = Sparse::default();
        let mut parts = [Sparse::default(), Sparse::default()];
        for (i, micros) in [3, 900, 17, 17, 40_000].into_iter().enumerate() {
            whole.record(Duration::from_micros(micros));
            parts[i % 2].record(Duration::from_micros(micros));
        }
        let [mut first, second] = parts;
        first.merge(&second);
        assert_eq!(first, whole);
    }
}

//! Commands over time, in bins that double their width when there are too many.
//!
//! Bins are aligned to whole multiples of their width since the Unix epoch, and only bins with a command exist. The
//! width is the smallest of once, twice, four times … the interval asked for (1 s unless told otherwise) at which no more
//! than [`BINS_MAX`] bins are occupied; that depends on the set of commands only, so timelines of any partition merge to
//! that of the whole.

use smbscope_model::{Exchange, Nanos, Stamp, TimeKind, Timestamp};
use std::collections::HashMap;

/// Most bins of a timeline.
pub const BINS_MAX: usize = 4_096;

const SECOND_NS: i64 = 1_000_000_000;

/// A finished timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Width of every bin.
    pub width: Nanos,
    /// Occupied bins in time order.
    pub bins: Vec<(Timestamp, Bin)>,
}

/// What started within a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    /// Commands.
    pub commands: u64,
    /// Commands that got an error response.
    pub errors: u64,
    /// Bytes of their requests.
    pub request_bytes: u64,
    /// Bytes of their final responses.
    pub response_bytes: u64,
    /// Commands with a response time in a headline group.
    pub timed: u64,
    /// Sum of these response times, in nanoseconds.
    pub response_time_sum_ns: i128,
    /// The longest of them.
    pub response_time_max: Option<Nanos>,
}

/// A growing timeline.
#[derive(Debug, Clone)]
pub(crate) struct TimelineTable {
    /// The least width in nanoseconds.
    interval_ns: i64,
    /// The width is 2^doublings intervals.
    doublings: u32,
    capacity: usize,
    bins: HashMap<i64, Bin, ahash::RandomState>,
}

impl TimelineTable {
    pub(crate) fn new() -> TimelineTable {
        TimelineTable::with_capacity(BINS_MAX)
    }

    /// Bins of this width, as long as they are not too many; at least of 1 ns.
    pub(crate) fn with_interval(interval: Nanos) -> TimelineTable {
        TimelineTable { interval_ns: interval.0.max(1), ..TimelineTable::new() }
    }

    fn with_capacity(capacity: usize) -> TimelineTable {
        TimelineTable { interval_ns: SECOND_NS, doublings: 0, capacity, bins: HashMap::default() }
    }

    /// Adds an exchange to the bin in which it starts. `is_command` is false for what is not counted as a command.
    pub(crate) fn record(&mut self, exchange: &Exchange, is_command: bool) {
        let Some(start) = start(exchange) else { return };
        let headline_time = exchange.time(TimeKind::ResponseTime);
        let headline_time =
            headline_time.filter(|_| is_command && exchange.is_complete() && exchange.group.in_headline());
        let failed = exchange.status.is_some_and(|status| status.is_error());
        let bin = Bin {
            commands: u64::from(is_command),
            errors: u64::from(is_command && failed),
            request_bytes: exchange.request.bytes,
            response_bytes: exchange.response.bytes,
            timed: u64::from(headline_time.is_some()),
            response_time_sum_ns: headline_time.map_or(0, |time| time.0.into()),
            response_time_max: headline_time,
        };
        let index = start.time.0.div_euclid(self.interval_ns) >> self.doublings;
        self.bins.entry(index).or_default().add(&bin);
        self.fit();
    }

    /// Adds another part, of the same interval.
    pub(crate) fn merge(&mut self, other: &TimelineTable) {
        debug_assert_eq!(self.interval_ns, other.interval_ns);
        self.widen(other.doublings);
        for (index, bin) in &other.bins {
            let index = index >> (self.doublings - other.doublings);
            self.bins.entry(index).or_default().add(bin);
        }
        self.fit();
    }

    pub(crate) fn finish(&self) -> Timeline {
        let width = self.interval_ns.saturating_mul(1 << self.doublings);
        let start = |index: i64| Timestamp(index.saturating_mul(width));
        let mut bins: Vec<(Timestamp, Bin)> = self.bins.iter().map(|(index, bin)| (start(*index), *bin)).collect();
        bins.sort_by_key(|(start, _)| *start);
        Timeline { width: Nanos(width), bins }
    }

    fn fit(&mut self) {
        while self.bins.len() > self.capacity {
            self.widen(self.doublings + 1);
        }
    }

    fn widen(&mut self, doublings: u32) {
        if doublings <= self.doublings {
            return;
        }
        let shift = doublings - self.doublings;
        self.doublings = doublings;
        for (index, bin) in std::mem::take(&mut self.bins) {
            self.bins.entry(index >> shift).or_default().add(&bin);
        }
    }
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        self.commands += other.commands;
        self.errors += other.errors;
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
        self.timed += other.timed;
        self.response_time_sum_ns += other.response_time_sum_ns;
        self.response_time_max = self.response_time_max.max(other.response_time_max);
    }
}

/// The earliest packet that is known of an exchange.
fn start(exchange: &Exchange) -> Option<Stamp> {
    let Exchange { request, response, .. } = exchange;
    request.first.or(request.last).or(response.first).or(response.last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;
    use proptest::prelude::*;

    const S: i64 = SECOND_NS;

    #[test]
    fn a_bin_holds_what_starts_in_it() {
        let mut table = TimelineTable::new();
        table.record(&read(10 * S, 300), true);
        table.record(&read(11 * S - 1, 500), true);
        table.record(&read(11 * S, 700), true);
        let timeline = table.finish();
        let shown: Vec<_> = timeline.bins.iter().map(|(t, b)| (t.0 / S, b.commands, b.response_time_sum_ns)).collect();
        assert_eq!((timeline.width, shown), (Nanos(S), vec![(10, 2, 800), (11, 1, 700)]));
        assert_eq!(timeline.bins[0].1.response_time_max, Some(Nanos(500)));
    }

    #[test]
    fn one_second_too_many_doubles_the_width() {
        let mut table = TimelineTable::with_capacity(4);
        (0..4).for_each(|second| table.record(&read(second * S, 1), true));
        assert_eq!(table.finish().width, Nanos(S));
        table.record(&read(4 * S, 1), true);
        let timeline = table.finish();
        let shown: Vec<_> = timeline.bins.iter().map(|(t, b)| (t.0 / S, b.commands)).collect();
        assert_eq!((timeline.width, shown), (Nanos(2 * S), vec![(0, 2), (2, 2), (4, 1)]));
    }

    #[test]
    fn another_interval_is_doubled_as_well() {
        let mut table = TimelineTable { capacity: 2, ..TimelineTable::with_interval(Nanos(250_000_000)) };
        // Bins of 250 ms: 0, 1; and with one in bin 2, bins of 500 ms.
        [0, S / 4, S / 4 + 1].into_iter().for_each(|start| table.record(&read(start, 1), true));
        assert_eq!((table.finish().width, table.finish().bins.len()), (Nanos(S / 4), 2));
        table.record(&read(S / 2, 1), true);
        let timeline = table.finish();
        let shown: Vec<_> = timeline.bins.iter().map(|(t, b)| (t.0, b.commands)).collect();
        assert_eq!((timeline.width, shown), (Nanos(S / 2), vec![(0, 3), (S / 2, 1)]));
    }

    proptest! {
        #[test]
        fn timelines_of_any_partition_merge_to_the_whole(
            starts in prop::collection::vec((-40i64..4_000, any::<bool>()), 0..80)
        ) {
            let mut whole = TimelineTable::with_capacity(8);
            let mut parts = [TimelineTable::with_capacity(8), TimelineTable::with_capacity(8)];
            for (second, part) in starts {
                whole.record(&read(second * S, second + 41), true);
                parts[usize::from(part)].record(&read(second * S, second + 41), true);
            }
            let [mut left, right] = parts;
            left.merge(&right);
            prop_assert_eq!(left.finish(), whole.finish());
        }
    }
}

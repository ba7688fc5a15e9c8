//! Commands over time ([`crate::bins`]): the width of the bins is the smallest of once, twice, four times … the interval
//! asked for (1 s unless told otherwise) at which no more than [`BINS_MAX`] of them are occupied.

use crate::bins::{self, BinTable};
use crate::derived;
use crate::split::Stretch;
use smbscope_model::{Exchange, Nanos, TimeKind, Timestamp};

/// Most bins of a timeline.
pub const BINS_MAX: usize = 4_096;

const SECOND: Nanos = Nanos(1_000_000_000);

/// A finished timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Width of every bin.
    pub width: Nanos,
    /// Occupied bins in time order.
    pub bins: Vec<(Timestamp, Bin)>,
}

/// What began within a bin, and what was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    /// Commands that began.
    pub commands: u64,
    /// Those of them that got an error response.
    pub errors: u64,
    /// Bytes of their requests.
    pub request_bytes: u64,
    /// Bytes of their final responses.
    pub response_bytes: u64,
    /// Commands that began with a response time in a headline group.
    pub timed: u64,
    /// Sum of these response times, in nanoseconds.
    pub response_time_sum_ns: i128,
    /// The longest of them.
    pub response_time_max: Option<Nanos>,
    /// Time with at least one command outstanding, summed over connections.
    pub busy: Nanos,
    /// Time for which commands were outstanding, summed over commands.
    pub outstanding: Nanos,
}

/// A growing timeline.
#[derive(Debug, Clone)]
pub(crate) struct TimelineTable {
    bins: BinTable<Bin>,
}

impl TimelineTable {
    pub(crate) fn new() -> TimelineTable {
        TimelineTable::with_interval(SECOND)
    }

    /// Bins of this width, as long as they are not too many; at least of 1 ns.
    pub(crate) fn with_interval(interval: Nanos) -> TimelineTable {
        TimelineTable { bins: BinTable::new(interval.max(Nanos(1)), BINS_MAX) }
    }

    /// Adds an exchange to the bin in which it starts. `is_command` is false for what is not counted as a command.
    pub(crate) fn record(&mut self, exchange: &Exchange, is_command: bool) {
        let Some(start) = exchange.start() else { return };
        let headline_time = exchange.time(TimeKind::ResponseTime);
        let headline_time =
            headline_time.filter(|_| is_command && exchange.is_complete() && exchange.group.in_headline());
        let failed = derived::failed(exchange);
        bins::Bin::add(
            self.bins.at(start),
            &Bin {
                commands: u64::from(is_command),
                errors: u64::from(is_command && failed),
                request_bytes: exchange.request.bytes,
                response_bytes: exchange.response.bytes,
                timed: u64::from(headline_time.is_some()),
                response_time_sum_ns: headline_time.map_or(0, |time| time.0.into()),
                response_time_max: headline_time,
                busy: Nanos(0),
                outstanding: Nanos(0),
            },
        );
        if let Some(Stretch { start, end, .. }) = Stretch::of(exchange) {
            self.bins.spread(start.0, end.0, |bin, length| bin.outstanding.0 += length);
        }
    }

    /// Adds a stretch with a command outstanding on a connection.
    pub(crate) fn busy(&mut self, from: i64, to: i64) {
        self.bins.spread(from, to, |bin, length| bin.busy.0 += length);
    }

    /// Adds another part, of the same interval.
    pub(crate) fn merge(&mut self, other: &TimelineTable) {
        self.bins.merge(&other.bins);
    }

    pub(crate) fn finish(&self) -> Timeline {
        let mut bins = self.bins.finish();
        // Connections may be busy with what is not counted.
        bins.retain(|(_, bin)| bin.commands > 0 || bin.outstanding.0 > 0 || bin.request_bytes + bin.response_bytes > 0);
        Timeline { width: self.bins.width(), bins }
    }
}

impl bins::Bin for Bin {
    fn add(&mut self, other: &Bin) {
        self.commands += other.commands;
        self.errors += other.errors;
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
        self.timed += other.timed;
        self.response_time_sum_ns += other.response_time_sum_ns;
        self.response_time_max = self.response_time_max.max(other.response_time_max);
        self.busy.0 += other.busy.0;
        self.outstanding.0 += other.outstanding.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    const S: i64 = SECOND.0;

    #[test]
    fn a_bin_holds_what_starts_in_it() {
        let mut table = TimelineTable::new();
        table.record(&read(10 * S, 300), true);
        table.record(&read(11 * S - 1, 500), true);
        table.record(&read(11 * S, 700), true);
        let timeline = table.finish();
        let shown: Vec<_> = timeline.bins.iter().map(|(t, b)| (t.0 / S, b.commands, b.response_time_sum_ns)).collect();
        assert_eq!((timeline.width, shown), (SECOND, vec![(10, 2, 800), (11, 1, 700)]));
        assert_eq!(timeline.bins[0].1.response_time_max, Some(Nanos(500)));
    }

    #[test]
    fn the_time_of_a_command_lies_in_the_bins_in_which_it_is_outstanding() {
        let mut table = TimelineTable::new();
        table.record(&read(10 * S + S / 2, 2 * S), true);
        table.record(&read(11 * S, S / 4), true);
        let outstanding: Vec<_> = table.finish().bins.iter().map(|(t, b)| (t.0 / S, b.outstanding.0)).collect();
        assert_eq!(outstanding, [(10, S / 2), (11, S + S / 4), (12, S / 2)]);
    }
}

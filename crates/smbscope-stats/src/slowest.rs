//! The slowest exchanges of a set, to be looked up in the capture.

use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Exchange, TimeKind};
use std::cmp::Reverse;

/// The slowest exchanges among those recorded; expected waits are excluded. Every method takes the number to keep.
///
/// The number may vary as long as none is smaller than the last. As exchanges have a total order, the result then
/// depends neither on their order of arrival nor on their distribution over several sets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Slowest {
    found: Vec<Exchange>,
    floor: i64,
}

fn rank(exchange: &Exchange) -> impl Ord + use<> {
    let time = exchange.time(TimeKind::ResponseTime);
    let packet = exchange.request.first.map(|stamp| (stamp.packet.capture(), stamp.packet.number()));
    (Reverse(time), exchange.start(), exchange.flow, packet, exchange.message_id, exchange.command)
}

impl Slowest {
    /// Returns true if the exchange may belong to the slowest.
    #[inline]
    pub fn takes(&self, exchange: &Exchange) -> bool {
        exchange.group != CommandGroup::Waiting
            && exchange.is_complete()
            && exchange.time(TimeKind::ResponseTime).is_some_and(|time| time.0 >= self.floor)
    }

    pub fn record(&mut self, exchange: &Exchange, max: usize) {
        if self.takes(exchange) {
            self.add(exchange.clone(), max);
        }
    }

    /// Adds an exchange that [`takes`](Slowest::takes) accepts. Holds up to twice `max`, so that few are sorted.
    pub fn add(&mut self, exchange: Exchange, max: usize) {
        self.found.push(exchange);
        if self.found.len() >= 2 * max {
            self.trim(max);
        }
    }

    pub fn merge(&mut self, other: &Slowest, max: usize) {
        self.found.extend(other.found.iter().cloned());
        self.trim(max);
    }

    /// Returns the number of exchanges held: up to twice the number to keep.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the slowest exchanges, slowest first.
    pub fn finish(&self, max: usize) -> Vec<Exchange> {
        let mut all = self.found.clone();
        all.sort_by_cached_key(rank);
        all.truncate(max);
        all
    }

    /// Drops all but the slowest.
    pub fn trim(&mut self, max: usize) {
        if self.found.len() <= max {
            return;
        }
        self.found.sort_by_cached_key(rank);
        self.found.truncate(max);
        let last = self.found.last().and_then(|last| last.time(TimeKind::ResponseTime));
        self.floor = self.floor.max(last.map_or(0, |time| time.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smbscope_testkit::exchange::read;

    fn times(exchanges: &[Exchange]) -> Vec<i64> {
        exchanges.iter().filter_map(|exchange| exchange.time(TimeKind::ResponseTime)).map(|time| time.0).collect()
    }

    #[test]
    fn expected_waits_and_commands_without_a_response_are_left_out() {
        let mut slowest = Slowest::default();
        let (mut waiting, mut lost) = (read(0, 900), read(0, 800));
        waiting.group = CommandGroup::Waiting;
        lost.outcome = smbscope_model::ExchangeOutcome::ResponseEndMissing;
        [waiting, lost, read(0, 700)].iter().for_each(|exchange| slowest.record(exchange, 5));
        assert_eq!(times(&slowest.finish(5)), [700]);
    }

    proptest! {
        #[test]
        fn any_partition_keeps_the_same_while_the_number_to_keep_falls(
            lasted in prop::collection::vec((0i64..40, 0usize..3), 0..300), kept in 0usize..12, more in 0usize..30,
        ) {
            let exchanges: Vec<Exchange> =
                (0i64..).zip(&lasted).map(|(start, (time, _))| read(start, *time)).collect();
            let mut parts = [(); 3].map(|()| Slowest::default());
            for (at, (exchange, (_, part))) in exchanges.iter().zip(&lasted).enumerate() {
                parts[*part].record(exchange, kept + more * (lasted.len() - at) / lasted.len());
            }
            let [mut mine, left, right] = parts;
            mine.merge(&right, kept + more);
            mine.merge(&left, kept);
            let mut all = exchanges;
            all.sort_by_cached_key(rank);
            all.truncate(kept);
            prop_assert_eq!(mine.finish(kept), all);
        }
    }
}

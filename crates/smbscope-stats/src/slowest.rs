//! The slowest exchanges, to be looked up in the capture.

use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Exchange, TimeKind};
use std::cmp::Reverse;

/// Slowest exchanges listed.
pub const SLOWEST_MAX: usize = 100;

/// Excludes expected waits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Slowest {
    found: Vec<Exchange>,
    floor: i64,
}

fn rank(exchange: &Exchange) -> impl Ord + use<> {
    let time = exchange.time(TimeKind::ResponseTime);
    let packet = exchange.request.first.map(|stamp| (stamp.packet.capture(), stamp.packet.number()));
    (Reverse(time), exchange.start(), exchange.flow, packet, exchange.message_id, exchange.command)
}

impl Slowest {
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        if exchange.group == CommandGroup::Waiting || !exchange.is_complete() {
            return;
        }
        let Some(time) = exchange.time(TimeKind::ResponseTime) else { return };
        if time.0 < self.floor {
            return;
        }
        self.found.push(exchange.clone());
        if self.found.len() == 2 * SLOWEST_MAX {
            self.trim();
        }
    }

    pub(crate) fn merge(&mut self, other: &Slowest) {
        self.found.extend(other.found.iter().cloned());
        self.trim();
    }

    pub(crate) fn finish(&self) -> Vec<Exchange> {
        let mut all = self.clone();
        all.trim();
        all.found
    }

    fn trim(&mut self) {
        self.found.sort_by_cached_key(rank);
        self.found.truncate(SLOWEST_MAX);
        if let Some(last) = self.found.get(SLOWEST_MAX - 1) {
            self.floor = last.time(TimeKind::ResponseTime).map_or(0, |time| time.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    #[test]
    fn any_partition_keeps_the_slowest_in_the_same_order() {
        let exchanges: Vec<Exchange> = (0..500).map(|n| read(n, (n * 7_919) % 211)).collect();
        let mut whole = Slowest::default();
        let mut parts = [Slowest::default(), Slowest::default()];
        for (n, exchange) in exchanges.iter().enumerate() {
            whole.record(exchange);
            parts[usize::from(n % 3 == 0)].record(exchange);
        }
        let [mut left, right] = parts;
        left.merge(&right);
        assert_eq!(left.finish(), whole.finish());
        let mut times: Vec<i64> = (0..500).map(|n| (n * 7_919) % 211).collect();
        times.sort_unstable_by_key(|time| Reverse(*time));
        let kept: Vec<i64> =
            whole.finish().iter().filter_map(|exchange| exchange.time(TimeKind::ResponseTime)).map(|t| t.0).collect();
        assert_eq!(kept, times[..SLOWEST_MAX]);
    }
}

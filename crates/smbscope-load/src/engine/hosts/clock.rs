//! Measures the clock offset of a host: of several requests, the one with the shortest round trip counts (RFC 5905,
//! section 10).

use crate::engine::exchanges::Clock;
use crate::engine::result::HostClockOffset;
use smbscope_model::{Nanos, Timestamp};
use std::time::Instant;

/// Number of requests before each load point.
const ROUND_TRIPS: usize = 8;

pub(super) fn offset<E>(clock: &Clock, mut ask: impl FnMut() -> Result<Timestamp, E>) -> Result<HostClockOffset, E> {
    let mut best: Option<HostClockOffset> = None;
    for _ in 0..ROUND_TRIPS {
        let asked = clock.timestamp(Instant::now());
        let theirs = ask()?;
        let answered = clock.timestamp(Instant::now());
        let found = from_round_trip(asked, theirs, answered);
        if best.is_none_or(|best| found.bound < best.bound) {
            best = Some(found);
        }
    }
    Ok(best.unwrap_or_default())
}

fn from_round_trip(asked: Timestamp, theirs: Timestamp, answered: Timestamp) -> HostClockOffset {
    let round_trip = answered.0 - asked.0;
    HostClockOffset { ahead: Nanos(theirs.0 - asked.0 - round_trip / 2), bound: Nanos((round_trip + 1) / 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_is_within_the_bound_however_the_way_is_divided() {
        for there in 0..=100 {
            // The host's clock is 5,000 ahead; the request takes `there` of the 100.
            let found = from_round_trip(Timestamp(1_000), Timestamp(1_000 + there + 5_000), Timestamp(1_100));
            assert!((found.ahead.0 - 5_000).abs() <= found.bound.0, "{there}: {found:?}");
            assert_eq!(found.bound, Nanos(50));
        }
    }

    #[test]
    fn the_shortest_round_trip_counts() {
        let clock = Clock::at(Instant::now());
        let mut trips = [5, 1, 20].into_iter().cycle();
        let found = offset(&clock, || {
            std::thread::sleep(std::time::Duration::from_millis(trips.next().unwrap()));
            Ok::<_, ()>(Timestamp(clock.timestamp(Instant::now()).0 - 7_000_000_000))
        });
        let found = found.unwrap();
        assert!(found.bound.0 < 5_000_000 && (found.ahead.0 + 7_000_000_000).abs() <= found.bound.0, "{found:?}");
    }
}

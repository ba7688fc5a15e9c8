//! Warms the processor's caches ahead of the reader.
//!
//! Where a record starts is only known from the length of the one before it, so a walk from record to record waits for
//! main memory once for each. Lines of the cache that are touched one after the other come much faster, as the
//! processor fetches them before they are asked for. Nothing but speed depends on it.

use crate::prefetch::CACHE_LINE;
use std::hint::black_box;

/// How far ahead of the start of a record: beyond the header of the next one, where packets are those of Ethernet.
const AHEAD: usize = 2048;

/// Goes ahead of a walk that does not turn back.
#[derive(Debug, Default)]
pub(super) struct Warmer {
    warm_until: usize,
}

impl Warmer {
    /// The record that is read next starts at `position`.
    #[inline]
    pub(super) fn at(&mut self, position: usize, bytes: &[u8]) {
        // Of a longer record, as hosts capture before they segment it, nobody reads the rest.
        let begin = self.warm_until.max(position);
        let ahead = bytes.get(begin..bytes.len().min(position.saturating_add(AHEAD))).unwrap_or_default();
        let lines = ahead.iter().step_by(CACHE_LINE);
        self.warm_until = begin + lines.len() * CACHE_LINE;
        black_box(lines.fold(0, |sum, byte| sum ^ byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_touched_once_and_none_beyond_the_file() {
        let bytes = [1; 10_000];
        let mut warmer = Warmer::default();
        // From 0 to beyond 2,048, then on from there, then from where a record of 4,000 bytes ends.
        let until = [0, 24, 1_500, 5_500, 9_000, 10_000, 20_000].map(|position| {
            warmer.at(position, &bytes);
            warmer.warm_until
        });
        assert_eq!(until, [2_048, 2_112, 3_584, 7_548, 10_024, 10_024, 20_000]);
    }
}

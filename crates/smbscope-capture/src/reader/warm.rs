//! Warms the CPU caches ahead of the reader.
//!
//! The start of a record is known only from the length of the previous one, so walking from record to record waits for
//! main memory once per record. Touching cache lines sequentially is much faster, because the hardware prefetcher
//! recognises the pattern. Only speed depends on this.

use crate::prefetch::CACHE_LINE;
use std::hint::black_box;

/// Distance in bytes to read ahead: beyond the next record's header, given Ethernet-sized packets.
const AHEAD: usize = 2048;

#[derive(Debug, Default)]
pub(super) struct Warmer {
    warm_until: usize,
}

impl Warmer {
    #[inline]
    pub(super) fn at(&mut self, position: usize, bytes: &[u8]) {
        // The rest of a longer record (captured before segmentation offload) is never read, so it is not warmed.
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
        // First beyond 2,048; then on from there; then from the end of a record of 4,000 bytes.
        let until = [0, 24, 1_500, 5_500, 9_000, 10_000, 20_000].map(|position| {
            warmer.at(position, &bytes);
            warmer.warm_until
        });
        assert_eq!(until, [2_048, 2_112, 3_584, 7_548, 10_024, 10_024, 20_000]);
    }
}

//! Gets data into the CPU caches ahead of its use: [`prefetch`] hints at one cache line, [`Warmer`] reads ahead of a
//! walk.
//!
//! An ordinary read would also load the cache line, but everything after it would stall until the data arrives.
//!
//! The length of a record gives the start of the next, so walking a file would wait for main memory once per record.
//! The hardware prefetcher recognises sequential reads and is much faster.

use std::hint::black_box;

pub(crate) const CACHE_LINE: usize = 64;

#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has this instruction, which has no architectural effect and can't fault.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Distance in bytes to read ahead: beyond the next record's header, given Ethernet-sized packets.
const AHEAD: usize = 2048;

#[derive(Debug, Default)]
pub(crate) struct Warmer {
    warm_until: usize,
}

impl Warmer {
    #[inline]
    pub(crate) fn at(&mut self, position: usize, bytes: &[u8]) {
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

//! Gets data into the CPU caches ahead of its use: [`prefetch`] hints at one cache line, [`Warmer`] reads ahead of a walk.
//!
//! For data at known places, an ordinary read would also load the cache line, but instructions retire in order, so
//! everything after it would stall until the data arrives.
//!
//! The start of a record in a file is known only from the length of the previous one, so walking from record to record
//! waits for main memory once per record. Touching cache lines sequentially is much faster, because the hardware
//! prefetcher recognises the pattern. Only speed depends on either.

use std::hint::black_box;

pub(crate) const CACHE_LINE: usize = 64;

#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has this instruction; it has no architectural effect and can't fault on any
        // address.
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

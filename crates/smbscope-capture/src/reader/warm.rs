//! Warms the processor's caches ahead of the reader.
//!
//! Where each record starts is only known from the length of the one before it, so a walk waits for main memory once a
//! packet and does nothing meanwhile. The survey leaves marks in the file; from several marks several walks go
//! abreast, and their waits overlap. Nothing but speed depends on it.

use super::format::Format;
use std::hint::black_box;

/// Walks that go abreast.
const ABREAST: usize = 12;
/// Bytes between two marks of a file that is not huge.
const SPACING: u64 = 64 << 10;
/// Most marks of a file; a longer one has them further apart.
const MAX_MARKS: u64 = 1 << 20;
/// From here on in a record: the end of the TCP header, with the start of what it carries.
const HEADERS_LENGTH: usize = 128;
const CACHE_LINE: usize = 64;

/// Offsets of records, about evenly spaced.
#[derive(Debug)]
pub(super) struct Marks {
    offsets: Vec<u64>,
    spacing: u64,
    due: u64,
}

impl Marks {
    /// Marks for a file of this length; a small one stays in the caches without them.
    pub(super) fn for_length(length: usize) -> Marks {
        let spacing = SPACING.max(length as u64 / MAX_MARKS);
        let due = if (length as u64) < 16 * SPACING { u64::MAX } else { 0 };
        Marks { offsets: Vec::new(), spacing, due }
    }

    /// Tells where a record starts.
    #[inline]
    pub(super) fn record(&mut self, offset: u64) {
        if offset >= self.due {
            self.offsets.push(offset);
            self.due = offset.saturating_add(self.spacing);
        }
    }
}

/// Goes ahead of one walk over a whole file.
#[derive(Debug, Default)]
pub(super) struct Warmer {
    offsets: Vec<u64>,
    next: usize,
    /// The reader may come this far before more is warmed.
    warm_until: u64,
}

impl Warmer {
    pub(super) fn new(marks: Marks) -> Warmer {
        let warm_until = if marks.offsets.is_empty() { u64::MAX } else { 0 };
        Warmer { offsets: marks.offsets, next: 0, warm_until }
    }

    /// The reader stands at `position`.
    #[inline]
    pub(super) fn at(&mut self, position: usize, format: &Format, bytes: &[u8]) {
        if position as u64 >= self.warm_until {
            self.advance(format, bytes);
        }
    }

    #[cold]
    fn advance(&mut self, format: &Format, bytes: &[u8]) {
        let end = (self.next + ABREAST).min(self.offsets.len());
        let bound = |index: usize| self.offsets.get(index).map_or(bytes.len(), |offset| *offset as usize);
        let mut positions = [0; ABREAST];
        let mut ends = [0; ABREAST];
        let count = end - self.next;
        for (walk, index) in (self.next..end).enumerate() {
            (positions[walk], ends[walk]) = (bound(index), bound(index + 1));
        }
        self.warm_until = if end < self.offsets.len() { bound(end) as u64 } else { u64::MAX };
        self.next = end;
        let mut sum = 0u8;
        let mut walking = true;
        while walking {
            walking = false;
            for walk in 0..count {
                let position = positions[walk];
                if position >= ends[walk] {
                    continue;
                }
                let window = &bytes[position.min(bytes.len())..];
                let length = format.record_length(window).unwrap_or(usize::MAX);
                for at in (CACHE_LINE..HEADERS_LENGTH + 1).step_by(CACHE_LINE) {
                    sum = sum.wrapping_add(window.get(at).copied().unwrap_or(0));
                }
                positions[walk] = position.saturating_add(length);
                walking = true;
            }
        }
        black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{Sniffed, sniff};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn warming_any_bytes_from_any_marks_ends(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            offsets in proptest::collection::vec(0u64..500, 0..40),
        ) {
            let pcap = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
            let section = [10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0];
            let snoop = *b"snoop\0\0\0\0\0\0\x02\0\0\0\x04";
            for head in [pcap.as_slice(), &section, &snoop] {
                let Sniffed::Capture(format, _) = sniff(head) else { panic!("a header of our own") };
                let mut warmer = Warmer::new(Marks { offsets: offsets.clone(), spacing: 1, due: 0 });
                for position in 0..bytes.len() {
                    warmer.at(position, &format, &bytes);
                }
            }
        }
    }
}

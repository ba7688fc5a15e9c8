//! Ranges of a stream that may hide messages: gaps over frame boundaries, ranges without framing, truncated headers.

use std::collections::VecDeque;

/// Maximum number of ranges. Older ones are merged, which only makes conclusions more careful.
const MAX_RANGES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Losses {
    ranges: VecDeque<(u64, u64)>,
    since: Option<u64>,
    reached: u64,
}

impl Losses {
    #[inline]
    pub(crate) fn reach(&mut self, position: u64) {
        self.reached = position;
    }

    pub(crate) fn begin(&mut self, position: u64) {
        self.since.get_or_insert(position);
    }

    pub(crate) fn end(&mut self, position: u64) {
        let Some(start) = self.since.take().filter(|start| *start < position) else { return };
        if self.ranges.len() == MAX_RANGES {
            let oldest = self.ranges.pop_front();
            if let (Some(oldest), Some(next)) = (oldest, self.ranges.front_mut()) {
                next.0 = oldest.0;
            }
        }
        self.ranges.push_back((start, position));
    }

    /// Returns the number of bytes between two positions that may hide messages. Bytes that the other side acknowledged
    /// but that were not read here yet count: if both streams have a gap, one of them is processed first. `to` may be
    /// `u64::MAX` for the end of the stream, which acknowledges nothing.
    pub(crate) fn bytes_between(&self, from: u64, to: u64) -> u64 {
        self.hidden_between(from, to, 0).fold(0, u64::saturating_add)
    }

    pub(crate) fn hidden_between(&self, from: u64, to: u64, shortest: u64) -> impl Iterator<Item = u64> {
        let last = match self.since {
            Some(start) => (start, u64::MAX),
            None if to == u64::MAX => (to, to),
            None => (self.reached, to),
        };
        let clipped = move |(start, end): (u64, u64)| end.min(to).saturating_sub(start.max(from));
        let holds_one = move |(start, end): &(u64, u64)| end - start >= shortest;
        self.ranges.iter().copied().filter(holds_one).chain([last]).map(clipped).filter(|bytes| *bytes > 0)
    }

    pub(crate) fn reached(&self) -> u64 {
        self.reached
    }

    pub(crate) fn any_after(&self, position: u64) -> bool {
        self.since.is_some() || self.ranges.back().is_some_and(|(_, end)| *end > position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_overlap_counts() {
        let mut losses = Losses::default();
        losses.reach(1000);
        losses.begin(100);
        losses.end(200);
        assert_eq!(losses.bytes_between(0, 100), 0);
        assert_eq!(losses.bytes_between(150, 1000), 50);
        assert!(losses.any_after(199) && !losses.any_after(200));
        losses.begin(300);
        assert_eq!(losses.bytes_between(290, 310), 10);
    }

    #[test]
    fn what_is_not_read_yet_may_hide_messages() {
        let mut losses = Losses::default();
        losses.reach(300);
        assert_eq!(losses.bytes_between(100, 300), 0);
        assert_eq!((losses.bytes_between(100, 320), losses.bytes_between(310, 320)), (20, 10));
        assert_eq!(losses.bytes_between(100, u64::MAX), 0, "nothing was said of how far it goes");
    }

    #[test]
    fn old_ranges_are_merged_towards_caution() {
        let mut losses = Losses::default();
        losses.reach(1000);
        for start in 0..100 {
            losses.begin(start * 10);
            losses.end(start * 10 + 1);
        }
        assert_eq!(losses.ranges.len(), MAX_RANGES);
        assert!(losses.bytes_between(5, 6) > 0, "a merged range covers what lay between");
        assert_eq!(losses.bytes_between(981, 990), 0);
    }
}

//! Where in a stream messages may be hidden: gaps over frame boundaries, stretches without framing, cut headers.

use std::collections::VecDeque;

/// Ranges remembered; older ones are merged, which can only make the judgement more careful.
const MAX_RANGES: usize = 64;

/// Ranges of a stream, in order.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    ranges: VecDeque<(u64, u64)>,
    since: Option<u64>,
}

impl Losses {
    /// From here on messages may be hidden.
    pub(crate) fn begin(&mut self, position: u64) {
        self.since.get_or_insert(position);
    }

    /// Up to here.
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

    /// Bytes in which messages may be hidden between two positions.
    pub(crate) fn bytes_between(&self, from: u64, to: u64) -> u64 {
        let open = self.since.map(|start| (start, u64::MAX));
        self.ranges
            .iter()
            .copied()
            .chain(open)
            .map(|(start, end)| end.min(to).saturating_sub(start.max(from)))
            .fold(0, u64::saturating_add)
    }

    /// Whether a message may be hidden anywhere after a position.
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
        losses.begin(100);
        losses.end(200);
        assert_eq!(losses.bytes_between(0, 100), 0);
        assert_eq!(losses.bytes_between(150, 1000), 50);
        assert!(losses.any_after(199) && !losses.any_after(200));
        losses.begin(300);
        assert_eq!(losses.bytes_between(290, 310), 10);
    }

    #[test]
    fn old_ranges_are_merged_towards_caution() {
        let mut losses = Losses::default();
        for start in 0..100 {
            losses.begin(start * 10);
            losses.end(start * 10 + 1);
        }
        assert_eq!(losses.ranges.len(), MAX_RANGES);
        assert!(losses.bytes_between(5, 6) > 0, "a merged range covers what lay between");
        assert_eq!(losses.bytes_between(981, 990), 0);
    }
}

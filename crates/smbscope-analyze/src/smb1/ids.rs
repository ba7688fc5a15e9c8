//! Learns how soon an SMB1 client reuses its ids (MS-CIFS §2.2.1.6.2). A gap that can't hide that many requests can't
//! hide a reused id.

use std::collections::VecDeque;

/// PID and MID, which a response repeats.
pub(super) type PidMid = (u16, u16);

/// Number of requests remembered for this purpose.
const REMEMBERED_IDS: usize = 128;
/// Number of consecutive requests with ascending MIDs that show a counter.
const LEAST_RUN: u64 = 16;
/// Maximum number of missing requests between two of them.
const MOST_SKIPPED: u16 = 32;

#[derive(Debug, Default)]
pub(crate) struct IdHistory {
    recent: VecDeque<u32>,
    requests: u64,
    /// Smallest number of requests after which an id was reused.
    shortest: Option<u64>,
    run: MidRun,
}

/// Consecutive requests whose MIDs rise by a constant step, apart from missing ones.
#[derive(Debug, Default)]
struct MidRun {
    last: u16,
    step: u16,
    length: u64,
}

impl IdHistory {
    pub(crate) fn note(&mut self, key: PidMid) -> u64 {
        self.run.note(key.1);
        // One word each, so that searching is fast.
        let key = u32::from(key.0) << 16 | u32::from(key.1);
        let (older, newer) = self.recent.as_slices();
        if newer.contains(&key) || older.contains(&key) {
            let back = self.recent.iter().rev().position(|known| *known == key);
            let distance = back.map_or(u64::MAX, |back| back as u64 + 1);
            self.shortest = Some(self.shortest.map_or(distance, |shortest| shortest.min(distance)));
        }
        if self.recent.len() == REMEMBERED_IDS {
            self.recent.pop_front();
        }
        self.recent.push_back(key);
        self.requests += 1;
        self.requests
    }

    pub(crate) fn since(&self, number: u64) -> u64 {
        self.requests - number
    }

    /// Returns the minimum number of requests before the id of this request is reused: the shortest distance observed,
    /// or the length of the counter's run if this request belongs to one. Ids that occurred only once prove nothing
    /// else, because a client may use one MID for everything.
    pub(crate) fn reuse_distance(&self, number: u64) -> u64 {
        let counted = self.run.length >= LEAST_RUN && self.since(number) < self.run.length;
        self.shortest.unwrap_or(0).max(if counted { self.run.length } else { 0 })
    }
}

impl MidRun {
    fn note(&mut self, mid: u16) {
        // A falling MID starts a new run.
        let rise = mid.saturating_sub(self.last);
        self.last = mid;
        let goes_on = rise > 0 && self.length > 1 && rise.is_multiple_of(self.step) && rise / self.step <= MOST_SKIPPED;
        if goes_on {
            self.length += 1;
        } else {
            self.length = if rise > 0 && self.length > 0 { 2 } else { 1 };
            self.step = rise;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance_after(mids: impl IntoIterator<Item = u16>) -> u64 {
        let mut ids = IdHistory::default();
        let last = mids.into_iter().map(|mid| ids.note((7, mid))).last().unwrap_or(0);
        ids.reuse_distance(last)
    }

    #[test]
    fn nothing_is_known_before_an_id_was_seen_again_or_a_counter_shows() {
        assert_eq!(distance_after([3, 9, 4, 1, 8]), 0);
        assert_eq!(distance_after((1..LEAST_RUN as u16).chain([900])), 0, "the counter ended before this request");
    }

    #[test]
    fn ids_that_take_turns_come_again_after_their_number() {
        assert_eq!(distance_after((0..60).map(|step| 5 * (step % 10) + 1)), 10);
    }

    #[test]
    fn a_counter_comes_again_after_as_many_requests_as_it_has_counted_at_least() {
        assert_eq!(distance_after(0..200), 200);
        assert_eq!(distance_after((0..40).map(|step| 64 * step)), 40);
        assert_eq!(distance_after((0..40).filter(|mid| mid % 7 != 6)), 35, "the capture lacks some");
        assert_eq!(distance_after((1..LEAST_RUN as u16).collect::<Vec<_>>()), 0, "too few to tell");
    }
}

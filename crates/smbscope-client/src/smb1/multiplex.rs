//! Multiplex IDs: the next one to use, and those whose responses are to be discarded (MS-CIFS 3.2.4.1.5).

/// Maximum number of outstanding commands in a queue. Servers allow 50 (Samba, Windows).
pub(super) const OUTSTANDING_MAX: usize = 64;

/// Number of discarded MIDs remembered, enough for an abandoned queue. They distinguish late responses from protocol
/// errors.
const IGNORED: usize = OUTSTANDING_MAX;

#[derive(Debug)]
pub(super) struct Mids {
    last: u16,
    ignored: [Option<u16>; IGNORED],
    oldest: usize,
}

impl Default for Mids {
    fn default() -> Mids {
        Mids { last: 0, ignored: [None; IGNORED], oldest: 0 }
    }
}

impl Mids {
    pub(super) fn next(&mut self, waiting: impl Fn(u16) -> bool) -> u16 {
        loop {
            self.last = self.last.wrapping_add(1);
            let mid = self.last;
            // 0xffff marks the server's own requests, and some servers treat 0 as no ID.
            if mid != 0 && mid != u16::MAX && !waiting(mid) && !self.ignored.contains(&Some(mid)) {
                return mid;
            }
        }
    }

    pub(super) fn ignore(&mut self, mid: u16) {
        self.ignored[self.oldest] = Some(mid);
        self.oldest = (self.oldest + 1) % IGNORED;
    }

    pub(super) fn was_ignored(&self, mid: u16) -> bool {
        self.ignored.contains(&Some(mid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_round_without_those_that_are_in_use() {
        let mut mids = Mids::default();
        let first = mids.next(|_| false);
        mids.ignore(7);
        let round: Vec<u16> = (0..0xffff).map(|_| mids.next(|mid| mid == first)).collect();
        assert!(round.iter().all(|mid| ![0, 7, 0xffff, first].contains(mid)));
        assert!(mids.was_ignored(7) && !mids.was_ignored(8));
        // All other IDs were used: 65,536 minus these four.
        let distinct: std::collections::BTreeSet<u16> = round.into_iter().collect();
        assert_eq!(distinct.len(), 65_532);
    }

    #[test]
    fn of_the_ignored_the_oldest_is_forgotten() {
        let mut mids = Mids::default();
        let most = IGNORED as u16;
        (1..=most + 1).for_each(|mid| mids.ignore(mid));
        assert!(!mids.was_ignored(1) && mids.was_ignored(2) && mids.was_ignored(most + 1));
    }
}

//! Outstanding requests and their multiplex IDs (MS-CIFS 3.2.4.1.5).

use crate::Sample;
use crate::transport::ReceiveTimes;
use smbscope_model::CommandGroup;
use smbscope_wire::smb1::{self, Smb1Header};
use std::time::{Duration, Instant};

/// Outstanding SMB1 commands of a queue. Servers allow 50 (Samba, Windows).
pub(super) const OUTSTANDING_MAX: usize = 64;

/// Discarded MIDs remembered, enough for an abandoned queue: they distinguish late responses from protocol errors.
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

#[derive(Debug, Clone, Copy)]
pub(super) struct Smb1OutstandingRequest {
    pub(super) command: smb1::Smb1Command,
    pub(super) mid: u16,
    /// Sequence number of the response's signature.
    pub(super) sequence: Option<u32>,
    pub(super) sample: Sample,
}

impl Smb1OutstandingRequest {
    /// Returns the end of the wait for a response. `None` for an expected wait.
    pub(super) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        match self.sample.group {
            CommandGroup::Waiting => None,
            _ => self.sample.request_last.checked_add(timeout),
        }
    }
}

#[derive(Debug)]
pub(super) struct Smb1ChangeNotify {
    pub(super) pending: Smb1OutstandingRequest,
    pub(super) answer: Option<(Smb1Header, ReceiveTimes, Vec<u8>)>,
}

impl Smb1ChangeNotify {
    pub(super) fn keep(&mut self, header: Smb1Header, arrived: ReceiveTimes, message: &[u8]) {
        self.answer = Some((header, arrived, message.to_vec()));
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answer.is_some()
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

//! Doubt about idle moments: does each response belong to the latest request, or to an earlier one because other
//! requests are outstanding all the time?
//!
//! If losses leave the number of outstanding requests open, a moment at which all requests seem to be answered is
//! provisionally taken for idle. A response whose size rules out the request `n` places further back proves that there
//! are not `n` additional requests outstanding.

use super::habits::Habits;
use super::sizes;

const RECENT_REQUESTS: usize = 8;
/// Number of additional requests assumed possible even if there was never more than one outstanding.
const FEW: u64 = 2;
/// Number of sequential pairs after which at most one additional request is assumed possible.
const LONG: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Bit `n` is set if `n + 1` additional requests may be outstanding.
    open: u8,
    /// Sizes of the latest requests, latest first; 0 if unknown.
    requests: [u64; RECENT_REQUESTS + 1],
    /// Largest number of requests that were certainly outstanding together.
    concurrency: u64,
    sequential: u32,
}

impl Doubt {
    pub(super) fn is_open(&self) -> bool {
        self.open != 0
    }

    /// Up to `most` additional requests may be outstanding.
    pub(super) fn begin(&mut self, most: u64) {
        let few = if self.sequential >= LONG { 1 } else { FEW };
        let most = most.min(self.concurrency.clamp(few, RECENT_REQUESTS as u64));
        self.open |= ((1u16 << most) - 1) as u8;
    }

    pub(super) fn spread(&mut self) {
        self.open |= self.open.checked_ilog2().map_or(0, |highest| ((1u16 << (highest + 1)) - 1) as u8);
    }

    pub(super) fn end(&mut self) {
        self.open = 0;
    }

    pub(super) fn note_outstanding(&mut self, least: u64) {
        self.concurrency = self.concurrency.max(least);
    }

    pub(super) fn saw_concurrency(&self) -> bool {
        self.concurrency > 1
    }

    pub(super) fn pair(&mut self) {
        self.sequential = self.sequential.saturating_add(1);
    }

    pub(super) fn request(&mut self, plain: u64) {
        self.requests.rotate_right(1);
        self.requests[0] = plain;
    }

    pub(super) fn latest_request(&self) -> u64 {
        self.requests[0]
    }

    /// Returns true if the latest requests have more than two sizes.
    pub(super) fn sees_variety(&self) -> bool {
        let is_new = |index: &usize| !self.requests[..*index].contains(&self.requests[*index]);
        (0..self.requests.len()).filter(is_new).count() > 2
    }

    /// Accounts for requests that were not captured: one of a known size, or an unknown number, which makes all earlier
    /// sizes useless.
    pub(super) fn hidden_requests(&mut self, only: Option<u64>) {
        match only {
            Some(plain) => self.request(plain),
            None => self.requests = Default::default(),
        }
    }

    /// Considers a response while the latest request appears to be the only one outstanding.
    pub(super) fn response(&mut self, plain: u64, habits: &Habits) {
        let [latest, earlier @ ..] = &self.requests;
        for (further, request) in earlier.iter().enumerate() {
            if !sizes::may_answer(*request, plain) || habits.prefer(*latest, *request, plain) {
                self.open &= !(1 << further);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: [u64; 2] = [140, 152];
    const CLOSE: [u64; 2] = [88, 124];

    fn tell(doubt: &mut Doubt, [request, response]: [u64; 2]) {
        doubt.request(request);
        doubt.response(response, &Habits::default());
    }

    #[test]
    fn the_answer_to_an_open_after_a_close_can_not_be_that_of_the_close() {
        let mut doubt = Doubt::default();
        doubt.begin(1);
        tell(&mut doubt, CREATE);
        tell(&mut doubt, CLOSE);
        assert!(doubt.is_open(), "a CLOSE response may have the size of a short answer to something else");
        tell(&mut doubt, CREATE);
        assert!(!doubt.is_open());
    }

    #[test]
    fn requests_of_one_size_disprove_nothing() {
        let mut doubt = Doubt::default();
        doubt.begin(u64::MAX);
        (0..100).for_each(|_| tell(&mut doubt, [113, 65_616]));
        assert!(doubt.is_open());
    }

    #[test]
    fn where_many_were_outstanding_before_many_may_be_again() {
        let mut doubt = Doubt::default();
        doubt.note_outstanding(8);
        doubt.begin(u64::MAX);
        for _ in 0..3 {
            tell(&mut doubt, CREATE);
            tell(&mut doubt, CLOSE);
        }
        assert!(doubt.is_open(), "open and close in turn, four times: two, four or more may be outstanding");
    }

    #[test]
    fn what_may_have_been_answered_leaves_fewer_in_doubt() {
        let mut doubt = Doubt { open: 0b100, ..Doubt::default() };
        doubt.spread();
        assert_eq!(doubt.open, 0b111);
        doubt.end();
        doubt.spread();
        assert!(!doubt.is_open());
    }

    #[test]
    fn after_many_requests_one_by_one_hardly_two_more_are_outstanding() {
        let mut doubt = Doubt::default();
        doubt.begin(u64::MAX);
        assert_eq!(doubt.open, 0b11);
        doubt.end();
        (0..LONG).for_each(|_| doubt.pair());
        doubt.begin(u64::MAX);
        assert_eq!(doubt.open, 0b1);
        doubt.note_outstanding(3);
        doubt.begin(u64::MAX);
        assert_eq!(doubt.open, 0b111);
    }

    #[test]
    fn behind_a_gap_of_unknown_size_the_requests_before_it_disprove_nothing() {
        let mut doubt = Doubt::default();
        tell(&mut doubt, CLOSE);
        doubt.hidden_requests(None);
        doubt.begin(u64::MAX);
        tell(&mut doubt, CREATE);
        assert_eq!(doubt.open, 0b11);
    }
}

//! Doubt whether a connection was idle when it seemed to be: whether each response is that of the request before it, or
//! of one further back, because others are outstanding all the time.
//!
//! Where losses leave it open how many requests are outstanding, a moment at which all seems to be answered is taken for
//! idle, in doubt. A response that can't be that of the request `n` places further back, by their sizes, disproves that
//! `n` more were outstanding.

use super::habits::Habits;
use super::sizes;

/// Requests of which the size is remembered.
const RECENT_REQUESTS: usize = 8;
/// How many may be outstanding unnoticed at least, also on a connection on which there never was more than one.
const FEW: u64 = 2;
/// Pairs of a connection on which there never was more than one request outstanding, after which it is one further request
/// at most.
const LONG: u32 = 32;

/// What is open still.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Bit `n` says that `n + 1` further requests may be outstanding.
    open: u8,
    /// Sizes of the latest requests, the latest first; zero where it is unknown.
    requests: [u64; RECENT_REQUESTS + 1],
    /// The most requests that were outstanding together for certain.
    concurrency: u64,
    /// Pairs that are certain, all of them with nothing else outstanding.
    sequential: u32,
}

impl Doubt {
    pub(super) fn is_open(&self) -> bool {
        self.open != 0
    }

    /// This many requests more than it seems may be outstanding.
    pub(super) fn begin(&mut self, most: u64) {
        let few = if self.sequential >= LONG { 1 } else { FEW };
        let most = most.min(self.concurrency.clamp(few, RECENT_REQUESTS as u64));
        self.open |= ((1u16 << most) - 1) as u8;
    }

    /// Some of the further requests may have been answered.
    pub(super) fn spread(&mut self) {
        self.open |= self.open.checked_ilog2().map_or(0, |highest| ((1u16 << (highest + 1)) - 1) as u8);
    }

    /// Nothing was outstanding.
    pub(super) fn end(&mut self) {
        self.open = 0;
    }

    /// So many requests are outstanding together, at least.
    pub(super) fn note_outstanding(&mut self, least: u64) {
        self.concurrency = self.concurrency.max(least);
    }

    /// Whether there ever was more than one request outstanding.
    pub(super) fn saw_concurrency(&self) -> bool {
        self.concurrency > 1
    }

    /// A pair is certain.
    pub(super) fn pair(&mut self) {
        self.sequential = self.sequential.saturating_add(1);
    }

    /// A request, with the size of its message.
    pub(super) fn request(&mut self, plain: u64) {
        self.requests.rotate_right(1);
        self.requests[0] = plain;
    }

    /// The size of the latest request; zero where it is unknown.
    pub(super) fn latest_request(&self) -> u64 {
        self.requests[0]
    }

    /// Whether the latest requests are of several kinds.
    pub(super) fn sees_variety(&self) -> bool {
        let is_new = |index: &usize| !self.requests[..*index].contains(&self.requests[*index]);
        (0..self.requests.len()).filter(is_new).count() > 2
    }

    /// Requests that were not seen: one with a message of this size, or so many that it is not known how far back those
    /// before them are.
    pub(super) fn hidden_requests(&mut self, only: Option<u64>) {
        match only {
            Some(plain) => self.request(plain),
            None => self.requests = Default::default(),
        }
    }

    /// A response while the latest request is the only one that seems to be outstanding.
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

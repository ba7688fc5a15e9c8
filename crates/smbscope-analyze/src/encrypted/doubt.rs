//! Doubt about idle moments: does each response belong to the latest request, or to an earlier one because other
//! requests are outstanding all the time?
//!
//! If losses leave the number of outstanding requests open, a moment at which all requests seem to be answered is
//! provisionally assumed idle. A response whose size rules out the request `n` places further back proves that there
//! are not `n` additional requests outstanding.

use super::sizes;
use crate::pending::PendingExchange;
use smbscope_model::ExchangeOutcome;
use std::collections::VecDeque;

/// Recent encrypted requests whose sizes confirm pairs.
const RECENT_REQUESTS: usize = 8;
/// Number of additional requests assumed possible even if there was never more than one outstanding.
const FEW: u64 = 2;
/// Number of sequential pairs after which at most one additional request is assumed possible.
const LONG: u32 = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Doubt {
    /// Bit `n` is set if `n + 1` additional requests may be outstanding.
    open: u8,
    requests: [u64; RECENT_REQUESTS + 1],
    concurrency: u64,
    sequential: u32,
}

impl Doubt {
    pub(super) fn is_open(&self) -> bool {
        self.open != 0
    }

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

    pub(super) fn sees_variety(&self) -> bool {
        let is_new = |index: &usize| !self.requests[..*index].contains(&self.requests[*index]);
        (0..self.requests.len()).filter(is_new).count() > 2
    }

    /// Accounts for lost requests: one of the size `only`, or an unknown number, which makes all earlier sizes useless.
    pub(super) fn hidden_requests(&mut self, only: Option<u64>) {
        match only {
            Some(plain) => self.request(plain),
            None => self.requests = Default::default(),
        }
    }

    pub(super) fn response(&mut self, plain: u64, habits: &Habits) {
        let [latest, earlier @ ..] = &self.requests;
        for (further, request) in earlier.iter().enumerate() {
            if !sizes::may_answer(*request, plain) || habits.prefer(*latest, *request, plain) {
                self.open &= !(1 << further);
            }
        }
    }
}

/// Request sizes with known response sizes; the rarest is evicted.
const MAX_HABITS: usize = 24;
/// Response sizes per request size; more confirm nothing.
const MAX_ANSWERS: usize = 2;
const LEAST_TIMES: u32 = 3;

#[derive(Debug, Clone, Copy)]
struct Habit {
    request: u64,
    responses: [u64; MAX_ANSWERS],
    times: u32,
    varies: bool,
}

impl Habit {
    fn note(&mut self, response: u64) {
        self.times = self.times.saturating_add(1);
        match self.responses.iter_mut().find(|known| **known == response || **known == 0) {
            Some(known) => *known = response,
            None => self.varies = true,
        }
    }
}

/// Response sizes by request size, learnt from the certain pairs of a connection.
///
/// Most request sizes fit several commands, but a client uses few of them. A response of another size than all before
/// probably belongs to another request. Errors are ignored, because any request may fail.
#[derive(Debug, Clone, Default)]
pub(super) struct Habits {
    known: Vec<Habit>,
}

impl Habits {
    pub(super) fn note(&mut self, request: u64, response: u64) {
        if sizes::may_be_error(response) {
            return;
        }
        let request = sizes::alike(request);
        if let Some(habit) = self.known.iter_mut().find(|habit| habit.request == request) {
            return habit.note(response);
        }
        if self.known.len() == MAX_HABITS {
            let rarest = (0..MAX_HABITS).min_by_key(|index| self.known[*index].times);
            rarest.map(|index| self.known.swap_remove(index));
        }
        let mut responses = [0; MAX_ANSWERS];
        responses[0] = response;
        self.known.push(Habit { request, responses, times: 1, varies: false });
    }

    /// Returns true if requests of this size usually get responses of this size. `None` if there is no prediction.
    pub(super) fn is_usual(&self, request: u64, response: u64) -> Option<bool> {
        let habit = self.known.iter().find(|habit| habit.request == sizes::alike(request))?;
        let is_habit = habit.times >= LEAST_TIMES && !habit.varies;
        is_habit.then(|| habit.responses.contains(&response))
    }

    pub(super) fn prefer(&self, latest: u64, earlier: u64, response: u64) -> bool {
        self.is_usual(latest, response) == Some(true) && self.is_usual(earlier, response) == Some(false)
    }
}

/// Encrypted pairs with possibly interim responses; the oldest is timed.
const MAX_SUSPECTS: usize = 64;

/// Pairs whose response has the size of an interim response, held back in case another response follows.
///
/// Errors have the same size. After an error a client usually continues, but a concurrent client also continues while a
/// request is pending, and then no request explains a later response. So these pairs and the pairs after them are held
/// back: if requests overlap, one of them may have got the late response, and the following pairs each other's.
#[derive(Debug, Clone, Default)]
pub(super) struct Suspects {
    pairs: VecDeque<Box<PendingExchange>>,
}

impl Suspects {
    pub(super) fn is_suspect(pair: &PendingExchange) -> bool {
        let exchange = &pair.exchange;
        sizes::may_be_interim(sizes::plain(exchange.response.bytes)) && exchange.interim.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.pairs.iter_mut().map(Box::as_mut)
    }

    pub(super) fn push(&mut self, pair: Box<PendingExchange>) {
        self.pairs.push_back(pair);
    }

    pub(super) fn pop_cleared(&mut self) -> Option<Box<PendingExchange>> {
        let first = self.pairs.front()?;
        let is_kept = self.pairs.len() <= MAX_SUSPECTS && Suspects::is_suspect(first);
        if is_kept { None } else { self.pairs.pop_front() }
    }

    /// Removes the pairs that a late response of this size makes doubtful and, if requests overlap, all pairs since.
    pub(super) fn take_all(&mut self, response: u64, overlap: bool) -> VecDeque<Box<PendingExchange>> {
        let (mut taken, mut kept) = (VecDeque::new(), VecDeque::new());
        for pair in self.pairs.drain(..) {
            let request = sizes::plain(pair.exchange.request.bytes);
            let may_be_answered = Suspects::is_suspect(&pair) && sizes::may_answer(request, response);
            let follows = overlap && !taken.is_empty() && pair.exchange.outcome == ExchangeOutcome::Complete;
            match may_be_answered || follows {
                true => taken.push_back(pair),
                false => kept.push_back(pair),
            }
        }
        self.pairs = kept;
        taken
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        self.pairs.drain(..)
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

    const ERROR: u64 = 73;

    fn told(pairs: &[(u64, u64)]) -> Habits {
        let mut habits = Habits::default();
        (0..LEAST_TIMES).flat_map(|_| pairs).for_each(|(request, response)| habits.note(*request, *response));
        habits
    }

    #[test]
    fn an_answer_is_that_of_the_request_which_is_always_answered_like_this() {
        let habits = told(&[(140, 152), (88, 124), (140, ERROR)]);
        assert!(habits.prefer(140, 88, 152) && habits.prefer(88, 140, 124));
        assert!(!habits.prefer(140, 88, ERROR), "anything may fail");
        assert!(!habits.prefer(140, 113, 152), "nobody knows how 113 bytes are answered");
    }

    #[test]
    fn requests_that_are_answered_in_many_sizes_tell_nothing() {
        let habits = told(&[(98, 292), (98, 404), (98, 526), (88, 124)]);
        assert_eq!((habits.is_usual(98, 124), habits.is_usual(88, 124)), (None, Some(true)));
    }

    #[test]
    fn a_size_seen_once_is_no_habit() {
        let mut habits = Habits::default();
        habits.note(88, 124);
        assert_eq!(habits.is_usual(88, 124), None);
    }

    #[test]
    fn writes_of_any_length_are_answered_alike() {
        let mut habits = Habits::default();
        [20_000, 65_000, 31_638].into_iter().for_each(|request| habits.note(request, 80));
        assert_eq!((habits.is_usual(9_000, 80), habits.is_usual(9_000, 124)), (Some(true), Some(false)));
    }

    #[test]
    fn the_rarest_of_too_many_is_forgotten() {
        let mut habits = told(&[(88, 124)]);
        (0..10 * MAX_HABITS as u64).for_each(|other| habits.note(1000 + other, 80));
        assert_eq!(habits.known.len(), MAX_HABITS);
        assert_eq!(habits.is_usual(88, 124), Some(true));
    }
}

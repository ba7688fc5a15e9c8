//! Pairs whose response has the size of an interim response, kept back in case that another response follows.
//!
//! An error and an interim response have one size. A client that goes on takes an error for the answer, as a rule; but one
//! that has several things to do goes on while a request is pending, too. Then a response comes later that no request
//! explains. So these pairs are kept back for a while, and so are the pairs behind them: where requests overlap, one of
//! them may have been given the late response, and the next ones each other's.

use super::sizes;
use crate::pending::PendingExchange;
use smbscope_model::ExchangeOutcome;
use std::collections::VecDeque;

/// Pairs that are kept back, from the first suspect on.
const MAX_SUSPECTS: usize = 64;

/// Pairs in their order; the first one is a suspect.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    pairs: VecDeque<Box<PendingExchange>>,
}

impl Suspects {
    /// Returns true if the response of a pair may be an interim one.
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

    /// Adds a pair that is settled.
    pub(super) fn push(&mut self, pair: Box<PendingExchange>) {
        self.pairs.push_back(pair);
    }

    /// Removes the first pair if it need not be kept back any longer.
    pub(super) fn pop_cleared(&mut self) -> Option<Box<PendingExchange>> {
        let first = self.pairs.front()?;
        let is_kept = self.pairs.len() <= MAX_SUSPECTS && Suspects::is_suspect(first);
        if is_kept { None } else { self.pairs.pop_front() }
    }

    /// Takes out the pairs that a late response of this size makes doubtful: suspects that it may answer and, where
    /// requests overlap, what was paired since.
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

    /// The connection is over: no other response came.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        self.pairs.drain(..)
    }
}

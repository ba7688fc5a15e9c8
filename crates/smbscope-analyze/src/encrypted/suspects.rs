//! Pairs whose response has the size of an interim response, held back in case another response follows.
//!
//! Errors and interim responses have the same size. A client usually takes an error for the answer and continues, but a
//! concurrent client continues while a request is pending, too. Then a later response is not explained by any request.
//! So these pairs are held back for a while, and the pairs after them as well: if requests overlap, one of them may
//! have got the late response, and the following pairs each other's.

use super::sizes;
use crate::pending::PendingExchange;
use smbscope_model::ExchangeOutcome;
use std::collections::VecDeque;

/// Maximum number of pairs held back, counted from the first suspect.
const MAX_SUSPECTS: usize = 64;

#[derive(Debug, Default)]
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

    /// Removes the pairs that a late response of this size makes doubtful: suspects that it may answer and, if requests
    /// overlap, the pairs since.
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

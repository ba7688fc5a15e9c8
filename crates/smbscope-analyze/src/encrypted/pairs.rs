//! Pairs of an encrypted request and response: completion, and everything that confirms or refutes them later.

use super::doubt::Suspects;
use super::{Answered, Encrypted, OutstandingBounds, sizes};
use crate::frame::Frame;
use crate::ledger::Ledger;
use crate::pending::PendingExchange;
use smbscope_model::{ExchangeOutcome, Nanos, ResponseStatus, TimeKind};
use smbscope_wire::status::NtStatus;

/// Unconfirmed encrypted pairs; the oldest is not timed.
const MAX_DOUBTFUL: usize = 64;

impl Encrypted {
    /// Replaces the response by a later one: the earlier one was an interim response or a notification.
    pub(super) fn answer_again(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, mut answered: Answered, plain: u64) {
        let pending = &mut answered.request.pending;
        self.others += 1;
        if sizes::may_be_interim(answered.plain) {
            pending.exchange.interim = pending.exchange.response.first;
            ledger.quality.interim_responses += 1;
        }
        take_back(pending);
        pending.add_response(frame, frame.length(), ResponseStatus::Nt(NtStatus::SUCCESS));
        pending.exchange.status = None;
        self.answered = Some(Answered { plain, ..answered });
    }

    /// Withdraws a response that may belong to another request. The request may still be outstanding and is not timed.
    /// `hidden` is true if its response may be in a gap.
    pub(super) fn unanswer(&mut self, ledger: &mut Ledger<'_>, answered: Answered, hidden: bool) {
        let mut pending = answered.request.pending;
        if sizes::may_be_interim(answered.plain) {
            pending.exchange.interim = pending.exchange.response.first;
        }
        self.outstanding.add(0, 1);
        self.lingers |= sizes::may_linger(answered.request.plain);
        take_back(&mut pending);
        if hidden {
            ledger.abandon(pending);
        } else {
            self.refuse(ledger, pending, ExchangeOutcome::NotPairable);
        }
    }

    /// Handles more responses than requests: the connection was not idle, but is now unless even more are outstanding.
    pub(super) fn contradict(&mut self, ledger: &mut Ledger<'_>) {
        self.refuse_doubtful(ledger);
        self.doubt.begin(1);
        self.lingers = true;
    }

    pub(super) fn pair(&mut self, ledger: &mut Ledger<'_>, pending: Box<PendingExchange>) {
        self.longest = self.longest.max(pending.exchange.time(TimeKind::ResponseTime).unwrap_or(Nanos(0)));
        self.pairs = self.pairs.saturating_add(1);
        if !self.doubt.is_open() {
            if self.suspects.is_empty() && !Suspects::is_suspect(&pending) {
                self.learn(&pending);
                ledger.complete(pending);
            } else {
                ledger.set_aside(&pending);
                self.accept_aside(ledger, pending);
            }
            return;
        }
        ledger.set_aside(&pending);
        let doubtful = &mut self.doubtful;
        doubtful.push_back(pending);
        if doubtful.len() > MAX_DOUBTFUL
            && let Some(oldest) = doubtful.pop_front()
        {
            self.refuse_aside(ledger, oldest);
        }
    }

    /// Ends the remaining requests: hidden responses or responses that can't be assigned answered them.
    pub(super) fn idle(&mut self, ledger: &mut Ledger<'_>) {
        self.outstanding = OutstandingBounds::default();
        self.overtaken = 0;
        let ambiguous = std::mem::take(&mut self.ambiguous);
        while let Some(request) = self.waiting.pop_front() {
            self.lingers |= sizes::may_linger(request.plain);
            if ambiguous {
                self.refuse(ledger, request.pending, ExchangeOutcome::NotPairable);
            } else {
                ledger.abandon(request.pending);
            }
        }
    }

    pub(super) fn refuse(
        &mut self,
        ledger: &mut Ledger<'_>,
        mut pending: Box<PendingExchange>,
        outcome: ExchangeOutcome,
    ) {
        take_back(&mut pending);
        pending.exchange.outcome = outcome;
        ledger.finish(pending);
    }

    pub(super) fn refuse_aside(&mut self, ledger: &mut Ledger<'_>, mut pending: Box<PendingExchange>) {
        take_back(&mut pending);
        pending.exchange.outcome = ExchangeOutcome::NotPairable;
        ledger.report(pending);
    }

    pub(super) fn refuse_doubtful(&mut self, ledger: &mut Ledger<'_>) {
        while let Some(pending) = self.doubtful.pop_front() {
            self.refuse_aside(ledger, pending);
        }
    }

    pub(super) fn refuse_drained(&mut self, ledger: &mut Ledger<'_>) {
        if self.doubt.is_open() {
            self.refuse_doubtful(ledger);
            self.doubt.spread();
        }
    }

    pub(super) fn accept_doubtful(&mut self, ledger: &mut Ledger<'_>) {
        self.doubt.end();
        while let Some(pending) = self.doubtful.pop_front() {
            self.accept_aside(ledger, pending);
        }
    }

    pub(super) fn accept_aside(&mut self, ledger: &mut Ledger<'_>, mut pending: Box<PendingExchange>) {
        self.learn(&pending);
        pending.settle();
        self.suspects.push(pending);
        while let Some(pending) = self.suspects.pop_cleared() {
            ledger.report(pending);
        }
    }

    /// Refuses pairs that an unexplained response of this size makes doubtful. Returns false if it found none.
    pub(super) fn refuse_suspects(&mut self, ledger: &mut Ledger<'_>, plain: u64) -> bool {
        let refused = self.suspects.take_all(plain, self.doubt.saw_concurrency());
        self.others += u64::from(!refused.is_empty());
        let is_any = !refused.is_empty();
        for pending in refused {
            self.refuse_aside(ledger, pending);
        }
        while let Some(pending) = self.suspects.pop_cleared() {
            ledger.report(pending);
        }
        is_any
    }

    pub(crate) fn settle(&mut self, ledger: &mut Ledger<'_>) {
        if let Some(cancelled) = self.cancelled.take() {
            self.unanswer(ledger, cancelled, true);
        }
        if let Some(answered) = self.answered.take() {
            if answered.may_be_more() {
                self.unanswer(ledger, answered, true);
            } else {
                self.pair(ledger, answered.request.pending);
            }
        }
        self.refuse_doubtful(ledger);
        for pending in self.suspects.drain() {
            ledger.report(pending);
        }
        if self.ambiguous {
            self.idle(ledger);
        }
    }
}

fn take_back(pending: &mut PendingExchange) {
    pending.exchange.response = Default::default();
    pending.response = None;
    pending.response_resent = None;
}

//! Encrypted frames: contents are hidden, but times and sizes are visible (MS-SMB2 §2.2.41).
//!
//! A client's frame and the server's next frame form a pair if nothing else is outstanding. So this module counts
//! outstanding requests, including hidden ones: the position of a gap and the acknowledgments of both sides place it
//! between frames, and its size limits the number of messages in it. If that leaves several possibilities, the next
//! moment at which all requests seem to be answered is assumed idle, and pairs are held back until sizes confirm it
//! ([`doubt`]). If several requests are outstanding together, none is timed.
//!
//! A pair is final when the client continues and the server has sent nothing in between: the response was not interim.

mod doubt;
mod pairs;
pub(crate) mod sizes;

use crate::frame::{Frame, Losses};
use crate::ledger::{Ledger, Opening};
use crate::pending::{Causality, PendingExchange};
use crate::unseen::EncryptedMissing;
use doubt::{Doubt, Habits, Suspects};
use sizes::Nonces;
use smbscope_model::{Command, CommandGroup, ExchangeOutcome, FlowDirection, Nanos, ResponseStatus, Timestamp};
use smbscope_wire::smb2::Nonce;
use smbscope_wire::status::NtStatus;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Outstanding encrypted frames per connection: `evicted_requests`.
const MAX_OUTSTANDING: usize = 512;
/// Responses that may overtake a request. After them an apparently unanswered request is no longer assumed to be
/// outstanding, since it may never be answered.
const MAX_OVERTAKEN: u32 = 16;
/// Pause of the client, as a multiple of the longest response time so far, that proves that nothing is outstanding.
const PAUSE: i64 = 16;
const TYPICAL: u32 = 8;

#[derive(Debug, Clone, Copy, Default)]
struct OutstandingBounds {
    least: u64,
    most: u64,
}

impl OutstandingBounds {
    fn is_known(self) -> bool {
        self.least == self.most
    }

    fn add(&mut self, least: u64, most: u64) {
        self.least += least;
        self.most = self.most.saturating_add(most).max(self.least);
    }

    /// The server sent responses; between `least` and `most` of them are final.
    fn answer(&mut self, least: u64, most: u64) {
        self.least = self.least.saturating_sub(most);
        self.most = self.most.saturating_sub(least).max(self.least);
    }
}

#[derive(Debug, Clone)]
struct EncryptedRequest {
    pending: Box<PendingExchange>,
    plain: u64,
}

#[derive(Debug, Clone)]
struct Answered {
    request: EncryptedRequest,
    plain: u64,
}

impl Answered {
    fn may_be_more(&self) -> bool {
        let interim = sizes::may_be_interim(self.plain) && self.request.pending.exchange.interim.is_none();
        interim || sizes::may_be_break(self.plain)
    }

    /// Returns true if another message of the server may be the response to this request because the request is a break
    /// acknowledgment, whose response has the same size (MS-SMB2 §2.2.24, §2.2.25).
    fn may_answer_break(&self, plain: u64) -> bool {
        sizes::may_acknowledge_break(self.request.plain) && self.request.plain == plain
    }
}

#[derive(Debug, Clone, Copy)]
struct EncryptedResponse {
    plain: u64,
    end: u64,
    requests_hidden: bool,
    responses_hidden: bool,
}

impl EncryptedResponse {
    fn follows_at_once(self) -> bool {
        !self.requests_hidden && !self.responses_hidden
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Encrypted {
    waiting: VecDeque<EncryptedRequest>,
    answered: Option<Answered>,
    /// A request with a possible interim response, after which the client sent a possible CANCEL.
    cancelled: Option<Answered>,
    outstanding: OutstandingBounds,
    /// Requests that no longer count may still be answered: change notifications and locks.
    lingers: bool,
    /// A response since the connection was idle could not be assigned.
    ambiguous: bool,
    overtaken: u32,
    doubtful: VecDeque<Box<PendingExchange>>,
    doubt: Doubt,
    habits: Habits,
    suspects: Suspects,
    client_counted: u64,
    server_counted: u64,
    client_nonces: Nonces,
    server_nonces: Nonces,
    /// Server's latest nonce minus the client's, taken while nothing was outstanding.
    lead: Option<i64>,
    responses: u64,
    others: u64,
    answers_to_earlier: bool,
    latest: Option<Timestamp>,
    longest: Nanos,
    pairs: u32,
}

impl Encrypted {
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        self.waiting.drain(..).map(|request| request.pending)
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.waiting.len() + self.doubtful.len() + self.suspects.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        let answered = self.answered.iter_mut().chain(&mut self.cancelled).map(|answered| &mut answered.request);
        let requests = self.waiting.iter_mut().chain(answered).map(|request| &mut request.pending);
        requests.chain(&mut self.doubtful).map(Box::as_mut).chain(self.suspects.iter_mut())
    }

    pub(crate) fn final_responses(&self) -> u64 {
        self.responses - self.others
    }

    pub(crate) fn missing(&self) -> EncryptedMissing {
        EncryptedMissing {
            requests: self.client_nonces.missing(),
            responses: self.server_nonces.missing(),
            others: self.others as f64 / self.responses.max(1) as f64,
            before: u64::from(self.answers_to_earlier),
        }
    }

    fn note_idle(&mut self, frame: &Frame) {
        if self.outstanding.most > 0 || self.doubt.is_open() || !self.waiting.is_empty() {
            return;
        }
        if let Some((server, received)) = self.server_nonces.latest()
            && let Some((client, sent)) = self.client_nonces.latest()
            && (sent, Some(received)) == (frame.start, frame.acknowledged_last)
        {
            self.lead = Some(server.wrapping_sub(client) as i64);
        }
    }

    /// Returns the number of requests outstanding before this response according to the nonces of both sides. `None` if
    /// one side does not count, or if its latest message before the response was not captured.
    fn outstanding_before(&self, frame: &Frame) -> Option<u64> {
        let received = |(_, end): &(u64, u64)| frame.acknowledged_first == Some(*end);
        let (client, _) = self.client_nonces.latest().filter(received)?;
        let before = self.server_nonces.latest()?.0.wrapping_sub(1);
        let outstanding = self.lead?.checked_sub(before.wrapping_sub(client) as i64)?;
        // An implausible number means that these nonces don't count.
        u64::try_from(outstanding).ok().filter(|outstanding| *outstanding <= MAX_OUTSTANDING as u64)
    }

    fn count_hidden_requests(&mut self, losses: &Losses, to: u64) {
        for bytes in hidden(losses, self.client_counted, to) {
            let most = sizes::most_requests(bytes);
            // Before the first encrypted frame, hidden messages are plain, and their sizes are meaningless.
            let encrypted = self.latest.is_some();
            self.outstanding.add(u64::from(encrypted && sizes::is_one_request(bytes)), most);
            self.lingers |= sizes::may_hide_lingering(bytes);
            self.doubt.hidden_requests(sizes::only_request(bytes).filter(|_| encrypted));
        }
        self.client_counted = self.client_counted.max(to);
    }

    /// Counts hidden responses up to a stream position. Returns true if they may have answered more requests than seem
    /// to be outstanding. `goes_on` is true if the client has received them and sends its next request.
    fn count_hidden_responses(&mut self, losses: &Losses, to: u64, goes_on: bool) -> bool {
        let mut more = false;
        for bytes in hidden(losses, self.server_counted, to) {
            let interim_possible = self.outstanding.most > 0 && !(goes_on && self.only_waits_for_the_server());
            let none = sizes::may_be_without_final(bytes, interim_possible);
            let another = self.others_may_answer() && sizes::may_hide_lingering_answer(bytes);
            more |= sizes::most_responses(bytes) > self.outstanding.least && !sizes::may_be_breaks(bytes);
            self.outstanding.answer(u64::from(!none && !another), sizes::most_responses(bytes));
        }
        self.server_counted = self.server_counted.max(to);
        more
    }

    /// Returns true if a single request is outstanding and clients send nothing else while one of its size is pending.
    fn only_waits_for_the_server(&self) -> bool {
        let latest = self.doubt.latest_request();
        let one = self.outstanding.is_known() && self.outstanding.most == 1;
        one && latest > 0 && !sizes::may_stay_pending(latest)
    }

    /// Returns true if a lingering request may be answered while others are outstanding. A sequential client continues
    /// only because its latest request was answered.
    fn others_may_answer(&self) -> bool {
        self.lingers && self.doubt.saw_concurrency()
    }

    fn may_end_lingering(&self, response: u64) -> bool {
        self.lingers && sizes::may_answer_lingering(response)
    }

    /// Returns true if the response may belong to a lingering request instead, unless it is usual for this request.
    fn may_end_another(&self, request: u64, response: u64) -> bool {
        self.may_end_lingering(response) && self.habits.is_usual(request, response) != Some(true)
    }

    /// Returns true if a request may never be answered. Requests of a single kind may instead be many concurrent ones.
    fn may_be_stuck(&self) -> bool {
        self.overtaken >= MAX_OVERTAKEN && self.doubt.sees_variety()
    }

    fn learn(&mut self, pending: &PendingExchange) {
        let [request, response] = [&pending.exchange.request, &pending.exchange.response];
        self.doubt.pair();
        self.habits.note(sizes::plain(request.bytes), sizes::plain(response.bytes));
    }

    fn pauses(&self, now: Timestamp) -> bool {
        let long_enough = |pause: Nanos| pause.0 / PAUSE > self.longest.0;
        self.pairs >= TYPICAL && self.latest.is_some_and(|latest| long_enough(now - latest))
    }
}

impl Encrypted {
    pub(crate) fn take(
        &mut self,
        ledger: &mut Ledger<'_>,
        direction: FlowDirection,
        frame: &Frame,
        session_id: Option<u64>,
        nonce: Option<Nonce>,
    ) {
        ledger.accounts.summary.encrypted_frames += 1;
        ledger.quality.encrypted_frames += 1;
        let begins = ledger.view.begins[direction.index()];
        let sender = session_id.zip(nonce);
        if direction == ledger.client() {
            self.note_idle(frame);
            self.request(ledger, frame, session_id);
            self.client_nonces.note(sender, frame, ledger.client_losses, begins);
        } else {
            self.responses += 1;
            let is_first = self.latest.is_none() && !begins && !sizes::may_be_break(sizes::plain(frame.length()));
            self.answers_to_earlier |= is_first;
            self.server_nonces.note(sender, frame, ledger.server_losses, begins);
            self.response(ledger, frame);
        }
        self.latest = frame.last.or(Some(frame.first)).map(|stamp| stamp.time);
    }

    fn request(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, session_id: Option<u64>) {
        let plain = sizes::plain(frame.length());
        // A late copy acknowledges too much: data that the client may have received after sending the first copy.
        let received = frame.acknowledged_last.unwrap_or(0);
        self.confirm_before(ledger, frame, plain);
        let nothing_between = self.client_counted == frame.start && self.server_counted == received;
        let after_pause = nothing_between && self.pauses(frame.first.time);
        self.count_hidden_requests(ledger.client_losses, frame.start);
        if self.count_hidden_responses(ledger.server_losses, received, true) {
            self.refuse_drained(ledger);
        }
        let all_received = received >= ledger.server_losses.reached();
        let most = self.outstanding.most;
        if most == 0 {
            self.idle(ledger);
            if after_pause {
                self.accept_doubtful(ledger);
            }
        } else if all_received && (self.outstanding.least == 0 || self.may_be_stuck()) {
            self.idle(ledger);
            self.refuse_doubtful(ledger);
            if !after_pause {
                self.doubt.begin(most);
            }
        }

        let opening = Opening {
            command: Command::EncryptedFrame,
            subcommand: None,
            group: CommandGroup::Encrypted,
            message_id: None,
            bytes: frame.length(),
        };
        let mut pending = ledger.begin(frame, opening);
        pending.exchange.encrypted = true;
        pending.exchange.session_id = session_id;
        let server = ledger.server();
        pending.exchange.user =
            session_id.and_then(|id| ledger.sessions.get(server, id)).and_then(|session| session.user.clone());
        ledger.started(&pending);
        self.client_counted = frame.end;
        self.doubt.request(plain);
        self.outstanding.add(u64::from(!sizes::may_be_cancel(plain)), 1);
        if frame.acknowledged_last.is_some() {
            // The state of the client when it sent the original of a late copy is unknown.
            self.doubt.note_outstanding(self.outstanding.least);
        }
        self.waiting.push_back(EncryptedRequest { pending, plain });
        if self.waiting.len() > MAX_OUTSTANDING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.refuse(ledger, oldest.pending, ExchangeOutcome::Evicted);
        }
    }

    fn confirm_before(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, plain: u64) {
        if let Some(cancelled) = self.cancelled.take() {
            self.unanswer(ledger, cancelled, true);
        }
        let Some(answered) = self.answered.take() else { return };
        let received = frame.acknowledged_last.max(frame.acknowledged_first).unwrap_or(0);
        let more_requests = hidden(ledger.client_losses, self.client_counted, frame.start).next().is_some();
        let mut more = hidden(ledger.server_losses, self.server_counted, received).peekable();
        let is_interim = sizes::may_be_interim(answered.plain) && sizes::may_stay_pending(answered.request.plain);
        let is_break = sizes::may_be_break(answered.plain) && sizes::may_acknowledge_break(plain);
        let hidden = more.peek().is_some();
        if answered.may_be_more() {
            if hidden || more_requests || is_interim || is_break {
                self.lingers |= is_interim;
                let waits = is_break || sizes::may_stay_pending(answered.request.plain);
                self.unanswer(ledger, answered, hidden);
                if !waits {
                    // The client continues with something else, so it has its response, this one or another.
                    self.outstanding.most -= 1;
                }
                return;
            }
            if sizes::may_be_cancel(plain) {
                self.cancelled = Some(answered);
                return;
            }
        } else if (!more_requests || self.may_end_another(answered.request.plain, answered.plain))
            && !more.all(sizes::may_be_breaks)
        {
            self.unanswer(ledger, answered, false);
            self.contradict(ledger);
            return;
        }
        self.pair(ledger, answered.request.pending);
    }

    fn response(&mut self, ledger: &mut Ledger<'_>, frame: &Frame) {
        let plain = sizes::plain(frame.length());
        let received = frame.acknowledged_first.unwrap_or(self.client_counted);
        let response = EncryptedResponse {
            plain,
            end: frame.end,
            requests_hidden: hidden(ledger.client_losses, self.client_counted, received).next().is_some(),
            responses_hidden: hidden(ledger.server_losses, self.server_counted, frame.start).next().is_some(),
        };
        if let Some(cancelled) = self.cancelled.take()
            && self.follow_cancelled(ledger, cancelled, response)
        {
            return;
        }
        if let Some(answered) = self.answered.take()
            && self.follow_answered(ledger, frame, answered, response)
        {
            return;
        }
        self.count_hidden_requests(ledger.client_losses, received);
        if self.count_hidden_responses(ledger.server_losses, frame.start, false) {
            self.refuse_drained(ledger);
        }
        self.server_counted = frame.end;
        match self.outstanding_before(frame) {
            Some(0) => self.lead = None,
            Some(outstanding) => self.know_outstanding(ledger, outstanding),
            None => {}
        }
        if self.outstanding.most > 0 {
            self.take_response(ledger, frame, plain, response.responses_hidden);
        } else if !sizes::may_be_break(plain) {
            self.refuse_suspects(ledger, plain);
            self.contradict(ledger);
        }
        if self.outstanding.most == 0 {
            self.idle(ledger);
        }
    }

    /// Settles a possibly cancelled request. Returns true if the response was the one to it or to the CANCEL.
    fn follow_cancelled(&mut self, ledger: &mut Ledger<'_>, cancelled: Answered, response: EncryptedResponse) -> bool {
        let EncryptedResponse { plain, responses_hidden, .. } = response;
        // A request with a response of its own was not a CANCEL.
        let is_other = sizes::is_empty(plain) && !sizes::may_answer(cancelled.request.plain, plain);
        let nothing_else = self.outstanding.most == 1;
        if response.follows_at_once() && is_other {
            self.pair(ledger, cancelled.request.pending);
            return false;
        }
        self.unanswer(ledger, cancelled, responses_hidden);
        if !(response.follows_at_once() && nothing_else && sizes::may_be_interim(plain)) {
            return false;
        }
        // Either the response to the cancelled request or an error: nothing is outstanding now.
        self.server_counted = response.end;
        self.ambiguous = true;
        self.idle(ledger);
        true
    }

    /// Settles an answered request when another response arrives. Returns true if that teaches nothing else.
    fn follow_answered(
        &mut self,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
        answered: Answered,
        response: EncryptedResponse,
    ) -> bool {
        let plain = response.plain;
        let is_answer = sizes::may_answer(answered.request.plain, plain);
        if !response.follows_at_once() {
            self.settle_answered(ledger, answered, response);
            return false;
        }
        if answered.may_be_more() && is_answer {
            self.server_counted = response.end;
            if self.refuse_suspects(ledger, plain) || self.may_end_lingering(plain) {
                // One of the two responses belongs to another request, and this request has its own.
                self.refuse(ledger, answered.request.pending, ExchangeOutcome::NotPairable);
            } else {
                self.answer_again(ledger, frame, answered, plain);
            }
        } else if self.may_end_lingering(answered.plain) && answered.may_answer_break(plain) {
            // A CLOSE and the response to another request, or a break acknowledgment and its own response.
            self.server_counted = response.end;
            self.refuse(ledger, answered.request.pending, ExchangeOutcome::NotPairable);
        } else if sizes::may_be_break(plain) || !is_answer {
            // A break notification while nothing is outstanding, or the final response after an interim one.
            self.server_counted = response.end;
            if !sizes::may_be_break(plain) {
                self.refuse_suspects(ledger, plain);
            }
            self.answered = Some(answered);
        } else {
            self.settle_answered(ledger, answered, response);
            return false;
        }
        true
    }

    fn settle_answered(&mut self, ledger: &mut Ledger<'_>, answered: Answered, response: EncryptedResponse) {
        let EncryptedResponse { plain, requests_hidden, responses_hidden, .. } = response;
        if !requests_hidden {
            self.refuse_suspects(ledger, plain);
            self.unanswer(ledger, answered, responses_hidden);
            self.contradict(ledger);
        } else if answered.may_be_more()
            || responses_hidden && self.may_end_another(answered.request.plain, answered.plain)
        {
            self.unanswer(ledger, answered, true);
        } else {
            self.pair(ledger, answered.request.pending);
        }
    }

    fn know_outstanding(&mut self, ledger: &mut Ledger<'_>, outstanding: u64) {
        self.outstanding = OutstandingBounds { least: outstanding, most: outstanding };
        match outstanding.cmp(&(self.waiting.len() as u64)) {
            Ordering::Equal if self.doubt.is_open() => self.accept_doubtful(ledger),
            Ordering::Greater => {
                self.refuse_doubtful(ledger);
                self.doubt.end();
            }
            _ => {}
        }
    }

    fn take_response(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, plain: u64, responses_hidden: bool) {
        let possible = |request: &EncryptedRequest| request.pending.causality(frame) == Causality::Possible;
        let not_yet_there = self.waiting.iter().filter(|request| !possible(request)).count() as u64;
        let only = self.waiting.iter().position(possible).filter(|_| self.waiting.len() as u64 == not_yet_there + 1);
        let certain = !self.ambiguous && (self.outstanding.is_known() || self.outstanding.most == 1);
        let alone = certain && self.outstanding.most == not_yet_there + 1 && !responses_hidden;
        let fits = only.is_some_and(|index| {
            let request = self.waiting[index].plain;
            // The response to a CANCEL belongs to the cancelled request.
            let cancels = sizes::may_be_cancel(request) && sizes::may_be_interim(plain);
            let is_anothers = self.others_may_answer() && self.may_end_another(request, plain);
            sizes::may_answer(request, plain) && !cancels && !is_anothers
        });
        if sizes::may_be_break(plain) && !(alone && fits) {
            // Hidden messages before it may have answered any outstanding request.
            self.ambiguous |= responses_hidden;
            return;
        }
        self.overtaken += 1;
        let request = if alone && fits { only.and_then(|index| self.waiting.remove(index)) } else { None };
        let Some(mut request) = request else {
            self.ambiguous = true;
            let another = self.others_may_answer() && sizes::may_answer_lingering(plain);
            let is_interim =
                sizes::may_be_interim(plain) && !(self.waiting.is_empty() && self.only_waits_for_the_server());
            self.outstanding.answer(u64::from(!is_interim && !another), 1);
            if alone && only.is_some() && !fits && !sizes::may_be_interim(plain) {
                self.refuse_suspects(ledger, plain);
                self.contradict(ledger);
            }
            return;
        };
        self.outstanding.answer(1, 1);
        if not_yet_there == 0 && !sizes::may_be_break(plain) {
            self.doubt.response(plain, &self.habits);
        }
        request.pending.add_response(frame, frame.length(), ResponseStatus::Nt(NtStatus::SUCCESS));
        request.pending.exchange.status = None;
        self.answered = Some(Answered { request, plain });
        if !self.doubt.is_open() {
            self.accept_doubtful(ledger);
        }
    }
}

fn hidden(losses: &Losses, from: u64, to: u64) -> impl Iterator<Item = u64> {
    losses.hidden_between(from, to, sizes::SHORTEST_FRAME)
}

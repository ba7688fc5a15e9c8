//! Outstanding SMB1 requests, and the decision if a response with the ids of one may belong to another.

use super::answers::Answers;
use super::ids::{IdHistory, PidMid};
use super::named::Smb1ResponseEffect;
use crate::framer::Frame;
use crate::ledger::Ledger;
use crate::outstanding::OutstandingRequests;
use crate::pending::{PendingExchange, StreamSpan};
use crate::sent_order::SentOrder;
use smbscope_model::Command;
use smbscope_wire::smb1;
use std::collections::VecDeque;

/// Maximum number of outstanding requests per connection; servers allow about 50 (MaxMpxCount).
const MAX_OUTSTANDING: usize = 4096;
/// Length of the smallest SMB1 request with its frame header: the smallest gap that can hide one.
const SMALLEST_REQUEST: u64 = 4 + 32 + 3;
const MAX_UNMATCHED: usize = 64;
/// TID or UID that means none.
pub(super) const NO_ID: u16 = 0xffff;

#[derive(Debug, Default)]
pub(super) struct Smb1RequestTracker {
    pub(super) outstanding: OutstandingRequests<PidMid, Smb1TrackedRequest>,
    answered_in_part: SentOrder<PidMid>,
    negotiate: Option<PidMid>,
    pub(super) ids: IdHistory,
    unmatched: VecDeque<(PidMid, u64)>,
}

#[derive(Debug)]
pub(super) struct Smb1TrackedRequest {
    pub(super) pending: Box<PendingExchange>,
    pub(super) tid: u16,
    pub(super) uid: u16,
    pub(super) number: u64,
    /// Another request with the same ids was unanswered when this one was sent.
    pub(super) replaces: bool,
    pub(super) answers: Answers,
    pub(super) effects: Vec<Smb1ResponseEffect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Not both the true response and another request with the same ids.
    Nothing,
    /// The true response, and at most this many requests.
    Requests(u64),
    /// The response may be older than the request.
    Unknown,
}

impl Smb1RequestTracker {
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        self.answered_in_part = SentOrder::default();
        self.outstanding.take_all().map(|request| request.pending)
    }

    pub(super) fn remember_unmatched(&mut self, key: PidMid, frame: &Frame) {
        if self.unmatched.len() == MAX_UNMATCHED {
            self.unmatched.pop_front();
        }
        self.unmatched.push_back((key, frame.start));
    }

    pub(super) fn take_negotiate(&mut self) -> Option<Box<PendingExchange>> {
        let negotiate = Command::Smb1(smb1::Smb1Command::NEGOTIATE);
        let key = self.negotiate.filter(|key| {
            let request = self.outstanding.by_id().get(key);
            request.is_some_and(|request| request.pending.exchange.command == negotiate)
        })?;
        self.outstanding.remove(key).map(|request| request.pending)
    }

    pub(super) fn insert(&mut self, key: PidMid, request: Smb1TrackedRequest) -> Option<Smb1TrackedRequest> {
        if request.pending.exchange.command == Command::Smb1(smb1::Smb1Command::NEGOTIATE) {
            self.negotiate = Some(key);
        }
        self.outstanding.insert(key, request)
    }

    pub(super) fn remove_excess(&mut self) -> Option<Smb1TrackedRequest> {
        if self.outstanding.by_id().len() > MAX_OUTSTANDING { self.outstanding.remove_oldest() } else { None }
    }

    pub(super) fn begins_to_answer(&mut self, key: PidMid, start: u64) {
        let requests = self.outstanding.by_id();
        let answers = |start: u64, key: PidMid| {
            let response = requests.get(&key).and_then(|request| request.pending.response);
            response.is_some_and(|response| response.start == start)
        };
        self.answered_in_part.push(start, key, requests.len(), answers);
    }

    /// Passes the requests that may lie in a range of the client's stream, or whose responses may lie in a range of the
    /// server's stream, to `take`. If there are very many requests, may miss those with only secondary requests in the
    /// range.
    pub(super) fn near(&mut self, span: StreamSpan, from_client: bool, take: &mut impl FnMut(&mut PendingExchange)) {
        self.outstanding.near(span, (!from_client).then_some(&self.answered_in_part), take);
    }

    /// Returns true if gaps could hide both the true response and another request with the same ids.
    pub(super) fn id_may_be_recycled(
        &self,
        ledger: &Ledger<'_>,
        frame: &Frame,
        key: PidMid,
        request: &Smb1TrackedRequest,
    ) -> bool {
        let pending = &request.pending;
        if pending.exchange.command == Command::Smb1(smb1::Smb1Command::WRITE_RAW)
            && ledger.server_losses.bytes_between(pending.acknowledged.unwrap_or(0), frame.start) > 0
        {
            // The "go ahead" may be hidden, and this may be the response to the data block.
            return true;
        }
        if request.replaces && pending.acknowledged_by_copy.is_some_and(|seen| frame.start < seen) {
            // The client had received this response when it sent the request, unless that is a late copy; so it may
            // belong to the replaced request.
            return true;
        }
        match self.hidden_between(ledger, frame, key, pending, request.replaces) {
            Hidden::Nothing => false,
            Hidden::Unknown => true,
            Hidden::Requests(hidden) => {
                hidden + self.ids.since(request.number) >= self.ids.reuse_distance(request.number)
            }
        }
    }

    pub(super) fn hidden_between(
        &self,
        ledger: &Ledger<'_>,
        frame: &Frame,
        key: PidMid,
        pending: &PendingExchange,
        replaces: bool,
    ) -> Hidden {
        // If either is unknown, assume the lowest.
        let sent = pending.acknowledged.min(pending.acknowledged_before).unwrap_or(0);
        let seen_by_server = frame.acknowledged_first.unwrap_or(u64::MAX);
        let is_late = frame.acknowledged_last.is_none();
        // A request that is not a late copy shows what the client had not received when it sent it.
        let may_be_older = pending.acknowledged.is_none() && ledger.client_losses.bytes_between(0, seen_by_server) > 0;
        if is_late && (replaces || may_be_older) {
            // A late copy of a response is out of step with the requests and may belong to an older one.
            return Hidden::Unknown;
        }
        let hidden = ledger.client_losses.bytes_between(pending.request.end, seen_by_server);
        if hidden > 0 && self.unmatched.iter().any(|(known, start)| *known == key && *start >= sent) {
            // If the request is a late copy, that one was the true response.
            return Hidden::Unknown;
        }
        // If part of the response was captured, the rest may lie in a gap inside a frame, which hides no message.
        let in_parts = pending.response.is_some();
        if hidden == 0 || (!in_parts && ledger.server_losses.bytes_between(sent, frame.start) == 0) {
            return Hidden::Nothing;
        }
        Hidden::Requests(hidden.div_ceil(SMALLEST_REQUEST))
    }
}

impl AsRef<PendingExchange> for Smb1TrackedRequest {
    fn as_ref(&self) -> &PendingExchange {
        &self.pending
    }
}

impl AsMut<PendingExchange> for Smb1TrackedRequest {
    fn as_mut(&mut self) -> &mut PendingExchange {
        &mut self.pending
    }
}

impl Smb1TrackedRequest {
    /// Returns true if the response repeats the command of the request and, unless the command changes them, tree and
    /// user.
    pub(super) fn fits(&self, header: &smb1::Smb1Header) -> bool {
        let Command::Smb1(command) = self.pending.exchange.command else { return false };
        let same_command = command == header.command
            || (command == smb1::Smb1Command::WRITE_RAW && header.command == smb1::Smb1Command::WRITE_COMPLETE);
        let sets_ids = matches!(
            command,
            smb1::Smb1Command::NEGOTIATE
                | smb1::Smb1Command::SESSION_SETUP_ANDX
                | smb1::Smb1Command::TREE_CONNECT_ANDX
                | smb1::Smb1Command::TREE_CONNECT
                | smb1::Smb1Command::ECHO
        );
        let same = |asked: u16, answered: u16| asked == answered || asked == 0 || asked == NO_ID;
        same_command && (sets_ids || (same(self.tid, header.tid) && same(self.uid, header.uid)))
    }
}

//! The requests of SMB1 that are outstanding, and whether a response with the ids of one may be another's.

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

/// Requests outstanding on a connection at most; servers allow about 50 (MaxMpxCount).
const MAX_OUTSTANDING: usize = 4096;
/// The smallest SMB1 request with its frame: what a gap needs to hide one.
const SMALLEST_REQUEST: u64 = 4 + 32 + 3;
/// Responses without a request that are remembered.
const MAX_UNMATCHED: usize = 64;
/// A TID or UID that stands for none.
pub(super) const NO_ID: u16 = 0xffff;

/// The requests that wait for a response, by what it will repeat.
#[derive(Debug, Default)]
pub(super) struct Smb1RequestTracker {
    pub(super) outstanding: OutstandingRequests<PidMid, Smb1TrackedRequest>,
    /// The responses in several messages that have begun.
    answered_in_part: SentOrder<PidMid>,
    /// The latest NEGOTIATE.
    negotiate: Option<PidMid>,
    pub(super) ids: IdHistory,
    /// The latest responses without a request, with the positions where they begin.
    unmatched: VecDeque<(PidMid, u64)>,
}

/// A request that waits for its response, or for more of either.
#[derive(Debug)]
pub(super) struct Smb1TrackedRequest {
    pub(super) pending: Box<PendingExchange>,
    pub(super) tid: u16,
    pub(super) uid: u16,
    /// The number of the request on the connection.
    pub(super) number: u64,
    /// Another request with the same ids was still unanswered when it was sent.
    pub(super) replaces: bool,
    pub(super) answers: Answers,
    pub(super) effects: Vec<Smb1ResponseEffect>,
}

/// What gaps can hide between a request and a response with its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Not both the true response and another request with the same ids.
    Nothing,
    /// The true response, and so many requests at most.
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

    /// The latest NEGOTIATE, if it is outstanding.
    pub(super) fn take_negotiate(&mut self) -> Option<Box<PendingExchange>> {
        let negotiate = Command::Smb1(smb1::Smb1Command::NEGOTIATE);
        let key = self.negotiate.filter(|key| {
            let request = self.outstanding.by_id().get(key);
            request.is_some_and(|request| request.pending.exchange.command == negotiate)
        })?;
        self.outstanding.remove(key).map(|request| request.pending)
    }

    /// Adds a request; returns the one with the same ids that was outstanding.
    pub(super) fn insert(&mut self, key: PidMid, request: Smb1TrackedRequest) -> Option<Smb1TrackedRequest> {
        if request.pending.exchange.command == Command::Smb1(smb1::Smb1Command::NEGOTIATE) {
            self.negotiate = Some(key);
        }
        self.outstanding.insert(key, request)
    }

    /// Removes the request that has been outstanding longest, where there are too many.
    pub(super) fn remove_excess(&mut self) -> Option<Smb1TrackedRequest> {
        if self.outstanding.by_id().len() > MAX_OUTSTANDING { self.outstanding.remove_oldest() } else { None }
    }

    /// A response in several messages began.
    pub(super) fn begins_to_answer(&mut self, key: PidMid, start: u64) {
        let requests = self.outstanding.by_id();
        let answers = |start: u64, key: PidMid| {
            let response = requests.get(&key).and_then(|request| request.pending.response);
            response.is_some_and(|response| response.start == start)
        };
        self.answered_in_part.push(start, key, requests.len(), answers);
    }

    /// The requests that may lie in a stretch of the client's stream, or whose responses may lie in one of the server's. Of
    /// very many, those whose secondary requests do may be left out.
    pub(super) fn near(&mut self, span: StreamSpan, from_client: bool, take: &mut impl FnMut(&mut PendingExchange)) {
        self.outstanding.near(span, (!from_client).then_some(&self.answered_in_part), take);
    }

    /// Whether gaps could hide both the true response and another request with the same ids.
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
            // The "go ahead" may be hidden, and this be the answer to the data block.
            return true;
        }
        if request.replaces && pending.acknowledged_by_copy.is_some_and(|seen| frame.start < seen) {
            // The client had got this response when it sent the request, unless that is a late copy: it may as well
            // be meant for the request that was replaced.
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

    /// What gaps can hide between a request and a response with its ids.
    pub(super) fn hidden_between(
        &self,
        ledger: &Ledger<'_>,
        frame: &Frame,
        key: PidMid,
        pending: &PendingExchange,
        replaces: bool,
    ) -> Hidden {
        // An unknown floor is the lowest.
        let sent = pending.acknowledged.min(pending.acknowledged_before).unwrap_or(0);
        let seen_by_server = frame.acknowledged_first.unwrap_or(u64::MAX);
        let is_late = frame.acknowledged_last.is_none();
        // A request that is no late copy says what the client had not got yet when it sent it.
        let may_be_older = pending.acknowledged.is_none() && ledger.client_losses.bytes_between(0, seen_by_server) > 0;
        if is_late && (replaces || may_be_older) {
            // A late copy of a response is out of step with the requests: it may be meant for an older one.
            return Hidden::Unknown;
        }
        let hidden = ledger.client_losses.bytes_between(pending.request.end, seen_by_server);
        if hidden > 0 && self.unmatched.iter().any(|(known, start)| *known == key && *start >= sent) {
            // If the request is a late copy, that one was the true response.
            return Hidden::Unknown;
        }
        // Where part of the response was seen, its rest may lie in a gap inside a frame, which hides no message.
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
    /// Whether a response repeats what the request said: the command, and the tree and user where these are fixed.
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

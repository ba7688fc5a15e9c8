//! Outstanding SMB1 requests. Decides if a response with the ids of one may belong to another.

use super::named::Smb1ResponseEffect;
use crate::content::{Message1, RequestOrResponse};
use crate::frame::Frame;
use crate::ledger::Ledger;
use crate::pending::{OutstandingRequests, PendingExchange, SentOrder, StreamSpan};
use smbscope_model::{Command, ResponseStatus};
use smbscope_wire::smb1::{self, TransactionKind, TransactionProgress};
use std::collections::VecDeque;

/// Outstanding SMB1 requests per connection: `evicted_requests`. Servers allow about 50 (MaxMpxCount).
const MAX_OUTSTANDING: usize = 4096;
/// Length of the smallest SMB1 request with its frame header: the smallest gap that can hide one.
const SMALLEST_REQUEST: u64 = 4 + 32 + 3;
/// SMB1 responses without request kept per connection.
const MAX_UNMATCHED: usize = 64;
pub(super) const NO_ID: u16 = 0xffff;

#[derive(Debug, Clone, Default)]
pub(super) struct Smb1RequestTracker {
    pub(super) outstanding: OutstandingRequests<PidMid, Smb1TrackedRequest>,
    answered_in_part: SentOrder<PidMid>,
    negotiate: Option<PidMid>,
    pub(super) ids: IdHistory,
    unmatched: VecDeque<(PidMid, u64)>,
}

#[derive(Debug, Clone)]
pub(super) struct Smb1TrackedRequest {
    pub(super) pending: Box<PendingExchange>,
    pub(super) tid: u16,
    pub(super) uid: u16,
    pub(super) number: u64,
    pub(super) replaces: bool,
    pub(super) answers: Answers,
    pub(super) effects: Vec<Smb1ResponseEffect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Not both the true response and another request with the same ids.
    Nothing,
    Requests(u64),
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
    /// server's, to `take`. With very many requests, may miss those with only secondary requests in the range.
    pub(super) fn near(&mut self, span: StreamSpan, from_client: bool, take: &mut impl FnMut(&mut PendingExchange)) {
        self.outstanding.near(span, (!from_client).then_some(&self.answered_in_part), take);
    }

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
            // The client had received this response when it sent the request, so it may belong to the replaced request.
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
    /// Returns true if the response repeats the request's command and, unless the command changes them, tree and user.
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

/// Payload length of a message without parameter words and data: the header, WordCount and ByteCount.
const WORDLESS: u64 = smb1::Smb1Header::LENGTH as u64 + 1 + 2;
/// Lower limit for client buffers (MS-CIFS §2.2.4.53.1 requires 1,024 bytes, Samba accepts 500): a message that leaves
/// the rest of the response to another one is at least this long.
const LEAST_BUFFER: u64 = 500;

/// Rule for the completion of a response that may have several messages (MS-CIFS §2.2.4.33, §2.2.4.39, §2.2.4.46,
/// §2.2.4.62), even if the snap length cut off the fields that determine it.
#[derive(Debug, Clone)]
pub(crate) enum Answers {
    One,
    /// ECHO: the number of the last message. Absent if the request was truncated before it.
    Echo(Option<u16>),
    Parts(Smb1MultipartResponse),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Smb1MultipartResponse {
    request: Option<TransactionProgress>,
    is_transaction: bool,
    /// Bytes received so far. For a message that does not say how many it holds, the bytes that fit.
    received: u64,
    messages: u32,
    longest: u64,
}

impl Answers {
    pub(crate) fn to(request: &Message1) -> Answers {
        let command = request.header.command;
        let is_transaction = TransactionKind::from_command(command).is_some();
        match &request.body {
            RequestOrResponse::Request(smb1::Smb1Request::Echo(count)) => Answers::Echo(Some(*count)),
            _ if command == smb1::Smb1Command::ECHO => Answers::Echo(None),
            RequestOrResponse::Request(smb1::Smb1Request::Transaction(transaction)) => {
                Answers::Parts(Smb1MultipartResponse {
                    request: Some(transaction.progress),
                    is_transaction,
                    ..Smb1MultipartResponse::default()
                })
            }
            _ if is_transaction || command == smb1::Smb1Command::READ_MPX => {
                Answers::Parts(Smb1MultipartResponse { is_transaction, ..Smb1MultipartResponse::default() })
            }
            _ => Answers::One,
        }
    }

    /// Returns true for the interim response of a transaction: no words, success, and secondary requests still to come.
    /// Final responses have words, so if the request was truncated before its counts, a response without words is not a
    /// final one. `length` is the length of the message's payload.
    pub(crate) fn is_interim(&self, message: &Message1, length: u64) -> bool {
        let Answers::Parts(Smb1MultipartResponse { request, is_transaction: true, messages: 0, .. }) = self else {
            return false;
        };
        is_wordless(message, length)
            && message.header.is_success()
            && request.is_none_or(|request| request.here < request.total)
    }

    pub(crate) fn complete(&mut self, message: &Message1, length: u64) -> bool {
        let failed = message.header.nt_status().map_or(!message.header.is_success(), |status| status.is_error());
        match self {
            Answers::One => true,
            _ if failed => true,
            Answers::Echo(last) => match (last, &message.body) {
                (Some(last), RequestOrResponse::Response(smb1::Smb1Response::Echo(number))) => number >= last,
                (Some(last), _) => *last == 1,
                (None, _) => false,
            },
            Answers::Parts(parts) => is_wordless(message, length) || parts.take(message, length),
        }
    }
}

impl Smb1MultipartResponse {
    fn take(&mut self, message: &Message1, length: u64) -> bool {
        self.messages += 1;
        let (progress, total) = match &message.body {
            RequestOrResponse::Response(smb1::Smb1Response::Transaction { progress, total, .. }) => (*progress, *total),
            RequestOrResponse::Response(smb1::Smb1Response::Multiplexed(progress)) => (Some(*progress), None),
            _ => (None, None),
        };
        let done = match (progress, message.word_count) {
            (Some(progress), _) => {
                self.received += progress.here;
                self.received >= progress.total
            }
            (None, Some(words)) if self.is_transaction => {
                // Truncated before its counts, but its length is known.
                self.received += length.saturating_sub(WORDLESS + 2 * u64::from(words));
                let all = total.is_some_and(|total| self.received >= total);
                length < LEAST_BUFFER || (all && (self.messages == 1 || length < self.longest))
            }
            // The rest may or may not follow.
            _ => false,
        };
        self.longest = self.longest.max(length);
        done
    }
}

pub(super) fn status(header: &smb1::Smb1Header) -> ResponseStatus {
    match header.nt_status() {
        Some(status) => ResponseStatus::Nt(status),
        None => ResponseStatus::Dos(header.dos_error()),
    }
}

fn is_wordless(message: &Message1, length: u64) -> bool {
    message.word_count.map_or(length == WORDLESS, |words| words == 0)
}

pub(super) type PidMid = (u16, u16);

const REMEMBERED_IDS: usize = 128;
const LEAST_RUN: u64 = 16;
const MOST_SKIPPED: u16 = 32;

/// Learns how soon an SMB1 client reuses its ids (MS-CIFS §2.2.1.6.2). A gap with fewer requests hides no reused id.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdHistory {
    recent: VecDeque<u32>,
    requests: u64,
    shortest: Option<u64>,
    run: MidRun,
}

#[derive(Debug, Clone, Default)]
struct MidRun {
    last: u16,
    step: u16,
    length: u64,
}

impl IdHistory {
    pub(crate) fn note(&mut self, key: PidMid) -> u64 {
        self.run.note(key.1);
        // One word each, so that searching is fast.
        let key = u32::from(key.0) << 16 | u32::from(key.1);
        let (older, newer) = self.recent.as_slices();
        if newer.contains(&key) || older.contains(&key) {
            let back = self.recent.iter().rev().position(|known| *known == key);
            let distance = back.map_or(u64::MAX, |back| back as u64 + 1);
            self.shortest = Some(self.shortest.map_or(distance, |shortest| shortest.min(distance)));
        }
        if self.recent.len() == REMEMBERED_IDS {
            self.recent.pop_front();
        }
        self.recent.push_back(key);
        self.requests += 1;
        self.requests
    }

    pub(crate) fn since(&self, number: u64) -> u64 {
        self.requests - number
    }

    /// Minimum number of requests before this request's id is reused: the shortest distance observed, or the length of
    /// the counter's run. Ids that occurred once prove nothing else, because a client may use one MID for everything.
    pub(crate) fn reuse_distance(&self, number: u64) -> u64 {
        let counted = self.run.length >= LEAST_RUN && self.since(number) < self.run.length;
        self.shortest.unwrap_or(0).max(if counted { self.run.length } else { 0 })
    }
}

impl MidRun {
    fn note(&mut self, mid: u16) {
        // A falling MID starts a new run.
        let rise = mid.saturating_sub(self.last);
        self.last = mid;
        let goes_on = rise > 0 && self.length > 1 && rise.is_multiple_of(self.step) && rise / self.step <= MOST_SKIPPED;
        if goes_on {
            self.length += 1;
        } else {
            self.length = if rise > 0 && self.length > 0 { 2 } else { 1 };
            self.step = rise;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance_after(mids: impl IntoIterator<Item = u16>) -> u64 {
        let mut ids = IdHistory::default();
        let last = mids.into_iter().map(|mid| ids.note((7, mid))).last().unwrap_or(0);
        ids.reuse_distance(last)
    }

    #[test]
    fn nothing_is_known_before_an_id_was_seen_again_or_a_counter_shows() {
        assert_eq!(distance_after([3, 9, 4, 1, 8]), 0);
        assert_eq!(distance_after((1..LEAST_RUN as u16).chain([900])), 0, "the counter ended before this request");
    }

    #[test]
    fn ids_that_take_turns_come_again_after_their_number() {
        assert_eq!(distance_after((0..60).map(|step| 5 * (step % 10) + 1)), 10);
    }

    #[test]
    fn a_counter_comes_again_after_as_many_requests_as_it_has_counted_at_least() {
        assert_eq!(distance_after(0..200), 200);
        assert_eq!(distance_after((0..40).map(|step| 64 * step)), 40);
        assert_eq!(distance_after((0..40).filter(|mid| mid % 7 != 6)), 35, "the capture lacks some");
        assert_eq!(distance_after((1..LEAST_RUN as u16).collect::<Vec<_>>()), 0, "too few to tell");
    }
}

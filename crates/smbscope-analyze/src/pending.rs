//! Outstanding exchanges, and exchanges that are over but may still be told of a late retransmission.

use crate::framer::Frame;
use crate::sink::ExchangeSink;
use smbscope_capture::tcp::Retransmission;
use smbscope_model::{Exchange, ExchangeOutcome, FlowDirection, Nanos, ResponseStatus, Stamp, Timestamp};
use std::collections::VecDeque;
use std::hint::black_box;

/// Exchanges of a connection that are kept back for late retransmissions.
const MAX_RECENT: usize = 16;
/// How long they are kept back: longer than the first two retransmission time-outs of common systems.
const MAX_RECENT_AGE: Nanos = Nanos(2_000_000_000);
/// Retransmissions remembered until the frame that they belong to is complete.
const MAX_UNASSIGNED: usize = 16;

/// A stretch of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSpan {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl StreamSpan {
    pub(crate) fn from_frame(frame: &Frame) -> StreamSpan {
        StreamSpan { start: frame.start, end: frame.end }
    }

    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

/// A request that waits for its response. It is boxed, as it goes from list to list.
#[derive(Debug)]
pub(crate) struct PendingExchange {
    pub(crate) exchange: Exchange,
    pub(crate) request: StreamSpan,
    /// How much of the server's stream the client had seen when it sent the request: the response comes after that.
    pub(crate) acknowledged: Option<u64>,
    /// How much the client had seen when it sent the copy that was captured, be it a late one.
    pub(crate) acknowledged_by_copy: Option<u64>,
    /// How much the client had seen at least before this request: what the request before it says, and what the server
    /// had said by then. If this one is a late copy, it had seen the response to the first copy already.
    pub(crate) acknowledged_before: Option<u64>,
    /// Of the response, when it comes in several messages.
    pub(crate) response: Option<StreamSpan>,
    /// The latest packets that only a retransmission brought: what consists of several messages is not complete before.
    pub(crate) request_resent: Option<Stamp>,
    /// The same of the response.
    pub(crate) response_resent: Option<Stamp>,
    /// Servers answer it only to report an error.
    pub(crate) may_stay_unanswered: bool,
}

/// Whether a response can be that of a request, by what TCP says about both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Causality {
    Possible,
    /// The response was sent before the server had the request, or received before the request was sent.
    Impossible,
}

impl PendingExchange {
    /// An exchange with the request in `frame`.
    #[inline]
    pub(crate) fn new(exchange: Exchange, frame: &Frame) -> Box<PendingExchange> {
        Box::new(PendingExchange {
            exchange,
            request: StreamSpan::from_frame(frame),
            acknowledged: frame.acknowledged_last,
            acknowledged_by_copy: None,
            acknowledged_before: None,
            response: None,
            request_resent: frame.resent,
            response_resent: None,
            may_stay_unanswered: false,
        })
    }

    /// What its path takes, at most: others may share it.
    pub(crate) fn path_bytes(&self) -> usize {
        self.exchange.path.as_ref().map_or(0, |path| path.len())
    }

    pub(crate) fn causality(&self, response: &Frame) -> Causality {
        let received_before = self.acknowledged.is_some_and(|acknowledged| response.start < acknowledged);
        let sent_before = response.acknowledged_first.is_some_and(|acknowledged| acknowledged < self.request.end);
        if received_before || sent_before { Causality::Impossible } else { Causality::Possible }
    }

    /// Adds another message of the request.
    pub(crate) fn extend_request(&mut self, frame: &Frame, bytes: u64) {
        self.request_resent = later(self.request_resent, frame.resent);
        note_standstill(&mut self.exchange, frame, true);
        let half = &mut self.exchange.request;
        half.last = frame.last.and(later(frame.last, self.request_resent));
        half.packets += frame.packets;
        half.bytes += bytes;
        self.request.end = frame.end;
        self.acknowledged = self.acknowledged.max(frame.acknowledged_last);
    }

    /// Adds a message of the response.
    pub(crate) fn add_response(&mut self, frame: &Frame, bytes: u64, status: ResponseStatus) {
        self.response_resent = later(self.response_resent, frame.resent);
        note_standstill(&mut self.exchange, frame, false);
        let half = &mut self.exchange.response;
        if self.response.is_none() {
            half.first = Some(frame.first);
        }
        half.last = frame.last.and(later(frame.last, self.response_resent));
        half.packets += frame.packets;
        half.bytes += bytes;
        self.exchange.status = Some(status);
        let span = self.response.get_or_insert(StreamSpan::from_frame(frame));
        span.end = frame.end;
    }

    /// Settles the outcome once the last message of the response is there.
    pub(crate) fn settle(&mut self) {
        let began = self.exchange.request.first;
        self.exchange.outcome = match self.exchange.response.last {
            None => ExchangeOutcome::ResponseEndMissing,
            Some(last) if began.is_some_and(|first| last.time < first.time) => ExchangeOutcome::ClockStep,
            Some(_) => ExchangeOutcome::Complete,
        };
    }

    /// Notes a retransmission, if it is one of either half.
    pub(crate) fn note(&mut self, retransmission: &Retransmission, from_client: bool) {
        let (start, end) = (retransmission.position, retransmission.position + retransmission.length);
        let span = if from_client { Some(self.request) } else { self.response };
        if !span.is_some_and(|span| span.overlaps(start, end)) {
            return;
        }
        let half = if from_client { &self.exchange.request } else { &self.exchange.response };
        let since_half = half.last.or(half.first).map(|stamp| retransmission.stamp.time - stamp.time);
        let delay = [retransmission.delay, since_half].into_iter().flatten().find(|delay| delay.0 >= 0);
        self.exchange.retransmitted += 1;
        if delay > self.exchange.retransmission_delay {
            self.exchange.retransmission_delay = delay;
            self.exchange.resent = Some(retransmission.stamp.time);
        }
    }
}

/// Notes the pause in a frame where it is the server's: in a request when the server had no room for more, in a response
/// when the client had.
#[inline]
pub(crate) fn note_standstill(exchange: &mut Exchange, frame: &Frame, from_client: bool) {
    if let Some(pause) = frame.pause.filter(|pause| pause.receiver_full == from_client)
        && exchange.standstill.is_none_or(|known| known.length < pause.time.length)
    {
        exchange.standstill = Some(pause.time);
    }
}

/// The later of two packets.
fn later(one: Option<Stamp>, other: Option<Stamp>) -> Option<Stamp> {
    match (one, other) {
        (Some(one), Some(other)) if other.time < one.time => Some(one),
        (one, other) => other.or(one),
    }
}

/// An exchange that is over.
#[derive(Debug)]
struct FinishedExchange {
    pending: Box<PendingExchange>,
    /// When it ended, as far as the capture shows it.
    time: Option<Timestamp>,
    /// When it began.
    start: Option<Timestamp>,
}

/// Exchanges that are over, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RecentExchanges {
    finished: VecDeque<FinishedExchange>,
    /// Bytes of their paths.
    path_bytes: usize,
}

impl RecentExchanges {
    /// Adds an exchange and returns those that have been kept back long enough.
    pub(crate) fn push(&mut self, pending: Box<PendingExchange>, sink: &mut dyn ExchangeSink) {
        let now = pending.exchange.response.last.or(pending.exchange.request.first).map(|stamp| stamp.time);
        self.path_bytes += pending.path_bytes();
        self.finished.push_back(FinishedExchange { start: pending.exchange.start(), pending, time: now });
        while let Some(oldest) = self.finished.front() {
            let aged = now.zip(oldest.time).is_some_and(|(now, seen)| now - seen > MAX_RECENT_AGE);
            if self.finished.len() <= MAX_RECENT && !aged {
                fetch(&oldest.pending.exchange);
                return;
            }
            if let Some(FinishedExchange { pending: oldest, .. }) = self.finished.pop_front() {
                self.path_bytes -= oldest.path_bytes();
                sink.exchange(&oldest.exchange);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.finished.len()
    }

    /// What the paths take, at most.
    pub(crate) fn path_bytes(&self) -> usize {
        self.path_bytes
    }

    /// Returns everything.
    pub(crate) fn flush(&mut self, sink: &mut dyn ExchangeSink) {
        self.path_bytes = 0;
        self.finished.drain(..).for_each(|finished| sink.exchange(&finished.pending.exchange));
    }

    /// When the exchange began that began first.
    pub(crate) fn began(&self) -> Option<Timestamp> {
        self.finished.iter().filter_map(|finished| finished.start).min()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.finished.iter_mut().rev().map(|finished| &mut *finished.pending)
    }
}

/// Has the processor fetch an exchange that was written a while ago and is counted next: a field in each of its cache lines
/// is read, and nobody waits for it.
#[inline]
fn fetch(exchange: &Exchange) {
    let Exchange { request, response, path, command, status, think_time, .. } = exchange;
    black_box((request.first.is_some(), request.last.is_some(), response.first.is_some(), response.last.is_some()));
    black_box((path.is_some(), *command, status.is_some(), *think_time));
}

/// Retransmissions of bytes whose frame is not complete yet.
#[derive(Debug, Default)]
pub(crate) struct Unassigned {
    by_direction: [VecDeque<Retransmission>; 2],
}

impl Unassigned {
    pub(crate) fn push(&mut self, direction: FlowDirection, retransmission: Retransmission) {
        let list = &mut self.by_direction[direction.index()];
        if list.len() == MAX_UNASSIGNED {
            list.pop_front();
        }
        list.push_back(retransmission);
    }

    /// Those that belong to a frame.
    pub(crate) fn take(&mut self, direction: FlowDirection, frame: StreamSpan) -> Vec<Retransmission> {
        let list = &mut self.by_direction[direction.index()];
        if list.is_empty() {
            return Vec::new();
        }
        let taken = list
            .iter()
            .filter(|known| frame.overlaps(known.position, known.position + known.length))
            .copied()
            .collect();
        list.retain(|known| known.position + known.length > frame.end);
        taken
    }
}

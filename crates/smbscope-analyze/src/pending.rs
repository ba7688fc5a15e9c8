//! Outstanding exchanges, and finished exchanges that a late retransmission may still affect.

use crate::framer::Frame;
use crate::sink::ExchangeSink;
use smbscope_capture::tcp::Retransmission;
use smbscope_model::{Exchange, ExchangeOutcome, FlowDirection, Nanos, ResponseStatus, Stamp, Timestamp};
use std::collections::VecDeque;
use std::hint::black_box;

const MAX_RECENT: usize = 16;
/// Maximum age of a finished exchange held back: more than the first two retransmission timeouts of common systems.
const MAX_RECENT_AGE: Nanos = Nanos(2_000_000_000);
const MAX_UNASSIGNED: usize = 16;

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

/// A request that waits for its response. Boxed because it moves between lists.
#[derive(Debug)]
pub(crate) struct PendingExchange {
    pub(crate) exchange: Exchange,
    pub(crate) request: StreamSpan,
    /// Position in the server's stream that the client had received when it sent the request; the response comes after
    /// it.
    pub(crate) acknowledged: Option<u64>,
    /// Position that the captured copy of the request acknowledged, even if that is a late copy.
    pub(crate) acknowledged_by_copy: Option<u64>,
    /// Lower limit for the position that the client had received before this request, from the previous request and the
    /// server's messages so far. If this is a late copy, the client had already received the response to the first
    /// copy.
    pub(crate) acknowledged_before: Option<u64>,
    pub(crate) response: Option<StreamSpan>,
    /// The latest packet of the request that was a retransmission of missing data; the request was not complete before.
    pub(crate) request_resent: Option<Stamp>,
    pub(crate) response_resent: Option<Stamp>,
    /// Servers respond only to report an error.
    pub(crate) may_stay_unanswered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Causality {
    Possible,
    /// The response was sent before the server had the request, or received before the request was sent.
    Impossible,
}

impl PendingExchange {
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

    /// Returns the length of the path, which may be shared with other exchanges.
    pub(crate) fn path_bytes(&self) -> usize {
        self.exchange.path.as_ref().map_or(0, |path| path.len())
    }

    pub(crate) fn causality(&self, response: &Frame) -> Causality {
        let received_before = self.acknowledged.is_some_and(|acknowledged| response.start < acknowledged);
        let sent_before = response.acknowledged_first.is_some_and(|acknowledged| acknowledged < self.request.end);
        if received_before || sent_before { Causality::Impossible } else { Causality::Possible }
    }

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

    pub(crate) fn settle(&mut self) {
        let began = self.exchange.request.first;
        self.exchange.outcome = match self.exchange.response.last {
            None => ExchangeOutcome::ResponseEndMissing,
            Some(last) if began.is_some_and(|first| last.time < first.time) => ExchangeOutcome::ClockStep,
            Some(_) => ExchangeOutcome::Complete,
        };
    }

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

/// Records a pause that the server caused: in a request while the server's receive window was closed, in a response
/// while the client's was open.
#[inline]
pub(crate) fn note_standstill(exchange: &mut Exchange, frame: &Frame, from_client: bool) {
    if let Some(pause) = frame.pause.filter(|pause| pause.receiver_full == from_client)
        && exchange.standstill.is_none_or(|known| known.length < pause.time.length)
    {
        exchange.standstill = Some(pause.time);
    }
}

fn later(one: Option<Stamp>, other: Option<Stamp>) -> Option<Stamp> {
    match (one, other) {
        (Some(one), Some(other)) if other.time < one.time => Some(one),
        (one, other) => other.or(one),
    }
}

#[derive(Debug)]
struct FinishedExchange {
    pending: Box<PendingExchange>,
    time: Option<Timestamp>,
    start: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct RecentExchanges {
    finished: VecDeque<FinishedExchange>,
    path_bytes: usize,
}

impl RecentExchanges {
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

    pub(crate) fn path_bytes(&self) -> usize {
        self.path_bytes
    }

    pub(crate) fn flush(&mut self, sink: &mut dyn ExchangeSink) {
        self.path_bytes = 0;
        self.finished.drain(..).for_each(|finished| sink.exchange(&finished.pending.exchange));
    }

    pub(crate) fn began(&self) -> Option<Timestamp> {
        self.finished.iter().filter_map(|finished| finished.start).min()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.finished.iter_mut().rev().map(|finished| &mut *finished.pending)
    }
}

/// Prefetches an exchange that was written a while ago and is counted next: reads one field in each of its cache lines
/// without waiting for the result.
#[inline]
fn fetch(exchange: &Exchange) {
    let Exchange { request, response, path, command, status, think_time, .. } = exchange;
    black_box((request.first.is_some(), request.last.is_some(), response.first.is_some(), response.last.is_some()));
    black_box((path.is_some(), *command, status.is_some(), *think_time));
}

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

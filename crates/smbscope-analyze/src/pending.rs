//! Outstanding exchanges by id and in the order of sending, and finished ones that a late retransmission may affect.

use crate::frame::Frame;
use smbscope_capture::tcp::Retransmission;
use smbscope_model::{
    ConnectionSummary, Exchange, ExchangeOutcome, FlowDirection, Nanos, ResponseStatus, Settled, Stamp, Timestamp,
};
use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;

/// Finished exchanges held for late retransmissions.
const MAX_RECENT: usize = 16;
/// Time they are held, longer than the first two retransmission timeouts of common systems.
const MAX_RECENT_AGE: Nanos = Nanos(2_000_000_000);
/// Retransmissions waiting for their frame to end.
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

#[derive(Debug, Clone)]
pub(crate) struct PendingExchange {
    pub(crate) exchange: Exchange,
    pub(crate) request: StreamSpan,
    /// Position in the server's stream that the client had received before it sent the request.
    pub(crate) acknowledged: Option<u64>,
    /// Position that the captured copy of the request acknowledged, even if that is a late copy.
    pub(crate) acknowledged_by_copy: Option<u64>,
    /// Lower limit for the position received before this request, from the previous request and the server's messages
    /// so far. A late copy may acknowledge the response to the first copy.
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

/// Records a pause that the server caused: with its window closed during a request, with the client's open otherwise.
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

#[derive(Debug, Clone)]
struct FinishedExchange {
    pending: Box<PendingExchange>,
    time: Option<Timestamp>,
    start: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
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

/// Prefetches each cache line of an exchange that was written a while ago and is counted next.
#[inline]
fn fetch(exchange: &Exchange) {
    let Exchange { request, response, path, command, status, think_time, .. } = exchange;
    black_box((request.first.is_some(), request.last.is_some(), response.first.is_some(), response.last.is_some()));
    black_box((path.is_some(), *command, status.is_some(), *think_time));
}

#[derive(Debug, Clone, Default)]
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

/// Requests that are searched linearly. Nearly every connection has fewer.
const FEW_OUTSTANDING: usize = 64;

/// Outstanding requests `R` of a connection, by the ids `K` that responses repeat and in the order of sending.
#[derive(Debug, Clone)]
pub(crate) struct OutstandingRequests<K, R> {
    requests: BTreeMap<K, R>,
    sent: SentOrder<K>,
}

impl<K, R> Default for OutstandingRequests<K, R> {
    fn default() -> OutstandingRequests<K, R> {
        OutstandingRequests { requests: BTreeMap::new(), sent: SentOrder::default() }
    }
}

impl<K: Copy + Ord, R: AsRef<PendingExchange> + AsMut<PendingExchange>> OutstandingRequests<K, R> {
    pub(crate) fn by_id(&self) -> &BTreeMap<K, R> {
        &self.requests
    }

    pub(crate) fn get_mut(&mut self, id: K) -> Option<&mut R> {
        self.requests.get_mut(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.requests.values_mut().map(R::as_mut)
    }

    pub(crate) fn insert(&mut self, id: K, request: R) -> Option<R> {
        let alive = began_at(&self.requests);
        self.sent.push(request.as_ref().request.start, id, self.requests.len(), alive);
        self.requests.insert(id, request)
    }

    pub(crate) fn remove(&mut self, id: K) -> Option<R> {
        self.requests.remove(&id)
    }

    pub(crate) fn remove_oldest(&mut self) -> Option<R> {
        let oldest = self.sent.oldest(began_at(&self.requests))?;
        self.requests.remove(&oldest)
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = R> + use<K, R> {
        std::mem::take(self).requests.into_values()
    }

    /// Passes requests that may lie in a range of the client's stream to `take`, in the order of sending or in `order`.
    pub(crate) fn near(
        &mut self,
        span: StreamSpan,
        order: Option<&SentOrder<K>>,
        take: &mut impl FnMut(&mut PendingExchange),
    ) {
        if self.requests.len() <= FEW_OUTSTANDING {
            return self.iter_mut().for_each(take);
        }
        for id in order.unwrap_or(&self.sent).within(span.start, span.end) {
            if let Some(request) = self.requests.get_mut(&id) {
                take(request.as_mut());
            }
        }
    }
}

fn began_at<K: Ord, R: AsRef<PendingExchange>>(requests: &BTreeMap<K, R>) -> impl Fn(u64, K) -> bool {
    |start, id| requests.get(&id).is_some_and(|request| request.as_ref().request.start == start)
}

/// Outstanding requests by start position. Finished entries are purged when they outnumber the others.
#[derive(Debug, Clone)]
pub(crate) struct SentOrder<K> {
    entries: VecDeque<(u64, K)>,
}

impl<K> Default for SentOrder<K> {
    fn default() -> SentOrder<K> {
        SentOrder { entries: VecDeque::new() }
    }
}

impl<K: Copy> SentOrder<K> {
    /// Adds a request. `start` must not decrease; `alive` is true for the `outstanding` entries that are not finished.
    #[inline]
    pub(crate) fn push(&mut self, start: u64, key: K, outstanding: usize, alive: impl Fn(u64, K) -> bool) {
        if self.entries.len() >= 2 * outstanding + 16 {
            self.entries.retain(|(start, key)| alive(*start, *key));
        }
        self.entries.push_back((start, key));
    }

    pub(crate) fn oldest(&mut self, alive: impl Fn(u64, K) -> bool) -> Option<K> {
        while let Some((start, key)) = self.entries.front().copied() {
            if alive(start, key) {
                return Some(key);
            }
            self.entries.pop_front();
        }
        None
    }

    /// Requests that begin before `end`, from the last one at or before `start` on. Some may be finished.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = K> {
        let first = self.entries.partition_point(|(begin, _)| *begin <= start);
        // The members of a compound all have the start position of their frame.
        let frame = first.checked_sub(1).map_or(start, |before| self.entries[before].0);
        let first = self.entries.partition_point(|(begin, _)| *begin < frame);
        self.entries.iter().skip(first).take_while(move |(begin, _)| *begin < end).map(|(_, key)| *key)
    }
}

pub trait ExchangeSink {
    fn exchange(&mut self, exchange: &Exchange);

    /// Called after every few exchanges of a connection with the time up to which it is settled.
    fn settled(&mut self, _: &Settled) {}

    fn closed(&mut self, _: &ConnectionSummary) {}
}

impl<F: FnMut(Exchange)> ExchangeSink for F {
    fn exchange(&mut self, exchange: &Exchange) {
        self(exchange.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_of_a_stretch_are_found() {
        let mut order = SentOrder::default();
        for (start, key) in [(0, 'a'), (100, 'b'), (100, 'c'), (200, 'd'), (300, 'e')] {
            order.push(start, key, 5, |_, _| true);
        }
        let within = |start, end| order.within(start, end).collect::<String>();
        assert_eq!(within(150, 160), "bc", "both members of the compound that begins at 100 may reach there");
        assert_eq!(within(100, 201), "bcd");
        assert_eq!(within(250, 1000), "de");
    }

    #[test]
    fn requests_that_are_over_do_not_stay_for_ever() {
        let mut order = SentOrder::default();
        for start in 0..10_000u64 {
            order.push(start, start, 1, |_, key| key == 0);
        }
        assert!(order.entries.len() <= 18, "{}", order.entries.len());
        assert_eq!(order.oldest(|_, key| key == 0), Some(0));
        assert_eq!(order.oldest(|_, _| false), None);
    }
}

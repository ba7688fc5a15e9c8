//! The ledger of an SMB connection: every exchange begins and ends here, whatever its protocol.
//!
//! [`ConnectionLedger`] is the persistent part; [`Ledger`] adds the context of the frame being processed. The protocol
//! modules ([`crate::smb1`], [`crate::smb2`], [`crate::encrypted`]) match requests and responses. The ledger counts,
//! and holds finished exchanges for a moment, because a late retransmission may still belong to one of them.

use crate::bounded::{ClockSteps, ForeignReplies};
use crate::channels::connection_of;
use crate::decryption::Keys;
use crate::frame::{Frame, Losses};
use crate::names::Sessions;
use crate::offers::OfferPool;
use crate::pending::{ExchangeSink, PendingExchange, RecentExchanges, StreamSpan, Unassigned, note_standstill};
use smbscope_capture::OriginId;
use smbscope_capture::decode::{Origin, Origins};
use smbscope_capture::tcp::FlowView;
use smbscope_model::{
    ClientOffer, ClockStep, Command, CommandGroup, ConnectionSummary, Dialect, Endpoints, Exchange, ExchangeOutcome,
    FlowDirection, Offers, Protocol, Quality, ResponseStatus, ServerOffer, Settled, SigningOffer, Subcommand,
    Timestamp,
};
use std::net::IpAddr;
use std::sync::Arc;

/// Users, and shares, in a connection summary.
const MAX_LISTED: usize = 16;
/// Bytes of their names.
const MAX_LISTED_BYTES: usize = 2048;

/// Interval between reports: finished exchanges, and a fraction of the outstanding requests that a report inspects.
const SETTLED_EVERY: usize = 8;
const SETTLED_PART: usize = 32;

const PENDING_BYTES: usize = size_of::<PendingExchange>() + 128;

pub(crate) struct ShardContext<'a> {
    pub(crate) quality: &'a mut Quality,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) offers: &'a mut OfferPool,
    pub(crate) emit: &'a mut dyn ExchangeSink,
    pub(crate) frames: &'a mut Vec<Frame>,
    pub(crate) steps_back: &'a [ClockStep],
    pub(crate) clock_steps: &'a mut ClockSteps,
    pub(crate) foreign_replies: &'a mut ForeignReplies,
    pub(crate) origins: &'a Origins,
    pub(crate) keys: Option<&'a mut Keys>,
}

fn is_across(step: &ClockStep, exchange: &Exchange) -> bool {
    let ends = exchange.request.first.zip(exchange.response.last);
    exchange.outcome == ExchangeOutcome::Complete && ends.is_some_and(|(first, last)| step.lies_between(first, last))
}

pub(crate) struct Opening {
    pub(crate) command: Command,
    pub(crate) subcommand: Option<Subcommand>,
    pub(crate) group: CommandGroup,
    pub(crate) message_id: Option<u64>,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct ConnectionLedger {
    pub(crate) client: FlowDirection,
    connection: u64,
    pub(crate) summary: ConnectionSummary,
    /// Origin of the client's latest frame, and its process.
    origin: OriginId,
    process: Option<Arc<str>>,
    /// Number of commands by captured request, by captured response, and by either. Encrypted responses are not
    /// included in `answered`, as not each of them belongs to a known command.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) seen: u64,
    pub(crate) recent: RecentExchanges,
    pub(crate) unassigned: Unassigned,
    busy: u32,
    path_bytes: usize,
    last_response: Option<Timestamp>,
    acknowledged: Option<u64>,
    pub(crate) server_seen: u64,
    unsettled: usize,
}

impl ConnectionLedger {
    pub(crate) fn new(view: &FlowView, client: FlowDirection) -> ConnectionLedger {
        ConnectionLedger {
            client,
            connection: connection_of(view),
            summary: ConnectionSummary::new(view.id, endpoints(view, client), view.first.time),
            origin: OriginId::default(),
            process: None,
            asked: 0,
            answered: 0,
            seen: 0,
            recent: RecentExchanges::default(),
            unassigned: Unassigned::default(),
            busy: 0,
            path_bytes: 0,
            last_response: None,
            acknowledged: None,
            server_seen: 0,
            unsettled: 0,
        }
    }

    #[inline]
    pub(crate) fn footprint(&self, outstanding: usize) -> usize {
        (outstanding + self.recent.len()) * PENDING_BYTES + self.path_bytes + self.recent.path_bytes()
    }

    pub(crate) fn speaks(&self) -> Option<Protocol> {
        self.summary.dialect.map(Dialect::protocol)
    }

    /// Notes where a frame came from. Requests take the process of the client's latest frame.
    #[inline]
    pub(crate) fn note_origin(&mut self, frame: &Frame, from_client: bool, origins: &Origins) {
        let is_news = if from_client { frame.origin != self.origin } else { frame.origin.0 != 0 };
        if is_news && (from_client || self.summary.encapsulation.is_none()) {
            self.enter_origin(frame.origin, from_client, origins);
        }
    }

    #[cold]
    fn enter_origin(&mut self, id: OriginId, from_client: bool, origins: &Origins) {
        let Origin { encapsulation, process } = origins.get(id);
        if self.summary.encapsulation.is_none() {
            self.summary.encapsulation = encapsulation;
        }
        if from_client {
            (self.origin, self.process) = (id, process);
        }
    }

    pub(crate) fn busy(&self) -> u32 {
        self.busy
    }

    fn note_response(&mut self, exchange: &Exchange) {
        self.last_response = exchange.response.last.map(|stamp| stamp.time).max(self.last_response);
    }

    #[inline]
    pub(crate) fn can_settle(&self, outstanding: impl FnOnce() -> usize) -> bool {
        self.unsettled >= SETTLED_EVERY && self.unsettled >= outstanding() / SETTLED_PART
    }

    /// Reports to the sink the time before which no further exchange begins. `outstanding` are all outstanding
    /// requests, `open` holds the start times of incomplete frames, `now` is the time of the latest packet.
    pub(crate) fn settle<'a>(
        &mut self,
        view: &FlowView,
        now: Timestamp,
        open: impl Iterator<Item = Timestamp>,
        outstanding: impl Iterator<Item = &'a mut PendingExchange>,
        sink: &mut dyn ExchangeSink,
    ) {
        self.unsettled = 0;
        let mut settled = Settled {
            flow: self.summary.flow,
            first: view.first.time,
            until: open.fold(now, Timestamp::min),
            held_since: None,
            subscribed_since: None,
            client_round_trip: view.round_trip[self.client.reverse().index()],
        };
        for pending in outstanding {
            let Some(start) = pending.exchange.request.first.map(|stamp| stamp.time) else { continue };
            let since = match pending.exchange.group {
                CommandGroup::Waiting if pending.exchange.is_subscription() => &mut settled.subscribed_since,
                CommandGroup::Waiting => &mut settled.held_since,
                _ => {
                    settled.until = settled.until.min(start);
                    continue;
                }
            };
            *since = Some(since.map_or(start, |since| since.min(start)));
        }
        settled.until = self.recent.began().map_or(settled.until, |began| began.min(settled.until));
        sink.settled(&settled);
    }
}

pub(crate) struct Ledger<'a> {
    pub(crate) accounts: &'a mut ConnectionLedger,
    pub(crate) view: &'a FlowView,
    pub(crate) quality: &'a mut Quality,
    pub(crate) sessions: &'a mut Sessions,
    offers: &'a mut OfferPool,
    emit: &'a mut dyn ExchangeSink,
    steps_back: &'a [ClockStep],
    clock_steps: &'a mut ClockSteps,
    pub(crate) client_losses: &'a Losses,
    pub(crate) server_losses: &'a Losses,
}

impl<'a> Ledger<'a> {
    /// `losses` are in the order of [`FlowDirection`].
    pub(crate) fn open(
        accounts: &'a mut ConnectionLedger,
        view: &'a FlowView,
        shared: &'a mut ShardContext<'_>,
        losses: [&'a Losses; 2],
    ) -> Ledger<'a> {
        let client = accounts.client;
        shared.sessions.connection = accounts.connection;
        Ledger {
            accounts,
            view,
            quality: shared.quality,
            sessions: shared.sessions,
            offers: shared.offers,
            emit: shared.emit,
            steps_back: shared.steps_back,
            clock_steps: shared.clock_steps,
            client_losses: losses[client.index()],
            server_losses: losses[client.reverse().index()],
        }
    }

    pub(crate) fn client(&self) -> FlowDirection {
        self.accounts.client
    }

    pub(crate) fn may_have_missed_any(&self) -> bool {
        self.client_losses.any_after(0) || self.server_losses.any_after(0) || self.accounts.summary.encrypted_frames > 0
    }

    pub(crate) fn server(&self) -> IpAddr {
        self.accounts.summary.endpoints.server.ip()
    }

    pub(crate) fn change_client(&mut self, client: FlowDirection) {
        self.accounts.client = client;
        self.accounts.summary.endpoints = endpoints(self.view, client);
    }

    pub(crate) fn note_message(&mut self, is_signed: bool) {
        self.accounts.summary.messages += 1;
        self.accounts.summary.signed_messages += u64::from(is_signed);
    }

    /// Records the client's offer. An earlier server offer does not belong to it.
    pub(crate) fn note_client_offer(&mut self, offer: ClientOffer) {
        let client = self.offers.client(offer);
        self.quality.evicted_names += u64::from(client.is_none());
        self.accounts.summary.offers = Offers { client, server: None };
    }

    pub(crate) fn note_server_offer(&mut self, offer: ServerOffer) {
        let connection = &mut self.accounts.summary;
        connection.signing_required = offer.signing == SigningOffer::Required;
        connection.offers.server = self.offers.server(offer);
        self.quality.evicted_names += u64::from(connection.offers.server.is_none());
    }

    pub(crate) fn note_compressed(&mut self) {
        self.accounts.summary.compressed_frames += 1;
        self.quality.compressed_frames += 1;
    }

    pub(crate) fn begin(&mut self, frame: &Frame, opening: Opening) -> Box<PendingExchange> {
        let think_time = match self.accounts.last_response {
            Some(last) if self.accounts.busy == 0 && opening.group != CommandGroup::Waiting => {
                Some(frame.first.time - last).filter(|time| time.0 >= 0)
            }
            _ => None,
        };
        let request = frame.half(opening.bytes);
        let mut exchange =
            Exchange { request, think_time, process: self.accounts.process.clone(), ..self.blank(&opening) };
        note_standstill(&mut exchange, frame, true);
        // Late copies may come in a row; the server's last message was received before all of them.
        let acknowledged_before = self.accounts.acknowledged.min(Some(self.accounts.server_seen));
        if frame.acknowledged_last.is_some() {
            self.accounts.acknowledged = frame.acknowledged_first.min(frame.acknowledged_last);
        }
        let acknowledged_by_copy = frame.acknowledged_first;
        let mut pending = PendingExchange::new(exchange, frame);
        pending.acknowledged_by_copy = acknowledged_by_copy;
        pending.acknowledged_before = acknowledged_before;
        pending
    }

    fn blank(&self, opening: &Opening) -> Exchange {
        let connection = &self.accounts.summary;
        Exchange {
            dialect: connection.dialect,
            subcommand: opening.subcommand,
            message_id: opening.message_id,
            ..Exchange::new(connection.flow, connection.endpoints, opening.command, opening.group)
        }
    }

    /// Counts a request as outstanding. Each started exchange must be finished with [`Self::finish`].
    pub(crate) fn started(&mut self, pending: &PendingExchange) {
        let accounts = &mut *self.accounts;
        accounts.path_bytes += pending.path_bytes();
        if pending.exchange.group != CommandGroup::Waiting {
            accounts.busy += 1;
            accounts.summary.max_outstanding = accounts.summary.max_outstanding.max(accounts.busy);
        }
    }

    pub(crate) fn complete(&mut self, mut pending: Box<PendingExchange>) {
        pending.settle();
        self.finish(pending);
    }

    pub(crate) fn finish(&mut self, pending: Box<PendingExchange>) {
        self.accounts.path_bytes = self.accounts.path_bytes.saturating_sub(pending.path_bytes());
        if pending.exchange.group != CommandGroup::Waiting {
            self.accounts.busy = self.accounts.busy.saturating_sub(1);
        }
        self.report(pending);
    }

    pub(crate) fn set_aside(&mut self, pending: &PendingExchange) {
        self.accounts.busy = self.accounts.busy.saturating_sub(1);
        self.accounts.note_response(&pending.exchange);
    }

    pub(crate) fn report(&mut self, mut pending: Box<PendingExchange>) {
        let accounts = &mut *self.accounts;
        let exchange = &mut pending.exchange;
        exchange.dialect = accounts.summary.dialect;
        exchange.server_round_trip = self.view.round_trip[accounts.client.index()];
        let known = self.steps_back.iter().find(|step| is_across(step, exchange));
        if let Some(step) = self.view.clock_step.filter(|step| is_across(step, exchange)).or(known.copied()) {
            exchange.outcome = ExchangeOutcome::ClockStep;
            self.clock_steps.note(step);
        }
        if !matches!(exchange.outcome, ExchangeOutcome::NoResponseByDesign | ExchangeOutcome::ServerInitiated) {
            accounts.seen += 1;
            accounts.asked += u64::from(exchange.request.first.is_some());
            accounts.answered +=
                u64::from(exchange.response.first.is_some() && exchange.group != CommandGroup::Encrypted);
        }
        let quality = &mut *self.quality;
        quality.request_end_missing += u64::from(exchange.request.first.is_some() && exchange.request.last.is_none());
        match exchange.outcome {
            ExchangeOutcome::Complete => {
                accounts.summary.exchanges += 1;
                quality.early_responses += u64::from(exchange.answers_early());
                if exchange.group != CommandGroup::Waiting {
                    accounts.note_response(exchange);
                }
            }
            ExchangeOutcome::ResponseEndMissing => quality.response_end_missing += 1,
            ExchangeOutcome::Unanswered => quality.requests_unanswered += 1,
            ExchangeOutcome::ResponseNotCaptured => quality.responses_not_captured += 1,
            ExchangeOutcome::RequestNotCaptured => quality.responses_without_request += 1,
            ExchangeOutcome::IdReused => quality.ids_reused += 1,
            ExchangeOutcome::AmbiguousMatch => quality.ambiguous_refused += 1,
            ExchangeOutcome::Evicted => quality.evicted_requests += 1,
            ExchangeOutcome::ClockStep => quality.clock_steps += 1,
            ExchangeOutcome::ServerInitiated => quality.server_breaks += 1,
            ExchangeOutcome::NoResponseByDesign | ExchangeOutcome::NotPairable => {}
        }
        if let Some(user) = &exchange.user {
            list(&mut accounts.summary.users, user);
        }
        if let Some(share) = &exchange.share {
            list(&mut accounts.summary.shares, share);
        }
        accounts.unsettled += 1;
        accounts.recent.push(pending, self.emit);
    }

    pub(crate) fn report_response(
        &mut self,
        frame: &Frame,
        opening: Opening,
        status: ResponseStatus,
        outcome: ExchangeOutcome,
    ) {
        let began_before = self.view.midstream && self.client_losses.only_at_the_beginning();
        let is_missing = outcome == ExchangeOutcome::RequestNotCaptured;
        self.quality.requests_before_capture += u64::from(is_missing && began_before);
        let response = frame.half(opening.bytes);
        let exchange = Exchange { response, status: Some(status), outcome, ..self.blank(&opening) };
        let mut pending = PendingExchange::new(exchange, frame);
        pending.request = StreamSpan { start: 0, end: 0 };
        pending.acknowledged = None;
        pending.response = Some(StreamSpan::from_frame(frame));
        (pending.request_resent, pending.response_resent) = (None, frame.resent);
        self.report(pending);
    }

    pub(crate) fn abandon(&mut self, mut pending: Box<PendingExchange>) {
        let after = pending.acknowledged.unwrap_or(0);
        pending.exchange.outcome = if pending.exchange.response.first.is_some() {
            pending.exchange.response.last = None;
            ExchangeOutcome::ResponseEndMissing
        } else if pending.may_stay_unanswered {
            ExchangeOutcome::NoResponseByDesign
        } else if self.server_losses.any_after(after) {
            ExchangeOutcome::ResponseNotCaptured
        } else {
            ExchangeOutcome::Unanswered
        };
        if matches!(pending.exchange.outcome, ExchangeOutcome::ResponseNotCaptured | ExchangeOutcome::Unanswered) {
            let acknowledged = self.view.acknowledged[self.client().index()];
            pending.exchange.acknowledged = acknowledged.map(|position| position >= pending.request.end);
        }
        self.finish(pending);
    }
}

fn endpoints(view: &FlowView, client: FlowDirection) -> Endpoints {
    let (client, server) = view.ends(client);
    Endpoints { client, server }
}

fn list(names: &mut Vec<Arc<str>>, name: &Arc<str>) {
    if names.len() < MAX_LISTED && !names.contains(name) {
        let listed: usize = names.iter().map(|name| name.len()).sum();
        if listed + name.len() <= MAX_LISTED_BYTES {
            names.push(name.clone());
        }
    }
}

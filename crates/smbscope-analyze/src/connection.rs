//! One SMB connection: who is who, what is outstanding, and what was counted. The protocols themselves are in
//! [`crate::smb1`] and [`crate::smb2`], which extend [`Connection`].

use crate::ExchangeSink;
use crate::encrypted::EncryptedFrames;
use crate::framer::{Frame, Framer};
use crate::losses::Losses;
use crate::names::{ConnectionNames, Sessions};
use crate::pending::{Pending, Recent, Span, Unassigned, note_standstill};
use crate::smb1::Smb1;
use crate::smb2::Smb2;
use crate::unseen::{HiddenFrames, Known, MessageIds, MidCounter};
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamCounts};
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::{
    ClockStep, Command, Dialect, Direction, DirectionCounts, Endpoints, Exchange, FlowId, ForeignReply, Group, Half,
    Outcome, Protocol, Quality, Settled, Status, Subcommand, Timestamp,
};
use std::sync::Arc;

/// Users and shares that a connection's summary names, and bytes of their names.
const MAX_LISTED: usize = 16;
const MAX_LISTED_BYTES: usize = 2048;

/// After how many exchanges the sink is told what is settled; and after which part of the requests outstanding, as all of
/// these are looked at for it.
const SETTLED_EVERY: usize = 8;
const SETTLED_PART: usize = 32;

/// What an exchange takes that is under way or kept back: itself, its names and its place in a list, about.
const PENDING_BYTES: usize = size_of::<Exchange>() + 2 * size_of::<Pending>() + 128;

/// Everything that outlives a single connection.
pub(crate) struct Shared<'a> {
    pub(crate) quality: &'a mut Quality,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) emit: &'a mut dyn ExchangeSink,
    /// Where the clock was set back, as the reader found out.
    pub(crate) steps_back: &'a [ClockStep],
    /// Where the clock stepped within exchanges.
    pub(crate) clock_steps: &'a mut Vec<ClockStep>,
    /// Servers that answered in another protocol.
    pub(crate) foreign_replies: &'a mut Vec<ForeignReply>,
}

/// Whether a complete exchange lies across a step of the clock.
fn is_across(step: &ClockStep, exchange: &Exchange) -> bool {
    let ends = exchange.request.first.zip(exchange.response.last);
    exchange.outcome == Outcome::Complete && ends.is_some_and(|(first, last)| step.lies_between(first, last))
}

/// What is known while a frame is taken in.
pub(crate) struct Scene<'a, 'b> {
    pub(crate) view: &'a FlowView,
    pub(crate) shared: &'a mut Shared<'b>,
    /// Where the client's stream may hide messages.
    pub(crate) client_losses: &'a Losses,
    /// Where the server's stream may hide messages.
    pub(crate) server_losses: &'a Losses,
}

/// An SMB connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Direction,
    pub(crate) endpoints: Endpoints,
    pub(crate) flow: FlowId,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) signing_required: bool,
    pub(crate) names: ConnectionNames,
    pub(crate) one: Smb1,
    pub(crate) two: Smb2,
    pub(crate) encrypted: EncryptedFrames,
    /// The SMB2 message ids that were seen.
    pub(crate) message_ids: MessageIds,
    /// The SMB1 MIDs of requests.
    pub(crate) mids: MidCounter,
    /// Where the last SMB1 request ended.
    pub(crate) asked_to: u64,
    /// Commands that were seen: their requests, their responses, either.
    asked: u64,
    answered: u64,
    seen: u64,
    recent: Recent,
    unassigned: Unassigned,
    /// Requests outstanding that are not waits by design.
    busy: u32,
    /// Bytes of the paths of requests outstanding.
    path_bytes: usize,
    last_response: Option<Timestamp>,
    /// How much of the server's stream the last request acknowledged.
    acknowledged: Option<u64>,
    /// End of the server's last frame.
    pub(crate) server_seen: u64,
    /// Exchanges that came to an end since the sink was told what is settled.
    unsettled: usize,
    pub(crate) signed_messages: u64,
    pub(crate) encrypted_frames: u64,
    pub(crate) compressed_frames: u64,
    pub(crate) messages: u64,
    completed: u64,
    max_outstanding: u32,
    pub(crate) max_credits_granted: u16,
    users: Vec<Arc<str>>,
    shares: Vec<Arc<str>>,
}

/// What a request is, before the answer is known.
pub(crate) struct Opening {
    pub(crate) command: Command,
    pub(crate) subcommand: Option<Subcommand>,
    pub(crate) group: Group,
    pub(crate) message_id: Option<u64>,
    pub(crate) bytes: u64,
}

impl Connection {
    pub(crate) fn new(view: &FlowView, client: Direction) -> Connection {
        Connection {
            client,
            endpoints: endpoints(view, client),
            flow: view.id,
            dialect: None,
            signing_required: false,
            names: ConnectionNames::default(),
            one: Smb1::default(),
            two: Smb2::default(),
            encrypted: EncryptedFrames::default(),
            message_ids: MessageIds::default(),
            mids: MidCounter::default(),
            asked_to: 0,
            asked: 0,
            answered: 0,
            seen: 0,
            recent: Recent::default(),
            unassigned: Unassigned::default(),
            busy: 0,
            path_bytes: 0,
            last_response: None,
            acknowledged: None,
            server_seen: 0,
            unsettled: 0,
            signed_messages: 0,
            encrypted_frames: 0,
            compressed_frames: 0,
            messages: 0,
            completed: 0,
            max_outstanding: 0,
            max_credits_granted: 0,
            users: Vec::new(),
            shares: Vec::new(),
        }
    }

    /// What it takes, about.
    #[inline]
    pub(crate) fn footprint(&self) -> usize {
        let exchanges = (self.outstanding() + self.recent.len()) * PENDING_BYTES;
        size_of::<Connection>() + exchanges + self.path_bytes + self.recent.path_bytes() + self.names.bytes()
    }

    /// Requests that wait for an answer.
    fn outstanding(&self) -> usize {
        self.one.outstanding.len() + self.two.outstanding_count() + self.encrypted.count()
    }

    /// The other side turns out to be the client: possible as long as nothing was matched.
    pub(crate) fn correct_roles(&mut self, scene: &mut Scene<'_, '_>, client: Direction) {
        if client == self.client || self.completed > 0 {
            return;
        }
        self.abandon_all(scene);
        self.client = client;
        self.endpoints = endpoints(scene.view, client);
    }

    /// An exchange that begins with `frame`.
    pub(crate) fn begin(&mut self, frame: &Frame, opening: Opening) -> Pending {
        let think_time = match self.last_response {
            Some(last) if self.busy == 0 && opening.group != Group::Waiting => {
                Some(frame.first.time - last).filter(|time| time.0 >= 0)
            }
            _ => None,
        };
        let request = Half { first: Some(frame.first), last: frame.last, packets: frame.packets, bytes: opening.bytes };
        let mut exchange = Exchange { request, think_time, ..self.blank(&opening) };
        note_standstill(&mut exchange, frame, true);
        // Late copies may come in a row, or together in one packet: what the server said last was there before them all.
        let acknowledged_before = self.acknowledged.min(Some(self.server_seen));
        if frame.acknowledged_last.is_some() {
            self.acknowledged = frame.acknowledged_first.min(frame.acknowledged_last);
        }
        Pending {
            exchange: Box::new(exchange),
            request: Span::of(frame),
            acknowledged: frame.acknowledged_last,
            acknowledged_by_copy: frame.acknowledged_first,
            acknowledged_before,
            response: None,
            request_resent: frame.resent,
            response_resent: None,
            may_stay_unanswered: false,
        }
    }

    /// An exchange about which nothing is known but what it is.
    pub(crate) fn blank(&self, opening: &Opening) -> Exchange {
        Exchange {
            flow: self.flow,
            endpoints: self.endpoints,
            dialect: self.dialect,
            command: opening.command,
            subcommand: opening.subcommand,
            group: opening.group,
            message_id: opening.message_id,
            session_id: None,
            tree_id: None,
            file_id: None,
            user: None,
            share: None,
            path: None,
            status: None,
            request: Half::default(),
            interim: None,
            response: Half::default(),
            offset: None,
            length: None,
            compounded: false,
            signed: false,
            encrypted: false,
            outcome: Outcome::Unanswered,
            retransmitted: 0,
            retransmission_delay: None,
            resent: None,
            standstill: None,
            server_round_trip: None,
            think_time: None,
        }
    }

    /// Counts a request as outstanding. Every pending exchange that is started is finished with [`Self::finish`].
    pub(crate) fn started(&mut self, pending: &Pending) {
        self.path_bytes += pending.path_bytes();
        if pending.exchange.group != Group::Waiting {
            self.busy += 1;
            self.max_outstanding = self.max_outstanding.max(self.busy);
        }
    }

    /// The last message of the response is there.
    pub(crate) fn complete(&mut self, scene: &mut Scene<'_, '_>, mut pending: Pending) {
        pending.settle();
        self.finish(scene, pending);
    }

    /// Ends an exchange that was [`Self::started`], with the outcome that it has.
    pub(crate) fn finish(&mut self, scene: &mut Scene<'_, '_>, pending: Pending) {
        self.path_bytes = self.path_bytes.saturating_sub(pending.path_bytes());
        if pending.exchange.group != Group::Waiting {
            self.busy = self.busy.saturating_sub(1);
        }
        self.report(scene, pending);
    }

    /// Counts a request as answered that was [`Self::started`], and that is to be passed on later, with
    /// [`Self::report`].
    pub(crate) fn set_aside(&mut self, pending: &Pending) {
        self.busy = self.busy.saturating_sub(1);
        self.last_response = pending.exchange.response.last.map(|stamp| stamp.time).max(self.last_response);
    }

    /// Passes on an exchange that never was outstanding, or no longer is.
    pub(crate) fn report(&mut self, scene: &mut Scene<'_, '_>, mut pending: Pending) {
        let exchange = &mut pending.exchange;
        exchange.dialect = self.dialect;
        exchange.server_round_trip = scene.view.round_trip[self.client.index()];
        let known = scene.shared.steps_back.iter().find(|step| is_across(step, exchange));
        if let Some(step) = scene.view.clock_step.filter(|step| is_across(step, exchange)).or(known.copied()) {
            exchange.outcome = Outcome::ClockStep;
            let steps = &mut *scene.shared.clock_steps;
            if steps.len() < ClockStep::MAX_CLOCK_STEPS && !steps.contains(&step) {
                steps.push(step);
            }
        }
        if !matches!(exchange.outcome, Outcome::NoResponseByDesign | Outcome::ServerInitiated) {
            self.seen += 1;
            self.asked += u64::from(exchange.request.first.is_some());
            self.answered += u64::from(exchange.response.first.is_some());
        }
        let quality = &mut *scene.shared.quality;
        match exchange.outcome {
            Outcome::Complete => {
                self.completed += 1;
                quality.early_responses += u64::from(exchange.answers_early());
                if exchange.group != Group::Waiting {
                    self.last_response = exchange.response.last.map(|stamp| stamp.time).max(self.last_response);
                }
            }
            Outcome::ResponseEndMissing => quality.response_end_missing += 1,
            Outcome::Unanswered => quality.requests_unanswered += 1,
            Outcome::ResponseNotCaptured => quality.responses_not_captured += 1,
            Outcome::RequestNotCaptured => quality.responses_without_request += 1,
            Outcome::IdReused => quality.ids_reused += 1,
            Outcome::AmbiguousMatch => quality.ambiguous_refused += 1,
            Outcome::Evicted => quality.evicted_requests += 1,
            Outcome::ClockStep => quality.clock_steps += 1,
            Outcome::ServerInitiated => quality.server_breaks += 1,
            Outcome::NoResponseByDesign | Outcome::NotPairable => {}
        }
        if let Some(user) = &exchange.user {
            list(&mut self.users, user);
        }
        if let Some(share) = &exchange.share {
            list(&mut self.shares, share);
        }
        self.unsettled += 1;
        self.recent.push(pending, scene.shared.emit);
    }

    /// A response without a request.
    pub(crate) fn report_response(
        &mut self,
        scene: &mut Scene<'_, '_>,
        frame: &Frame,
        opening: Opening,
        status: Status,
        outcome: Outcome,
    ) {
        let response =
            Half { first: Some(frame.first), last: frame.last, packets: frame.packets, bytes: opening.bytes };
        let exchange = Exchange { response, status: Some(status), outcome, ..self.blank(&opening) };
        let span = Span::of(frame);
        let pending = Pending {
            exchange: Box::new(exchange),
            request: Span { start: 0, end: 0 },
            acknowledged: None,
            acknowledged_by_copy: None,
            acknowledged_before: None,
            response: Some(span),
            request_resent: None,
            response_resent: frame.resent,
            may_stay_unanswered: false,
        };
        self.report(scene, pending);
    }

    /// Gives up a request: its response may be hidden, or there was none.
    pub(crate) fn abandon(&mut self, scene: &mut Scene<'_, '_>, mut pending: Pending) {
        let after = pending.acknowledged.unwrap_or(0);
        pending.exchange.outcome = if pending.exchange.response.first.is_some() {
            // Some messages of the response were seen, but not the last one.
            pending.exchange.response.last = None;
            Outcome::ResponseEndMissing
        } else if pending.may_stay_unanswered {
            Outcome::NoResponseByDesign
        } else if scene.server_losses.any_after(after) {
            Outcome::ResponseNotCaptured
        } else {
            Outcome::Unanswered
        };
        self.finish(scene, pending);
    }

    fn abandon_all(&mut self, scene: &mut Scene<'_, '_>) {
        self.settle_encrypted(scene);
        let mut outstanding = self.one.take_all();
        outstanding.extend(self.two.take_all());
        outstanding.extend(self.encrypted.take_all());
        outstanding.sort_by_key(|pending| pending.request.start);
        for pending in outstanding {
            self.abandon(scene, pending);
        }
    }

    /// Tells the sink now and then before which time no further exchange begins. `open` is when the frames began that
    /// are not whole yet, `now` the time of the latest packet.
    pub(crate) fn settle(
        &mut self,
        view: &FlowView,
        now: Timestamp,
        open: impl Iterator<Item = Timestamp>,
        sink: &mut dyn ExchangeSink,
    ) {
        if self.unsettled < SETTLED_EVERY || self.unsettled < self.outstanding() / SETTLED_PART {
            return;
        }
        self.unsettled = 0;
        let mut settled = Settled {
            flow: self.flow,
            first: view.first.time,
            until: open.fold(now, Timestamp::min),
            held_since: None,
            subscribed_since: None,
            client_round_trip: view.round_trip[self.client.reverse().index()],
        };
        for pending in self.one.iter_mut().chain(self.two.iter_mut()).chain(self.encrypted.iter_mut()) {
            let Some(start) = pending.exchange.request.first.map(|stamp| stamp.time) else { continue };
            let since = match pending.exchange.group {
                Group::Waiting if pending.exchange.is_subscription() => &mut settled.subscribed_since,
                Group::Waiting => &mut settled.held_since,
                _ => {
                    settled.until = settled.until.min(start);
                    continue;
                }
            };
            *since = Some(since.map_or(start, |since| since.min(start)));
        }
        settled.until =
            self.recent.iter().filter_map(|pending| pending.exchange.start()).fold(settled.until, |a, b| a.min(b));
        sink.settled(&settled);
    }

    /// Bytes came again: note it where they belong.
    pub(crate) fn retransmitted(&mut self, framer: &Framer, direction: Direction, retransmission: &Retransmission) {
        if framer.open_frame_holds(retransmission.position) {
            self.unassigned.push(direction, *retransmission);
        }
        self.assign(direction, retransmission);
    }

    fn assign(&mut self, direction: Direction, retransmission: &Retransmission) {
        let from_client = direction == self.client;
        let span = Span { start: retransmission.position, end: retransmission.position + retransmission.length };
        let mut note = |pending: &mut Pending| pending.note(retransmission, from_client);
        if from_client {
            self.one.requests_near(span, &mut note);
            self.two.requests_near(span, &mut note);
        } else {
            // An SMB2 request is over with the first message of its response.
            self.one.responses_near(span, &mut note);
        }
        self.encrypted.iter_mut().for_each(&mut note);
        self.recent.iter_mut().for_each(&mut note);
    }

    /// Retransmissions that came before the frame was complete.
    pub(crate) fn assign_earlier(&mut self, direction: Direction, frame: Span) {
        for retransmission in self.unassigned.take(direction, frame) {
            self.assign(direction, &retransmission);
        }
    }

    /// The connection is over: what is outstanding stays unanswered.
    pub(crate) fn close(
        mut self,
        scene: &mut Scene<'_, '_>,
        end: &FlowEnd,
        message_packets: [u64; 2],
        mut hidden: [HiddenFrames; 2],
    ) -> smbscope_model::Connection {
        self.abandon_all(scene);
        self.count_unseen(scene, &mut hidden);
        self.recent.flush(scene.shared.emit);
        self.two.leave_sessions(scene.shared.sessions, self.endpoints.server.ip());
        let counts =
            |direction: Direction| direction_counts(&end.counts[direction.index()], message_packets[direction.index()]);
        smbscope_model::Connection {
            flow: self.flow,
            endpoints: self.endpoints,
            first: scene.view.first.time,
            last: end.last.time,
            dialect: self.dialect,
            midstream: scene.view.midstream,
            end: match (end.reset, end.finished) {
                (true, _) => ConnectionEnd::Reset,
                (_, true) => ConnectionEnd::Closed,
                _ => ConnectionEnd::Open,
            },
            signing_required: self.signing_required,
            signed_messages: self.signed_messages,
            encrypted_frames: self.encrypted_frames,
            compressed_frames: self.compressed_frames,
            messages: self.messages,
            exchanges: self.completed,
            max_outstanding: self.max_outstanding,
            max_credits_granted: self.max_credits_granted,
            server_round_trip: scene.view.round_trip[self.client.index()],
            client_round_trip: scene.view.round_trip[self.client.reverse().index()],
            users: self.users,
            shares: self.shares,
            to_server: counts(self.client),
            to_client: counts(self.client.reverse()),
        }
    }

    /// Counts the commands of which nothing was captured.
    fn count_unseen(&self, scene: &mut Scene<'_, '_>, hidden: &mut [HiddenFrames; 2]) {
        let from_the_beginning = scene.view.begins[self.client.index()];
        let [forward, backward] = hidden;
        let (client, server) = match self.client {
            Direction::Forward => (forward, backward),
            Direction::Backward => (backward, forward),
        };
        let numbered = !self.message_ids.is_empty();
        let known = Known {
            seen: self.seen,
            asked: self.asked,
            answered: self.answered,
            client,
            server,
            ids: (numbered && self.encrypted_frames == 0).then_some(&self.message_ids),
            mids: (!numbered).then_some(&self.mids),
            from_the_beginning,
        };
        known.unseen().count_in(scene.shared.quality);
    }

    /// Notes which protocol is spoken, when the negotiation was not captured.
    pub(crate) fn speaks(&self) -> Option<Protocol> {
        self.dialect.map(Dialect::protocol)
    }
}

fn endpoints(view: &FlowView, client: Direction) -> Endpoints {
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

fn direction_counts(counts: &StreamCounts, message_packets: u64) -> DirectionCounts {
    DirectionCounts {
        packets: counts.packets,
        bytes: counts.bytes,
        message_packets,
        continuation_packets: counts.data_packets.saturating_sub(message_packets),
        pure_acks: counts.pure_acks,
        retransmitted: counts.retransmitted,
        dropped_bytes: counts.dropped_bytes,
        dropped_packets: counts.dropped_packets,
    }
}

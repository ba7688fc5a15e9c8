//! One SMB connection: passes each frame to the analyzer of its protocol.
//!
//! A connection may change from SMB1 to SMB2 and from plain to encrypted messages, so it holds the state of all three.

use crate::content::FrameContent;
use crate::encrypted::Encrypted;
use crate::frame::Frame;
use crate::framer::Framer;
use crate::ledger::{ConnectionLedger, Ledger, ShardContext};
use crate::pending::{ExchangeSink, PendingExchange, StreamSpan};
use crate::smb1::Smb1ConnectionState;
use crate::smb2::Smb2;
use crate::unseen::{CommandObservations, HiddenFrames};
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamCounts};
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::{DirectionCounts, FlowDirection, Protocol, Timestamp};
use smbscope_wire::nbss::FrameType;

/// Approximate size of a connection's tables of requests and message ids, and of its part of the session tables.
const TABLES_BYTES: usize = 4 << 10;

#[derive(Debug, Clone)]
pub(crate) struct ConnectionAnalyzer {
    accounts: ConnectionLedger,
    protocols: Protocols,
}

#[derive(Debug, Clone, Default)]
struct Protocols {
    smb1: Smb1ConnectionState,
    smb2: Smb2,
    encrypted: Encrypted,
}

impl Protocols {
    fn outstanding(&self) -> usize {
        self.smb1.outstanding() + self.smb2.outstanding() + self.encrypted.outstanding()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.smb1.iter_mut().chain(self.smb2.iter_mut()).chain(self.encrypted.iter_mut())
    }

    fn abandon_all(&mut self, ledger: &mut Ledger<'_>) {
        self.encrypted.settle(ledger);
        let requests = self.smb1.take_all().chain(self.smb2.take_all()).chain(self.encrypted.take_all());
        let mut outstanding: Vec<_> = requests.collect();
        outstanding.sort_by_key(|pending| pending.request.start);
        for pending in outstanding {
            ledger.abandon(pending);
        }
    }
}

impl ConnectionAnalyzer {
    pub(crate) fn new(view: &FlowView, client: FlowDirection) -> ConnectionAnalyzer {
        ConnectionAnalyzer { accounts: ConnectionLedger::new(view, client), protocols: Protocols::default() }
    }

    pub(crate) fn client(&self) -> FlowDirection {
        self.accounts.client
    }

    #[inline]
    pub(crate) fn footprint(&self) -> usize {
        let exchanges = self.accounts.footprint(self.protocols.outstanding());
        size_of::<ConnectionAnalyzer>() + TABLES_BYTES + exchanges + self.protocols.smb1.name_bytes()
    }

    pub(crate) fn take_frame(
        &mut self,
        view: &FlowView,
        shared: &mut ShardContext<'_>,
        framers: &[Framer; 2],
        direction: FlowDirection,
        frame: &mut Frame,
    ) {
        if frame.frame_type != FrameType::Message {
            return;
        }
        let ConnectionAnalyzer { accounts, protocols } = self;
        accounts.note_origin(frame, direction == accounts.client, shared.origins);
        let mut ledger = Ledger::open(accounts, view, shared, framers.each_ref().map(|framer| &framer.losses));
        let content = std::mem::replace(&mut frame.content, FrameContent::Raw);
        // The other side is the client after all. Swap sides while nothing is matched.
        let is_wrong_side = content.asks() == Some(true) && direction != ledger.client();
        if is_wrong_side && ledger.accounts.summary.exchanges == 0 {
            protocols.abandon_all(&mut ledger);
            ledger.change_client(direction);
        }
        protocols.take_content(&mut ledger, direction, frame, content);
        if direction != ledger.client() {
            ledger.accounts.server_seen = frame.end;
        }
        self.assign_earlier(direction, StreamSpan::from_frame(frame));
    }

    /// Reports the time before which no further exchange begins, given the start times of incomplete frames (`open`).
    pub(crate) fn settle(
        &mut self,
        view: &FlowView,
        now: Timestamp,
        open: impl Iterator<Item = Timestamp>,
        sink: &mut dyn ExchangeSink,
    ) {
        if self.accounts.can_settle(|| self.protocols.outstanding()) {
            self.accounts.settle(view, now, open, self.protocols.iter_mut(), sink);
        }
    }

    pub(crate) fn retransmitted(&mut self, framer: &Framer, direction: FlowDirection, retransmission: &Retransmission) {
        if framer.open_frame_holds(retransmission.position) {
            self.accounts.unassigned.push(direction, *retransmission);
        }
        self.assign(direction, retransmission);
    }

    fn assign(&mut self, direction: FlowDirection, retransmission: &Retransmission) {
        let ConnectionAnalyzer { accounts, protocols } = self;
        let from_client = direction == accounts.client;
        let span = StreamSpan { start: retransmission.position, end: retransmission.position + retransmission.length };
        let mut note = |pending: &mut PendingExchange| pending.note(retransmission, from_client);
        protocols.smb1.near(span, from_client, &mut note);
        // An SMB2 request is removed from the table with the first message of its response.
        if from_client {
            protocols.smb2.requests_near(span, &mut note);
        }
        protocols.encrypted.iter_mut().for_each(&mut note);
        accounts.recent.iter_mut().for_each(&mut note);
    }

    fn assign_earlier(&mut self, direction: FlowDirection, frame: StreamSpan) {
        for retransmission in self.accounts.unassigned.take(direction, frame) {
            self.assign(direction, &retransmission);
        }
    }

    pub(crate) fn close(
        mut self,
        view: &FlowView,
        shared: &mut ShardContext<'_>,
        framers: &mut [Framer; 2],
        end: &FlowEnd,
    ) -> smbscope_model::ConnectionSummary {
        let ConnectionAnalyzer { accounts, protocols } = &mut self;
        let mut ledger = Ledger::open(accounts, view, shared, framers.each_ref().map(|framer| &framer.losses));
        protocols.abandon_all(&mut ledger);
        protocols.smb2.leave_sessions(&mut ledger);
        self.count_unseen(view, shared, framers.each_mut().map(|framer| &mut framer.hidden));
        let ConnectionLedger { client, mut summary, mut recent, .. } = self.accounts;
        recent.flush(shared.emit);
        let server = client.reverse();
        let counts = |direction: FlowDirection| {
            direction_counts(&end.counts[direction.index()], framers[direction.index()].message_packets)
        };
        summary.last = end.last.time;
        summary.midstream = view.midstream;
        summary.end = match (end.reset, end.finished) {
            (true, _) => ConnectionEnd::Reset,
            (_, true) => ConnectionEnd::Closed,
            _ => ConnectionEnd::Open,
        };
        summary.server_round_trip = view.round_trip[client.index()];
        summary.client_round_trip = view.round_trip[server.index()];
        summary.outages = end.outages.clone();
        (summary.to_server, summary.to_client) = (counts(client), counts(server));
        summary.initial_sequences = [client, server].map(|direction| end.initial[direction.index()]);
        summary.resent_at = [client, server].map(|direction| end.resent[direction.index()].clone());
        summary
    }

    fn count_unseen(&self, view: &FlowView, shared: &mut ShardContext<'_>, hidden: [&mut HiddenFrames; 2]) {
        let ConnectionAnalyzer { accounts, protocols } = self;
        let [forward, backward] = hidden;
        let (client, server) = match accounts.client {
            FlowDirection::Forward => (forward, backward),
            FlowDirection::Backward => (backward, forward),
        };
        let ids = &protocols.smb2.message_ids;
        let numbered = !ids.is_empty();
        let known = CommandObservations {
            seen: accounts.seen,
            asked: accounts.asked,
            answered: accounts.answered + protocols.encrypted.final_responses(),
            begins_in_response: view.midstream && server.begins_unread,
            client,
            server,
            ids: (numbered && accounts.summary.encrypted_frames == 0).then_some(ids),
            mids: (!numbered).then_some(&protocols.smb1.mids),
            encrypted: protocols.encrypted.missing(),
            from_the_beginning: view.begins[accounts.client.index()],
        };
        known.unseen().count_in(shared.quality);
    }
}

impl Protocols {
    fn take_content(
        &mut self,
        ledger: &mut Ledger<'_>,
        direction: FlowDirection,
        frame: &Frame,
        content: FrameContent,
    ) {
        match content {
            FrameContent::Smb1(message) => self.smb1.take(ledger, direction, frame, &message),
            FrameContent::Smb2 { members, compressed, cut } => {
                ledger.quality.headers_truncated += u64::from(cut);
                let is_decrypted = members.first().is_some_and(|member| member.decrypted);
                ledger.accounts.summary.decrypted_frames += u64::from(is_decrypted);
                if compressed {
                    ledger.note_compressed();
                }
                self.smb2.take(ledger, &mut self.smb1, direction, frame, members);
            }
            FrameContent::Encrypted { session_id, nonce } => {
                self.encrypted.take(ledger, direction, frame, session_id, nonce);
            }
            FrameContent::Opaque => {
                ledger.note_compressed();
                ledger.quality.compressed_frames_opaque += 1;
            }
            FrameContent::Cut => ledger.quality.headers_truncated += 1,
            FrameContent::Raw => {
                let may_be_raw = ledger.accounts.speaks() != Some(Protocol::Smb2);
                if !(may_be_raw && self.smb1.take_raw(ledger, direction, frame)) {
                    ledger.quality.unknown_frames += 1;
                }
            }
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
        lost_before_capture: counts.lost_before_capture,
        needless: counts.needless,
        resend_delay_ns: counts.resend_delay,
        ack_stalls: counts.ack_stalls,
        ack_stall_ns: counts.ack_stall,
        dropped_bytes: counts.dropped_bytes,
        dropped_packets: counts.dropped_packets,
        window_closed_ns: counts.window.closed,
        window_limited_ns: counts.window.limited,
        filled_window: counts.window.filled,
    }
}

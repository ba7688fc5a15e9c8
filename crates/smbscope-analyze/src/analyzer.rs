//! The analyzer of a shard: the sink of its flow table. Keeps a state per flow, and the data that outlives a flow.
//!
//! One shard holds many flows. [`Analyzer::opened`](StreamSink::opened) creates the state of a flow, and
//! [`Analyzer::closed`](StreamSink::closed) turns it into a connection summary or a failed connection attempt.

use crate::bounded::{ClockSteps, Encapsulations, ForeignReplies, Initials, Routed};
use crate::channels::{SessionRegistry, ShardCouplingMonitor};
use crate::decryption::Keys;
use crate::flow::{ConnectAttemptTotals, FlowState, attempt_of, begins_connection};
use crate::foreign::ForeignTraffics;
use crate::frame::Frame;
use crate::ledger::ShardContext;
use crate::names::Sessions;
use crate::offers::OfferPool;
use crate::pending::ExchangeSink;
use crate::unseen::UnseenEstimate;
use smbscope_capture::decode::Origins;
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_model::decryption::DecryptedSessions;
use smbscope_model::{
    ClockStep, ConnectionSummary, FlowDirection, FlowId, ForeignProtocol, MemoryBudget, Quality, Role, TunnelPorts,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ports on which SMB is expected: direct TCP and the NetBIOS session service.
pub(crate) const SMB_PORTS: [u16; 2] = [445, 139];

#[derive(Debug, Clone, Default)]
pub struct AnalyzerOptions {
    /// Analyse only flows with one of these ports (all if empty), the server's unless a message shows otherwise.
    pub ports: Vec<u16>,
    pub limits: MemoryBudget,
    /// Tunnels on UDP ports, as the user declares them.
    pub tunnels: TunnelPorts,
    /// End of a router whose copy of a packet counts. If `None`, the first copy counts.
    pub beside: Option<Role>,
    /// Keep the parameters of requests in [`Exchange::details`](smbscope_model::Exchange), for replay.
    pub details: bool,
    /// Decrypt messages with these keys.
    pub keys: Option<Arc<KeyRing>>,
}

/// Bytes of names in a shard's connection summaries: `evicted_names`.
const CONNECTION_NAMES_MAX: usize = 2 << 20;

pub struct Analyzer<E: ExchangeSink> {
    options: AnalyzerOptions,
    emit: E,
    frames: Vec<Frame>,
    quality: Quality,
    sessions: Sessions,
    offers: OfferPool,
    connections: BTreeMap<FlowId, Box<ConnectionSummary>>,
    connections_left_out: u64,
    connection_names: usize,
    steps_back: Arc<[ClockStep]>,
    origins: Origins,
    clock_steps: ClockSteps,
    foreign_replies: ForeignReplies,
    foreign_traffic: ForeignTraffics,
    encapsulations: Encapsulations,
    attempts: ConnectAttemptTotals,
    routed: Routed,
    initials: Vec<Initials>,
    keys: Option<Box<Keys>>,
}

#[derive(Debug, Clone, Default)]
pub struct AnalyzerOutcome {
    pub quality: Quality,
    pub connections: Vec<ConnectionSummary>,
    pub connections_left_out: u64,
    pub(crate) clock_steps: ClockSteps,
    pub(crate) foreign_replies: ForeignReplies,
    pub(crate) foreign_traffic: ForeignTraffics,
    pub(crate) encapsulations: Encapsulations,
    pub(crate) attempts: ConnectAttemptTotals,
    pub(crate) routed: Routed,
    pub(crate) initials: Vec<Initials>,
    pub decryption: DecryptedSessions,
}

impl<E: ExchangeSink> Analyzer<E> {
    pub fn new(options: AnalyzerOptions, emit: E) -> Analyzer<E> {
        Analyzer {
            sessions: Sessions::within(options.limits.names),
            offers: OfferPool::default(),
            keys: options.keys.as_ref().map(|ring| Box::new(Keys::new(Arc::clone(ring)))),
            options,
            emit,
            frames: Vec::new(),
            quality: Quality::default(),
            connections: BTreeMap::new(),
            connections_left_out: 0,
            connection_names: 0,
            steps_back: Arc::default(),
            origins: Origins::default(),
            clock_steps: ClockSteps::default(),
            foreign_replies: ForeignReplies::default(),
            foreign_traffic: ForeignTraffics::default(),
            encapsulations: Encapsulations::default(),
            attempts: ConnectAttemptTotals::default(),
            routed: Routed::default(),
            initials: Vec::new(),
        }
    }

    /// Reports every session to the other shards, and with `by_connection` to connections of this shard that share it.
    pub(crate) fn watch_channels(&mut self, shard: usize, by_connection: bool, channels: Arc<SessionRegistry>) {
        self.sessions.watch = Some(ShardCouplingMonitor::new(shard, by_connection, channels));
    }

    pub(crate) fn set_steps_back(&mut self, steps: Arc<[ClockStep]>) {
        self.steps_back = steps;
    }

    /// Sets the table of the decoder whose segments the analyzer gets.
    pub fn set_origins(&mut self, origins: Origins) {
        self.origins = origins;
    }

    pub fn finish(mut self) -> AnalyzerOutcome {
        self.take_outcome()
    }

    /// Takes the findings since the last call. All of them together are the findings of a single call at the end.
    pub(crate) fn take_outcome(&mut self) -> AnalyzerOutcome {
        use std::mem::take;
        self.quality.evicted_names += take(&mut self.sessions.forgotten);
        self.connection_names = 0;
        AnalyzerOutcome {
            quality: take(&mut self.quality),
            connections: take(&mut self.connections).into_values().map(|connection| *connection).collect(),
            connections_left_out: take(&mut self.connections_left_out),
            clock_steps: take(&mut self.clock_steps),
            foreign_replies: take(&mut self.foreign_replies),
            foreign_traffic: take(&mut self.foreign_traffic),
            encapsulations: take(&mut self.encapsulations),
            attempts: take(&mut self.attempts),
            routed: take(&mut self.routed),
            initials: take(&mut self.initials),
            decryption: self.keys.as_mut().map(|keys| take(&mut keys.sessions)).unwrap_or_default(),
        }
    }

    /// An analyzer with this one's names and keys that has found nothing, for copies of its flows.
    pub(crate) fn for_copies<L: ExchangeSink>(&self, emit: L) -> Analyzer<L> {
        Analyzer {
            sessions: self.sessions.clone(),
            offers: self.offers.clone(),
            keys: self.keys.clone(),
            steps_back: Arc::clone(&self.steps_back),
            origins: self.origins.clone(),
            ..Analyzer::new(AnalyzerOptions { keys: None, ..self.options.clone() }, emit)
        }
    }

    fn note_places(&mut self, connection: &ConnectionSummary, view: &FlowView, end: &FlowEnd) {
        if end.quality.copies_behind_router > 0 {
            self.routed.add(connection.endpoints, ());
        }
        // Address translation keeps initial sequence numbers, and no two connections share both by chance.
        if let [Some(forward), Some(backward)] = end.initial
            && self.initials.len() < self.options.limits.connections
        {
            let is_forward = view.source == connection.endpoints.client;
            let initials = if is_forward { [forward, backward] } else { [backward, forward] };
            self.initials.push((initials, connection.first, connection.endpoints));
        }
    }

    fn shorten_names(&mut self, connection: &mut ConnectionSummary) {
        for names in [&mut connection.users, &mut connection.shares] {
            names.retain(|name| {
                let fits = self.connection_names + name.len() <= CONNECTION_NAMES_MAX;
                self.connection_names += if fits { name.len() } else { 0 };
                self.quality.evicted_names += u64::from(!fits);
                fits
            });
        }
    }

    fn leave_out_last(&mut self) {
        if let Some((_, last)) = self.connections.pop_last() {
            self.connection_names -= last.users.iter().chain(&last.shares).map(|name| name.len()).sum::<usize>();
            self.connections_left_out += 1;
        }
    }

    fn promises_smb(&self, port: u16) -> bool {
        SMB_PORTS.contains(&port) || self.options.ports.contains(&port)
    }

    fn note_without_smb(&mut self, view: &FlowView, end: &FlowEnd, spoken: Option<ForeignProtocol>) {
        if let Some(attempt) = attempt_of(view, end) {
            let is_smb = self.promises_smb(attempt.server.port());
            self.attempts.add(attempt, is_smb);
            return;
        }
        if let Some(protocol) = spoken {
            let packets = end.counts.iter().map(|counts| counts.packets).sum();
            let (_, server) = view.ends(view.opener.unwrap_or_else(|| view.client_by_port()));
            self.foreign_traffic.add((protocol, server.port()), (1, packets));
        }
        let (_, server) = view.ends(view.opener.unwrap_or(FlowDirection::Forward));
        if self.promises_smb(server.port()) && end.counts.iter().all(|counts| counts.bytes == 0) {
            let lost = end.counts.each_ref().map(|counts| counts.dropped_bytes);
            UnseenEstimate::from_bytes(lost).count_in(&mut self.quality);
        }
    }

    fn shared(&mut self) -> ShardContext<'_> {
        ShardContext {
            quality: &mut self.quality,
            sessions: &mut self.sessions,
            offers: &mut self.offers,
            emit: &mut self.emit,
            frames: &mut self.frames,
            steps_back: &self.steps_back,
            clock_steps: &mut self.clock_steps,
            foreign_replies: &mut self.foreign_replies,
            origins: &self.origins,
            keys: self.keys.as_deref_mut(),
        }
    }
}

impl<E: ExchangeSink> StreamSink for Analyzer<E> {
    type Flow = Option<FlowState>;

    fn opened(&mut self, view: &FlowView) -> Option<FlowState> {
        let ports = [view.source.port(), view.destination.port()];
        let wanted = self.options.ports.is_empty() || ports.iter().any(|port| self.options.ports.contains(port));
        let promising = ports.map(|port| self.promises_smb(port));
        wanted.then(|| FlowState::new(view, promising, self.options.details, self.options.keys.is_some()))
    }

    fn data(
        &mut self,
        flow: &mut Option<FlowState>,
        view: &FlowView,
        direction: FlowDirection,
        chunk: &StreamChunk<'_>,
    ) {
        if let Some(flow) = flow {
            flow.data(view, direction, chunk, &mut self.shared());
        }
    }

    fn gap(&mut self, flow: &mut Option<FlowState>, view: &FlowView, direction: FlowDirection, gap: &StreamGap) {
        if let Some(flow) = flow {
            flow.gap(view, direction, gap, &mut self.shared());
        }
    }

    fn retransmitted(
        &mut self,
        flow: &mut Option<FlowState>,
        _: &FlowView,
        direction: FlowDirection,
        retransmission: &Retransmission,
    ) {
        if let Some(flow) = flow {
            flow.retransmitted(direction, retransmission);
        }
    }

    fn begins_connection(&self, bytes: &[u8]) -> bool {
        begins_connection(bytes)
    }

    fn footprint(&self, flow: &Option<FlowState>) -> usize {
        flow.as_ref().map_or(0, FlowState::footprint)
    }

    fn closed(&mut self, flow: Option<FlowState>, view: &FlowView, end: FlowEnd) {
        let Some(flow) = flow else { return };
        let spoken = flow.other_protocol();
        let Some(mut connection) = flow.close(view, &end, &mut self.shared()) else {
            self.note_without_smb(view, &end, spoken);
            return;
        };
        self.note_places(&connection, view, &end);
        if let Some(name) = &connection.encapsulation {
            let packets = connection.to_server.packets + connection.to_client.packets;
            self.encapsulations.add(Arc::clone(name), (1, packets));
        }
        self.emit.closed(&connection);
        self.shorten_names(&mut connection);
        // Frames of an 802.11 aggregate share the number of their packet, and so do connections that begin there.
        let replaced = self.connections.insert(connection.flow, Box::new(connection));
        self.connections_left_out += u64::from(replaced.is_some());
        if self.connections.len() > self.options.limits.connections {
            self.leave_out_last();
        }
    }
}

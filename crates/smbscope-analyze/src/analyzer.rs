//! The sink of a flow table: keeps a state for each flow, and what outlives all of them.

use crate::attempts::{ConnectAttemptTotals, attempt_of};
use crate::channels::{SessionRegistry, ShardCouplingMonitor};
use crate::flow::{FlowState, begins_connection};
use crate::framer::Frame;
use crate::least::{ClockSteps, ForeignReplies, Initials, Routed};
use crate::ledger::ShardContext;
use crate::names::Sessions;
use crate::offers::OfferPool;
use crate::sink::ExchangeSink;
use crate::unseen::UnseenEstimate;
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_model::{ClockStep, ConnectionSummary, FlowDirection, FlowId, MemoryBudget, Quality, Role};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ports that promise SMB: direct TCP and the NetBIOS session service.
pub(crate) const SMB_PORTS: [u16; 2] = [445, 139];

/// What is looked at.
#[derive(Debug, Clone, Default)]
pub struct AnalyzerOptions {
    /// Only flows with one of these ports at either end, which is the server's where no message tells; all flows when
    /// empty.
    pub ports: Vec<u16>,
    /// What it may take.
    pub limits: MemoryBudget,
    /// Of packets that were captured on both sides of a router, those nearer to this end count; where none is chosen, the
    /// first copy.
    pub beside: Option<Role>,
    /// Exchanges keep what their requests asked for, to be sent again: [`Exchange::details`](smbscope_model::Exchange).
    pub details: bool,
}

/// Bytes of the names of users and shares in the summaries of a shard's connections.
const CONNECTION_NAMES_MAX: usize = 2 << 20;

/// Receives the events of every flow and passes exchanges on.
pub struct Analyzer<E: ExchangeSink> {
    options: AnalyzerOptions,
    emit: E,
    /// Room for the frames of a chunk, which all flows share.
    frames: Vec<Frame>,
    quality: Quality,
    sessions: Sessions,
    offers: OfferPool,
    /// Those that began first.
    connections: BTreeMap<FlowId, Box<ConnectionSummary>>,
    connections_left_out: u64,
    /// Bytes of the names in `connections`.
    connection_names: usize,
    steps_back: Arc<[ClockStep]>,
    clock_steps: ClockSteps,
    foreign_replies: ForeignReplies,
    attempts: ConnectAttemptTotals,
    routed: Routed,
    initials: Vec<Initials>,
}

/// What remains when every flow is over.
#[derive(Debug, Clone, Default)]
pub struct AnalyzerOutcome {
    /// Counts of the flows that carried SMB.
    pub quality: Quality,
    /// The connections, by first packet.
    pub connections: Vec<ConnectionSummary>,
    /// Connections that are not in the list because it was full.
    pub connections_left_out: u64,
    /// Where the clock of the capture stepped within exchanges.
    pub(crate) clock_steps: ClockSteps,
    pub(crate) foreign_replies: ForeignReplies,
    pub(crate) attempts: ConnectAttemptTotals,
    pub(crate) routed: Routed,
    pub(crate) initials: Vec<Initials>,
}

impl<E: ExchangeSink> Analyzer<E> {
    /// An analysis that hands every exchange to `emit`, in the order in which they end.
    pub fn new(options: AnalyzerOptions, emit: E) -> Analyzer<E> {
        Analyzer {
            sessions: Sessions::within(options.limits.names),
            offers: OfferPool::default(),
            options,
            emit,
            frames: Vec::new(),
            quality: Quality::default(),
            connections: BTreeMap::new(),
            connections_left_out: 0,
            connection_names: 0,
            steps_back: Arc::default(),
            clock_steps: ClockSteps::default(),
            foreign_replies: ForeignReplies::default(),
            attempts: ConnectAttemptTotals::default(),
            routed: Routed::default(),
            initials: Vec::new(),
        }
    }

    /// Has every session that is met told to the other shards, and noticed where two connections of this one share it if
    /// they are followed one after the other.
    pub(crate) fn watch_channels(&mut self, shard: usize, by_connection: bool, channels: Arc<SessionRegistry>) {
        self.sessions.watch = Some(ShardCouplingMonitor::new(shard, by_connection, channels));
    }

    /// Has exchanges across these steps of the clock left out.
    pub(crate) fn know_steps_back(&mut self, steps: Arc<[ClockStep]>) {
        self.steps_back = steps;
    }

    /// Sums up.
    pub fn finish(mut self) -> AnalyzerOutcome {
        self.quality.evicted_names += self.sessions.forgotten;
        AnalyzerOutcome {
            quality: self.quality,
            connections: self.connections.into_values().map(|connection| *connection).collect(),
            connections_left_out: self.connections_left_out,
            clock_steps: self.clock_steps,
            foreign_replies: self.foreign_replies,
            attempts: self.attempts,
            routed: self.routed,
            initials: self.initials,
        }
    }

    /// Notes what tells that a connection was captured at two places.
    fn note_places(&mut self, connection: &ConnectionSummary, view: &FlowView, end: &FlowEnd) {
        if end.quality.copies_behind_router > 0 {
            self.routed.add(connection.endpoints, ());
        }
        // Address translation keeps sequence numbers, and two connections have both alike by no chance.
        if let [Some(forward), Some(backward)] = end.initial
            && self.initials.len() < self.options.limits.connections
        {
            let is_forward = view.source == connection.endpoints.client;
            let initials = if is_forward { [forward, backward] } else { [backward, forward] };
            self.initials.push((initials, connection.first, connection.endpoints));
        }
    }

    /// Gives up the names of a connection that is to be listed when those listed before have too many.
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

    /// Makes room in the list of connections by the one that began last.
    fn leave_out_last(&mut self) {
        if let Some((_, last)) = self.connections.pop_last() {
            self.connection_names -= last.users.iter().chain(&last.shares).map(|name| name.len()).sum::<usize>();
            self.connections_left_out += 1;
        }
    }

    fn promises_smb(&self, port: u16) -> bool {
        SMB_PORTS.contains(&port) || self.options.ports.contains(&port)
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
        }
    }
}

impl<E: ExchangeSink> StreamSink for Analyzer<E> {
    /// Nothing is kept for a flow whose ports are not asked for.
    type Flow = Option<FlowState>;

    fn opened(&mut self, view: &FlowView) -> Option<FlowState> {
        let ports = [view.source.port(), view.destination.port()];
        let wanted = self.options.ports.is_empty() || ports.iter().any(|port| self.options.ports.contains(port));
        let promising = ports.map(|port| self.promises_smb(port));
        wanted.then(|| FlowState::new(view, promising, self.options.details))
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
        let Some(mut connection) = flow.close(view, &end, &mut self.shared()) else {
            let opener = view.opener.unwrap_or(FlowDirection::Forward);
            let dropped = end.counts.each_ref().map(|counts| counts.dropped_bytes);
            if let Some(attempt) = attempt_of(view, &end) {
                let is_smb = self.promises_smb(attempt.server.port());
                self.attempts.add(attempt, is_smb);
            } else if self.promises_smb(view.ends(opener).1.port()) && end.counts.iter().all(|counts| counts.bytes == 0)
            {
                UnseenEstimate::from_bytes(dropped).count_in(&mut self.quality);
            }
            return;
        };
        self.note_places(&connection, view, &end);
        self.emit.closed(&connection);
        self.shorten_names(&mut connection);
        self.connections.insert(connection.flow, Box::new(connection));
        if self.connections.len() > self.options.limits.connections {
            self.leave_out_last();
        }
    }
}

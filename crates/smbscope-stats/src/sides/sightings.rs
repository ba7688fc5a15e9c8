//! Exchanges as one capture point saw them.

use smbscope_model::{ClockStep, CommandGroup, Endpoints, Exchange, FlowId, Nanos, PacketRef, Timestamp};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Exchanges kept per point, about 100 bytes each. Those after them are not paired.
pub const SIGHTINGS_MAX: usize = 2_000_000;

/// A complete exchange at one capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenExchange {
    /// Hash of the parts that are the same at every point: command, message id, session and size of the request.
    pub(super) content: u64,
    pub(super) group: CommandGroup,
    /// First packet of the request, which identifies the exchange (all members of a compound) in its captures.
    pub packet: PacketRef,
    pub(super) request: [Timestamp; 2],
    pub(super) response: [Timestamp; 2],
    /// Round trip between this point and the server.
    pub(super) round_trip: Option<Nanos>,
    /// True if a segment of it was retransmitted.
    pub(super) is_resent: bool,
}

impl SeenExchange {
    fn new(exchange: &Exchange) -> Option<SeenExchange> {
        let Exchange { request, response, .. } = exchange;
        let mut hasher = DefaultHasher::new();
        (exchange.command, exchange.message_id, exchange.session_id, request.bytes).hash(&mut hasher);
        if exchange.message_id.is_none() {
            response.bytes.hash(&mut hasher);
        }
        Some(SeenExchange {
            content: hasher.finish(),
            group: exchange.group,
            packet: request.first?.packet,
            request: [request.first?.time, request.last?.time],
            response: [response.first?.time, response.last?.time],
            round_trip: exchange.server_round_trip,
            is_resent: exchange.retransmitted > 0,
        })
    }

    pub(super) fn begin(&self) -> Timestamp {
        self.request[0]
    }

    pub(super) fn end(&self) -> Timestamp {
        self.response[1]
    }

    pub(super) fn response_time(&self) -> Nanos {
        self.end() - self.begin()
    }

    /// Returns the time from the last packet of the request to the first one of the response.
    pub(super) fn service_time(&self) -> Nanos {
        self.response[0] - self.request[1]
    }

    pub(super) fn request_end(&self) -> Timestamp {
        self.request[1]
    }
}

#[derive(Debug, Clone)]
pub(super) struct FlowSightings {
    pub(super) endpoints: Endpoints,
    pub(super) seen: Vec<SeenExchange>,
}

/// Exchanges of one capture point.
#[derive(Debug, Clone, Default)]
pub struct PointSightings {
    pub(super) flows: HashMap<FlowId, FlowSightings>,
    kept: usize,
    /// First packets after steps of the clock that the captures themselves show.
    steps: Vec<PacketRef>,
}

impl PointSightings {
    pub fn record(&mut self, exchange: &Exchange) {
        if !exchange.is_complete() {
            return;
        }
        if self.kept == SIGHTINGS_MAX {
            return;
        }
        let Some(sighting) = SeenExchange::new(exchange) else { return };
        self.kept += 1;
        let flow = self.flows.entry(exchange.flow);
        flow.or_insert_with(|| FlowSightings { endpoints: exchange.endpoints, seen: Vec::new() }).seen.push(sighting);
    }

    /// Adds the connections of another part of the same captures.
    pub fn merge(&mut self, other: PointSightings) {
        self.kept += other.kept;
        for (flow, theirs) in other.flows {
            match self.flows.get_mut(&flow) {
                Some(mine) => mine.seen.extend(theirs.seen),
                None => _ = self.flows.insert(flow, theirs),
            }
        }
    }

    /// Sorts the exchanges of each connection by time, and notes the clock steps of the captures.
    pub fn finish(&mut self, steps: &[ClockStep]) {
        self.steps = steps.iter().map(|step| step.after.packet).collect();
        for flow in self.flows.values_mut() {
            flow.seen.sort_by_key(|sighting| (sighting.begin(), sighting.packet, sighting.content));
        }
    }

    /// Returns the number of known clock steps before an exchange.
    pub(super) fn epoch(&self, sighting: &SeenExchange) -> usize {
        let packet = sighting.packet;
        self.steps.iter().filter(|step| step.capture() == packet.capture() && **step <= packet).count()
    }

    pub(super) fn listed(&self) -> Vec<(FlowId, &FlowSightings)> {
        self.flows.iter().map(|(flow, seen)| (*flow, seen)).collect()
    }

    pub fn exchanges(&self) -> usize {
        self.kept
    }
}

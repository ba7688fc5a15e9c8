//! Times and losses between capture points.

use super::clock::ClockDifference;
use super::pairing::{PairedConnection, PairedPoints};
use super::sightings::{PointSightings, SeenExchange};
use crate::summary::{DurationStatistics, Summary, SummaryPrecision};
use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, ConnectionSummary, FlowId, Nanos, PacketRef, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// The same traffic at several points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SidesFigures {
    /// Points from the client to the server.
    pub points: Vec<CapturePoint>,
    /// The ways between each point and the next.
    pub segments: Vec<PathSegment>,
}

/// Place of a capture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturePoint {
    /// `client`, `server`, or the name given with --sides.
    pub name: String,
    /// Files of the point.
    pub captures: Vec<String>,
    /// Connections that carried SMB.
    pub connections: u64,
    /// Complete exchanges.
    pub exchanges: u64,
}

/// Way between two neighbouring capture points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathSegment {
    /// Point nearer to the client.
    pub from: String,
    /// Point nearer to the server.
    pub to: String,
    /// Connections that both points saw.
    pub connections: u64,
    /// Those whose addresses or ports differ: a device in between rewrote them, or has a connection of its own.
    pub rewritten: u64,
    /// Those whose data a device in between acknowledges instead of the server, so that TCP ends there.
    pub terminated: u64,
    /// Exchanges that both points saw.
    pub pairs: u64,
    /// Exchanges on these connections that only the point nearer to the client saw, while the other one captured: a
    /// device in between answered them, or the capture at the other point lacks them.
    pub only_from: u64,
    /// Exchanges on these connections that only the point nearer to the server saw.
    pub only_to: u64,
    /// Difference of the clocks.
    pub clock: ClockDifference,
    /// Shortest time there and back. Exact, whatever the clocks show.
    pub round_trip_ns: Nanos,
    /// Time there and back beyond the shortest on the way to the server: queues and retransmissions.
    pub queued_to_server: DurationStatistics,
    /// The same on the way to the client.
    pub queued_to_client: DurationStatistics,
    /// Segments that passed the first point towards the server and did not reach the other. Null if a device in
    /// between ends TCP.
    pub lost_to_server: Option<u64>,
    /// Segments that passed the second point towards the client and did not reach the first.
    pub lost_to_client: Option<u64>,
    /// Data packets towards the server at the first point.
    pub packets_to_server: u64,
    /// Data packets towards the client at the second point.
    pub packets_to_client: u64,
    /// By operation group, those with the longest total response time first.
    pub groups: Vec<GroupPath>,
}

/// Times of a group of commands at two points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupPath {
    pub group: CommandGroup,
    /// Response time at the point nearer to the client.
    pub response_time: DurationStatistics,
    /// Response time at the point nearer to the server: what lies beyond it.
    pub beyond: DurationStatistics,
    /// Time between the points, there and back.
    pub path: DurationStatistics,
}

struct GroupTally {
    response_time: Summary,
    beyond: Summary,
    path: Summary,
}

impl Default for GroupTally {
    fn default() -> GroupTally {
        let summary = || Summary::new(SummaryPrecision::ROW);
        GroupTally { response_time: summary(), beyond: summary(), path: summary() }
    }
}

/// Time of one exchange between two points, there and back.
pub(super) fn path(clock: &ClockDifference, near: &SeenExchange, far: &SeenExchange) -> Nanos {
    let beyond = clock.far_duration(near.begin(), far.response_time());
    Nanos((near.response_time() - beyond).0.max(0))
}

impl PairedPoints {
    /// Returns the time that each exchange passed between the near point and the server, without the server's own, with
    /// its connection and the first packet of its request at the near point.
    fn trips(&self) -> impl Iterator<Item = (FlowId, PacketRef, Nanos)> {
        let trip = |near: &SeenExchange, far: &SeenExchange| {
            let service = self.clock.far_duration(near.begin(), far.service_time());
            let between = (near.service_time() - service).0.max(0);
            Nanos(between.saturating_add(far.round_trip.unwrap_or_default().0))
        };
        self.connections.iter().flat_map(move |connection| {
            connection.pairs.iter().map(move |(near, far)| (connection.near, near.packet, trip(near, far)))
        })
    }

    /// Returns these times by packet.
    pub fn round_trips(&self) -> HashMap<PacketRef, Nanos> {
        self.trips().map(|(_, packet, trip)| (packet, trip)).collect()
    }

    /// Returns the shortest of these times for each connection of the near point.
    pub fn shortest_round_trips(&self) -> HashMap<FlowId, Nanos> {
        let mut shortest: HashMap<FlowId, Nanos> = HashMap::new();
        for (flow, _, trip) in self.trips() {
            shortest.entry(flow).and_modify(|least| *least = trip.min(*least)).or_insert(trip);
        }
        shortest
    }

    /// Returns the longest time of an exchange between the points, there and back.
    pub fn longest_way(&self) -> Nanos {
        self.pairs().map(|(near, far)| path(&self.clock, near, far)).max().unwrap_or_default()
    }

    /// Sums up the way between the points.
    pub fn segment(&self, near: &PointConnections<'_>, far: &PointConnections<'_>) -> PathSegment {
        let mut segment = PathSegment {
            from: near.name.to_owned(),
            to: far.name.to_owned(),
            connections: self.connections.len() as u64,
            pairs: self.pairs().count() as u64,
            clock: self.clock.clone(),
            ..PathSegment::default()
        };
        self.add_times(&mut segment);
        for connection in &self.connections {
            add_connection(&mut segment, connection, near, far);
        }
        segment
    }

    fn add_times(&self, segment: &mut PathSegment) {
        let mut groups: BTreeMap<CommandGroup, GroupTally> = BTreeMap::new();
        let ways = |(near, far): &(SeenExchange, SeenExchange)| {
            let offset = self.clock.at(near.begin());
            ((far.begin() - near.begin()) - offset, (near.end() - far.end()).0.saturating_add(offset.0))
        };
        let shortest = self
            .pairs()
            .map(ways)
            .fold((i64::MAX, i64::MAX), |(there, back), way| (there.min(way.0.0), back.min(way.1)));
        let mut queued = [Summary::new(SummaryPrecision::ROW), Summary::new(SummaryPrecision::ROW)];
        for (near, far) in self.pairs() {
            let way = ways(&(*near, *far));
            queued[0].record(Nanos(way.0.0.saturating_sub(shortest.0)));
            queued[1].record(Nanos(way.1.saturating_sub(shortest.1)));
            let tally = groups.entry(near.group).or_default();
            tally.response_time.record(near.response_time());
            tally.beyond.record(self.clock.far_duration(near.begin(), far.response_time()));
            tally.path.record(path(&self.clock, near, far));
        }
        [segment.queued_to_server, segment.queued_to_client] = queued.map(|summary| summary.figures());
        segment.groups = groups
            .into_iter()
            .map(|(group, tally)| GroupPath {
                group,
                response_time: tally.response_time.figures(),
                beyond: tally.beyond.figures(),
                path: tally.path.figures(),
            })
            .collect();
        segment.round_trip_ns = segment.groups.iter().filter_map(|group| group.path.min).min().unwrap_or_default();
        segment.groups.sort_by_key(|group| std::cmp::Reverse(group.response_time.sum_ns));
    }
}

/// Connections of a capture point.
#[derive(Debug, Clone)]
pub struct PointConnections<'a> {
    name: &'a str,
    sightings: &'a PointSightings,
    connections: HashMap<FlowId, &'a ConnectionSummary>,
}

impl<'a> PointConnections<'a> {
    pub fn new(
        name: &'a str,
        sightings: &'a PointSightings,
        connections: &'a [ConnectionSummary],
    ) -> PointConnections<'a> {
        let by_flow = connections.iter().map(|connection| (connection.flow, connection));
        PointConnections { name, sightings, connections: by_flow.collect() }
    }
}

/// A device in between acknowledges if acknowledgments take less than this part of the shortest way to the server.
const TERMINATED_SHARE: i64 = 2;
const TERMINATED_LEAST: Nanos = Nanos(200_000);

fn add_connection(
    segment: &mut PathSegment,
    connection: &PairedConnection,
    near: &PointConnections<'_>,
    far: &PointConnections<'_>,
) {
    segment.rewritten += u64::from(!connection.same_addresses);
    add_unpaired(segment, connection, near, far);
    let summaries = (near.connections.get(&connection.near), far.connections.get(&connection.far));
    let (Some(one), Some(other)) = summaries else { return };
    let trip = connection.pairs.iter().map(|(near, far)| path(&segment.clock, near, far)).min().unwrap_or_default();
    let is_terminated = one.server_round_trip.is_some_and(|acknowledged| {
        acknowledged.0.saturating_mul(TERMINATED_SHARE) < trip.0 && trip.0 - acknowledged.0 > TERMINATED_LEAST.0
    });
    segment.terminated += u64::from(is_terminated);
    segment.packets_to_server += one.to_server.packets - one.to_server.pure_acks.min(one.to_server.packets);
    segment.packets_to_client += other.to_client.packets - other.to_client.pure_acks.min(other.to_client.packets);
    if !is_terminated {
        let lost = |after: u64, before: u64| after.saturating_sub(before);
        let to_server = lost(other.to_server.lost_before_capture, one.to_server.lost_before_capture);
        let to_client = lost(one.to_client.lost_before_capture, other.to_client.lost_before_capture);
        *segment.lost_to_server.get_or_insert_default() += to_server;
        *segment.lost_to_client.get_or_insert_default() += to_client;
    }
}

/// Counts exchanges that one point lacks while it captured their connection.
fn add_unpaired(
    segment: &mut PathSegment,
    connection: &PairedConnection,
    near: &PointConnections<'_>,
    far: &PointConnections<'_>,
) {
    let (Some(first), Some(last)) = (connection.pairs.first(), connection.pairs.last()) else { return };
    let between = |seen: &[SeenExchange], from: Timestamp, to: Timestamp| {
        seen.iter().filter(|sighting| sighting.begin() >= from && sighting.begin() <= to).count() as u64
    };
    let count = |point: &PointConnections<'_>, flow, from: &SeenExchange, to: &SeenExchange| {
        point.sightings.flows.get(&flow).map_or(0, |flow| between(&flow.seen, from.begin(), to.begin()))
    };
    let pairs = connection.pairs.len() as u64;
    segment.only_from += count(near, connection.near, &first.0, &last.0).saturating_sub(pairs);
    segment.only_to += count(far, connection.far, &first.1, &last.1).saturating_sub(pairs);
}

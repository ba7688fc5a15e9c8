//! Times and losses between capture points.

use super::clock::{ClockDifference, JITTER};
use super::pairing::{PairedConnection, PairedPoints, PointSightings, SeenExchange};
use crate::summary::{DurationStatistics, Summary, SummaryPrecision};
use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, ConnectionSummary, DirectionCounts, FlowId, Nanos, PacketRef, Timestamp};
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
    /// Time of the last packet of each request between the points beyond the shortest in this direction: queues.
    /// Exchanges with retransmissions don't count, unless nearly all have some.
    pub queued_to_server: DurationStatistics,
    /// Time of the last packet of each response beyond the shortest on the way to the client.
    pub queued_to_client: DurationStatistics,
    /// Data segments that passed the first point towards the server and did not reach the other, while both captured:
    /// the first point saw them again, the other one did not. Null if a device in between ends TCP.
    pub lost_to_server: Option<u64>,
    /// The same on the way to the client.
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
    /// Time from the last packet of the request to the first one of the response at the point nearer to the server.
    pub beyond: DurationStatistics,
    /// Time between the points, there and back: the last packet of the request, and the first one of the response.
    pub path: DurationStatistics,
    /// The rest of the response time: from the first packet to the last of request and response at the point nearer to
    /// the client.
    pub transfer: DurationStatistics,
}

struct GroupTally {
    response_time: Summary,
    beyond: Summary,
    path: Summary,
    transfer: Summary,
}

impl Default for GroupTally {
    fn default() -> GroupTally {
        let summary = || Summary::new(SummaryPrecision::ROW);
        GroupTally { response_time: summary(), beyond: summary(), path: summary(), transfer: summary() }
    }
}

/// Returns the time of one exchange between two points, there and back, without the transfer of its data.
pub(super) fn path(clock: &ClockDifference, near: &SeenExchange, far: &SeenExchange) -> Nanos {
    let beyond = clock.far_duration(near.begin(), far.service_time());
    Nanos((near.service_time() - beyond).0.max(0))
}

/// Returns the time beyond the shortest that the end of a request and of its response passed between the points. `None`
/// if a clock stepped in between.
fn queued(clock: &ClockDifference, near: &SeenExchange, far: &SeenExchange) -> Option<[Nanos; 2]> {
    let line = clock.piece_at(near.begin());
    let (offset, shortest) = (line.offset_at(near.begin()), line.shortest_way());
    let there = (far.request_end() - near.request_end()).0.saturating_sub(offset);
    let back = (near.end() - far.end()).0.saturating_add(offset);
    let beyond = [there, back].map(|way| way.saturating_sub(shortest));
    beyond.iter().all(|time| *time >= -JITTER).then_some(beyond.map(|time| Nanos(time.max(0))))
}

impl PairedPoints {
    /// Returns the time that each exchange passed between the near point and the server, without the server's own, with
    /// its connection and the first packet of its request at the near point.
    fn trips(&self) -> impl Iterator<Item = (FlowId, PacketRef, Nanos)> {
        let trip = |near: &SeenExchange, far: &SeenExchange| {
            Nanos(path(&self.clock, near, far).0.saturating_add(far.round_trip.unwrap_or_default().0))
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
        [segment.queued_to_server, segment.queued_to_client] = self.queues();
        let common = CommonTime::new(&self.clock, near, far);
        for connection in &self.connections {
            segment.rewritten += u64::from(!connection.same_addresses);
            add_unpaired(&mut segment, connection, near, far);
            let summaries = (near.connections.get(&connection.near), far.connections.get(&connection.far));
            let (Some(one), Some(other)) = summaries else { continue };
            add_packets(&mut segment, connection, (near, one), (far, other));
            match is_terminated(&self.clock, connection, one, other) {
                true => segment.terminated += 1,
                false => common.add_losses(&mut segment, one, other),
            }
        }
        segment
    }

    fn add_times(&self, segment: &mut PathSegment) {
        let mut groups: BTreeMap<CommandGroup, GroupTally> = BTreeMap::new();
        for (near, far) in self.pairs() {
            let tally = groups.entry(near.group).or_default();
            tally.response_time.record(near.response_time());
            tally.beyond.record(self.clock.far_duration(near.begin(), far.service_time()).max(Nanos(0)));
            tally.path.record(path(&self.clock, near, far));
            tally.transfer.record((near.response_time() - near.service_time()).max(Nanos(0)));
        }
        segment.groups = groups
            .into_iter()
            .map(|(group, tally)| GroupPath {
                group,
                response_time: tally.response_time.figures(),
                beyond: tally.beyond.figures(),
                path: tally.path.figures(),
                transfer: tally.transfer.figures(),
            })
            .collect();
        segment.round_trip_ns = segment.groups.iter().filter_map(|group| group.path.min).min().unwrap_or_default();
        segment.groups.sort_by_key(|group| std::cmp::Reverse(group.response_time.sum_ns));
    }

    /// Returns the time in queues towards the server and the client.
    fn queues(&self) -> [DurationStatistics; 2] {
        let unharmed = self.pairs().filter(|(near, far)| !near.is_resent && !far.is_resent).count();
        let all_count = unharmed < self.pairs().count() / UNHARMED_SHARE;
        let counted = self.pairs().filter(|(near, far)| all_count || !near.is_resent && !far.is_resent);
        let mut summaries = [Summary::new(SummaryPrecision::ROW), Summary::new(SummaryPrecision::ROW)];
        for times in counted.filter_map(|(near, far)| queued(&self.clock, near, far)) {
            summaries.iter_mut().zip(times).for_each(|(summary, time)| summary.record(time));
        }
        summaries.map(|summary| summary.figures())
    }
}

/// If fewer than one exchange in this many had no retransmission, all count for the queues.
const UNHARMED_SHARE: usize = 10;

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

/// A device in between acknowledges if acknowledgments take less than this percentage of the shortest time between the
/// points. It is near one of them, or at half of the way.
const TERMINATED_PERCENT: i64 = 75;
/// Percentage if the capture lacks the beginning of the connection, which shows if both points saw one TCP connection.
const TERMINATED_MIDSTREAM_PERCENT: i64 = 50;
const TERMINATED_LEAST: Nanos = Nanos(200_000);

/// Adds the data packets of a connection, each direction at the point of its sender.
fn add_packets(
    segment: &mut PathSegment,
    connection: &PairedConnection,
    (near, one): (&PointConnections<'_>, &ConnectionSummary),
    (far, other): (&PointConnections<'_>, &ConnectionSummary),
) {
    // The part of the connection that both points saw has about this part of its packets.
    let common = |counts: &DirectionCounts, point: &PointConnections<'_>, flow: FlowId| {
        let packets = counts.packets.saturating_sub(counts.pure_acks);
        let all = point.sightings.flows.get(&flow).map_or(0, |flow| flow.seen.len());
        (u128::from(packets) * connection.pairs.len() as u128).div_ceil(all.max(1) as u128) as u64
    };
    segment.packets_to_server += common(&one.to_server, near, connection.near);
    segment.packets_to_client += common(&other.to_client, far, connection.far);
}

/// Returns true if a device in between acknowledges: the server is further away from the near point, or the client from
/// the far one, than their acknowledgments.
fn is_terminated(
    clock: &ClockDifference,
    connection: &PairedConnection,
    near: &ConnectionSummary,
    far: &ConnectionSummary,
) -> bool {
    let known = near.initial_sequences.iter().zip(&far.initial_sequences).filter_map(|(one, other)| one.zip(*other));
    let same = known.map(|(one, other)| one == other).collect::<Vec<bool>>();
    if same.contains(&true) {
        return false;
    }
    let percent = if same.is_empty() { TERMINATED_MIDSTREAM_PERCENT } else { TERMINATED_PERCENT };
    let trip = connection.pairs.iter().map(|(near, far)| path(clock, near, far)).min().unwrap_or_default();
    let is_too_fast =
        |acknowledged: Nanos| acknowledged.0 < trip.0 / 100 * percent && trip.0 - acknowledged.0 > TERMINATED_LEAST.0;
    [near.server_round_trip, far.client_round_trip].into_iter().flatten().any(is_too_fast)
}

/// The time in which both points captured, by the near clock.
struct CommonTime<'a> {
    clock: &'a ClockDifference,
    from: Timestamp,
    to: Timestamp,
}

impl<'a> CommonTime<'a> {
    fn new(clock: &'a ClockDifference, near: &PointConnections<'_>, far: &PointConnections<'_>) -> CommonTime<'a> {
        let first = |point: &PointConnections<'_>| point.connections.values().map(|flow| flow.first).min();
        let last = |point: &PointConnections<'_>| point.connections.values().map(|flow| flow.last).max();
        let far_time = |time: Option<Timestamp>| time.map(|time| clock.near_time(time));
        let from = first(near).max(far_time(first(far))).unwrap_or_default();
        let to = last(near).into_iter().chain(far_time(last(far))).min().unwrap_or_default();
        CommonTime { clock, from, to }
    }

    /// Adds the segments lost between the points. What passed the sender's point again, and the receiver's only once,
    /// was lost on the way.
    fn add_losses(&self, segment: &mut PathSegment, near: &ConnectionSummary, far: &ConnectionSummary) {
        let is_common = |time: &Timestamp| (self.from..=self.to).contains(time);
        let [near_to_server, near_to_client] =
            near.resent_at.each_ref().map(|times| times.iter().filter(|time| is_common(time)).count() as u64);
        let [far_to_server, far_to_client] = far
            .resent_at
            .each_ref()
            .map(|times| times.iter().filter(|time| is_common(&self.clock.near_time(**time))).count() as u64);
        *segment.lost_to_server.get_or_insert_default() += near_to_server.saturating_sub(far_to_server);
        *segment.lost_to_client.get_or_insert_default() += far_to_client.saturating_sub(near_to_client);
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

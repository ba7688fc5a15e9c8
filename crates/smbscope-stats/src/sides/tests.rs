use super::*;
use proptest::prelude::*;
use smbscope_model::{
    CaptureId, Command, CommandGroup, ConnectionSummary, Endpoints, Exchange, ExchangeOutcome, FlowId, Half, Nanos,
    PacketRef, Stamp, Timestamp,
};
use smbscope_wire::smb2::Smb2Command;
use std::hash::{DefaultHasher, Hash, Hasher};

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;

/// Way between two points, and the clock of the far one.
#[derive(Debug, Clone, Copy)]
struct Way {
    there: i64,
    back: i64,
    offset: i64,
    drift_ppm: f64,
}

impl Way {
    fn far_clock(&self, time: i64) -> i64 {
        time + self.offset + (time as f64 * self.drift_ppm / 1e6) as i64
    }
}

fn ends(port: u16) -> Endpoints {
    Endpoints {
        client: std::net::SocketAddr::from(([10, 0, 0, 1], port)),
        server: std::net::SocketAddr::from(([10, 0, 0, 2], 445)),
    }
}

fn exchange(flow: u64, port: u16, id: Option<u64>, bytes: u64, begin: i64, end: i64) -> Exchange {
    let command = if id.is_some() { Command::Smb2(Smb2Command::CREATE) } else { Command::EncryptedFrame };
    let mut exchange = Exchange::new(FlowId(flow), ends(port), command, CommandGroup::OpenClose);
    let stamp = |time: i64| {
        let packet = PacketRef::new(CaptureId(0), time.unsigned_abs() / 1_000);
        Some(Stamp { time: Timestamp(time), packet })
    };
    exchange.message_id = id;
    exchange.session_id = id.map(|_| 77);
    exchange.request = Half { first: stamp(begin), last: stamp(begin), packets: 1, bytes };
    exchange.response = Half { first: stamp(end), last: stamp(end), packets: 1, bytes: 100 };
    exchange.outcome = ExchangeOutcome::Complete;
    exchange
}

/// One of 17 sizes without a pattern.
fn size(n: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    n.hash(&mut hasher);
    hasher.finish() % 17
}

/// Exchanges of one connection at both points: `served` at the server, every 5 ms beyond the way.
fn both(way: Way, count: u64, served: i64, id: impl Fn(u64) -> Option<u64>) -> (PointSightings, PointSightings) {
    both_of_size(way, count, served, id, |n| 100 + size(n))
}

fn both_of_size(
    way: Way,
    count: u64,
    served: i64,
    id: impl Fn(u64) -> Option<u64>,
    size: impl Fn(u64) -> u64,
) -> (PointSightings, PointSightings) {
    let (mut near, mut far) = (PointSightings::default(), PointSightings::default());
    let mut time = 1_000 * S;
    for n in 0..count {
        let bytes = size(n);
        let arrives = time + way.there;
        let leaves = arrives + served + (n % 3) as i64 * MS / 10;
        near.record(&exchange(1, 50_000, id(n), bytes, time, leaves + way.back));
        far.record(&exchange(9, 50_000, id(n), bytes, way.far_clock(arrives), way.far_clock(leaves)));
        time = leaves + way.back + 5 * MS;
    }
    near.finish(&[]);
    far.finish(&[]);
    (near, far)
}

fn check(way: Way, (near, far): &(PointSightings, PointSightings), count: u64, served: i64) -> PathSegment {
    let paired = PairedPoints::find(near, far).expect("common traffic");
    assert_eq!(PairedPoints::is_nearer(near, far, 10), Some(true));
    assert_eq!(PairedPoints::is_nearer(far, near, 10), Some(false));
    let point = |name, sightings| PointConnections::new(name, sightings, &[]);
    let segment = paired.segment(&point("client", near), &point("server", far));
    assert_eq!((segment.pairs, segment.connections, segment.only_from, segment.only_to), (count, 1, 0, 0));
    let (group, trip) = (&segment.groups[0], way.there + way.back);
    let mean = |figures: &crate::DurationStatistics| figures.mean.expect("values").0;
    assert!((mean(&group.path) - trip).abs() < 2_000, "{way:?}: {:?}", group.path);
    assert!((mean(&group.beyond) - served).abs() < MS / 5, "{:?}", group.beyond);
    assert!((segment.round_trip_ns.0 - trip).abs() < 2_000, "{:?}", segment.round_trip_ns);
    let off = (segment.clock.offset_ns.0 - (way.far_clock(1_000 * S) - 1_000 * S)).abs();
    assert!(off <= segment.clock.uncertainty_ns.0 + 2_000, "{way:?}: {:?}", segment.clock);
    segment
}

#[test]
fn times_on_the_way_are_exact_whatever_the_clocks_show() {
    let even = Way { there: MS, back: MS, offset: 0, drift_ppm: 0.0 };
    for (offset, drift_ppm) in [(37 * S, 0.0), (-3 * 3_600 * S, 0.0), (4 * MS, 80.0), (0, -80.0)] {
        let way = Way { offset, drift_ppm, ..even };
        let segment = check(way, &both(way, 2_000, 3 * MS, Some), 2_000, 3 * MS);
        assert!((segment.clock.drift_ppm - drift_ppm).abs() < 1.0, "{drift_ppm}: {:?}", segment.clock);
        assert_eq!(segment.clock.steps, 0);
    }
}

#[test]
fn an_asymmetric_way_is_within_the_uncertainty() {
    // 2 ms there and 30 ms back: the sum is exact, the offset is off by 14 ms, of at most 16.
    let way = Way { there: 2 * MS, back: 30 * MS, offset: 5 * S, drift_ppm: 0.0 };
    let segment = check(way, &both(way, 300, MS, Some), 300, MS);
    assert!((segment.clock.uncertainty_ns.0 - 16 * MS).abs() < 10_000, "{:?}", segment.clock);
}

#[test]
fn reused_ids_and_encrypted_frames_are_paired_by_their_neighbours_and_time() {
    let way = Way { there: 4 * MS, back: 4 * MS, offset: -20 * S, drift_ppm: 10.0 };
    check(way, &both(way, 500, 2 * MS, |n| Some(n % 4)), 500, 2 * MS);
    check(way, &both(way, 500, 2 * MS, |_| None), 500, 2 * MS);
}

#[test]
fn other_addresses_are_found_by_content_and_other_traffic_is_not() {
    let way = Way { there: MS, back: MS, offset: 0, drift_ppm: 0.0 };
    let (near, _) = both(way, 100, MS, Some);
    let mut far = PointSightings::default();
    let mut foreign = PointSightings::default();
    for n in 0..100 {
        let begin = 1_001 * S + n as i64 * 9 * MS;
        far.record(&exchange(3, 61_000, Some(n), 100 + size(n), begin, begin + MS));
        foreign.record(&exchange(3, 50_000, Some(n + 1_000), 100 + size(n), begin, begin + MS));
    }
    far.finish(&[]);
    foreign.finish(&[]);
    let paired = PairedPoints::find(&near, &far).expect("the same content");
    assert!(!paired.connections[0].same_addresses);
    assert!(PairedPoints::find(&near, &foreign).is_none());
}

#[test]
fn a_step_of_a_clock_divides_the_captures() {
    let way = Way { there: MS, back: MS, offset: 0, drift_ppm: 0.0 };
    let (near, before) = both(way, 1_000, MS, Some);
    let (_, after) = both(Way { offset: -40 * MS, ..way }, 1_000, MS, Some);
    let mut far = PointSightings::default();
    let [before, after] = [before, after].map(|point| point.flows.into_values().next().expect("one connection"));
    let seen = before.seen[..500].iter().chain(&after.seen[500..]).copied().collect();
    far.flows.insert(FlowId(9), pairing::FlowSightings { endpoints: before.endpoints, seen });
    let paired = PairedPoints::find(&near, &far).expect("common traffic");
    assert_eq!(paired.clock.steps, 1, "{:?}", paired.clock);
    assert!(paired.pairs().count() >= 980, "{}", paired.pairs().count());
    let paths: Vec<i64> = paired.pairs().map(|(near, far)| figures::path(&paired.clock, near, far).0).collect();
    assert!(paths.iter().all(|path| (path - 2 * MS).abs() < 1_000), "{paths:?}");
}

#[test]
fn losses_are_retransmissions_that_one_point_saw_twice_while_both_captured() {
    let way = Way { there: 2 * MS, back: 30 * MS, offset: 37 * S, drift_ppm: 0.0 };
    let (near, mut far) = both(way, 400, MS, Some);
    let times = |flow: &pairing::FlowSightings| (flow.seen[0].begin(), flow.seen[flow.seen.len() - 1].end());
    // The far point captures from the 100th exchange on.
    far.flows.values_mut().for_each(|flow| _ = flow.seen.drain(..100));
    let summary = |flow: FlowId, seen: &pairing::FlowSightings, resent_at: [Vec<Timestamp>; 2]| {
        let (first, last) = times(seen);
        let mut summary = ConnectionSummary { last, resent_at, ..ConnectionSummary::new(flow, seen.endpoints, first) };
        (summary.to_server.packets, summary.to_client.packets) = (seen.seen.len() as u64, seen.seen.len() as u64);
        summary
    };
    let (here, there) = (&near.flows[&FlowId(1)], &far.flows[&FlowId(9)]);
    let at = |seen: &pairing::FlowSightings, places: &[usize]| -> Vec<Timestamp> {
        places.iter().map(|place| seen.seen[*place].begin()).collect()
    };
    // Towards the server: two before the far point captured, three lost between the points, one lost beyond both.
    let one = summary(FlowId(1), here, [at(here, &[10, 20, 150, 200, 250, 300]), at(here, &[350])]);
    // Towards the client: two lost between the points, one beyond both.
    let other = summary(FlowId(9), there, [at(there, &[200]), at(there, &[5, 50, 250])]);
    let paired = PairedPoints::find(&near, &far).expect("common traffic");
    let segment = paired.segment(
        &PointConnections::new("client", &near, std::slice::from_ref(&one)),
        &PointConnections::new("server", &far, std::slice::from_ref(&other)),
    );
    assert_eq!((segment.lost_to_server, segment.lost_to_client), (Some(3), Some(2)));
    assert_eq!((segment.packets_to_server, segment.packets_to_client), (300, 300));
}

#[test]
fn a_proxy_is_recognised_by_fast_acknowledgments_at_either_point() {
    let way = Way { there: 8 * MS, back: 8 * MS, offset: 0, drift_ppm: 0.0 };
    let (near, far) = both(way, 100, MS, Some);
    let terminated = |server: i64, client: i64, initial: [u32; 2]| {
        let summary = |flow, server, client, initial: u32| ConnectionSummary {
            server_round_trip: Some(Nanos(server)),
            client_round_trip: Some(Nanos(client)),
            initial_sequences: [Some(initial), Some(initial)],
            ..ConnectionSummary::new(FlowId(flow), ends(50_000), Timestamp(0))
        };
        let (one, other) = (summary(1, server, 0, initial[0]), summary(9, 0, client, initial[1]));
        let point = |name, seen, flow| PointConnections::new(name, seen, std::slice::from_ref(flow));
        let paired = PairedPoints::find(&near, &far).expect("common traffic");
        paired.segment(&point("client", &near, &one), &point("server", &far, &other)).terminated
    };
    assert_eq!(terminated(16 * MS, 16 * MS, [1, 2]), 0);
    // Near the client, near the server, and in the middle.
    assert_eq!(
        [(MS / 10, 16 * MS), (16 * MS, MS / 10), (8 * MS, 8 * MS)].map(|(s, c)| terminated(s, c, [1, 2])),
        [1; 3]
    );
    // A queue delays data, not the acknowledgments before it: both points saw the same TCP connection.
    assert_eq!(terminated(MS, MS, [1, 1]), 0);
}

#[test]
fn transfers_and_queues_are_not_the_time_of_the_server() {
    let (mut near, mut far) = (PointSightings::default(), PointSightings::default());
    for n in 0..100 {
        // 1 ms each way; the server needs 3 ms and sends for 20 ms; the end of every other response queues for 10 ms.
        let (begin, queue) = (1_000 * S + n as i64 * 50 * MS, (n % 2) as i64 * 10 * MS);
        let stamp = |time| Some(Stamp { time: Timestamp(time), packet: PacketRef::new(CaptureId(0), n) });
        let sent = |point: &mut PointSightings, flow, begin, first, last| {
            let mut seen = exchange(flow, 50_000, Some(n), 100, begin, last);
            seen.response.first = stamp(first);
            point.record(&seen);
        };
        sent(&mut far, 9, begin + MS, begin + 4 * MS, begin + 24 * MS);
        sent(&mut near, 1, begin, begin + 5 * MS, begin + 25 * MS + queue);
    }
    near.finish(&[]);
    far.finish(&[]);
    let point = |name, sightings| PointConnections::new(name, sightings, &[]);
    let paired = PairedPoints::find(&near, &far).expect("common traffic");
    let segment = paired.segment(&point("client", &near), &point("server", &far));
    let mean = |figures: &crate::DurationStatistics| figures.mean;
    let [group] = &segment.groups[..] else { panic!("{:?}", segment.groups) };
    assert_eq!(
        [&group.response_time, &group.path, &group.beyond, &group.transfer].map(mean),
        [30, 2, 3, 25].map(|ms| Some(Nanos(ms * MS)))
    );
    assert_eq!(mean(&segment.queued_to_server), Some(Nanos(0)));
    assert_eq!(mean(&segment.queued_to_client), Some(Nanos(5 * MS)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Random ways, clocks, losses at either point and a late begin: each pair has the same number.
    #[test]
    fn no_pair_is_wrong(
        there in 0..20 * MS, back in 0..20 * MS, offset in -10_000 * S..10_000 * S, drift in -100.0..100.0_f64,
        served in 0..10 * MS, kept in prop::collection::vec((0..20_u8, 0..20_u8), 400), late in 0..300_usize, reuse in 2..500_u64,
    ) {
        let way = Way { there, back, offset, drift_ppm: drift };
        let (mut near, mut far) = both(way, 400, served, |n| Some(n % reuse));
        let numbers = harm(&mut near, &mut far, &kept, late);
        if let Some(paired) = PairedPoints::find(&near, &far) {
            for (one, other) in paired.pairs() {
                prop_assert_eq!(numbers.0[&one.packet], numbers.1[&other.packet]);
            }
        }
    }

    /// Periodic traffic, in which only losses distinguish one period from another: certain, or not paired.
    #[test]
    fn periodic_traffic_is_not_paired_by_chance(
        there in 0..20 * MS, back in 0..20 * MS, served in 0..10 * MS, reuse in 2..40_u64,
        kept in prop::collection::vec((0..60_u8, 0..60_u8), 400), late in 0..100_usize,
    ) {
        let way = Way { there, back, offset: -3 * S, drift_ppm: 20.0 };
        let (mut near, mut far) = both_of_size(way, 400, served, |n| Some(n % (3 * reuse)), |_| 100);
        let numbers = harm(&mut near, &mut far, &kept, late);
        if let Some(paired) = PairedPoints::find(&near, &far) {
            for (one, other) in paired.pairs() {
                prop_assert_eq!(numbers.0[&one.packet], numbers.1[&other.packet]);
            }
        }
    }
}

/// Numbers of exchanges by packet.
type Numbers = std::collections::HashMap<PacketRef, usize>;

/// Loses exchanges at either point, and the first ones at the far one. Returns their numbers before that.
fn harm(near: &mut PointSightings, far: &mut PointSightings, kept: &[(u8, u8)], late: usize) -> (Numbers, Numbers) {
    let number = |seen: &[SeenExchange]| -> Numbers {
        seen.iter().enumerate().map(|(n, sighting)| (sighting.packet, n)).collect()
    };
    let numbers = (number(&near.flows[&FlowId(1)].seen), number(&far.flows[&FlowId(9)].seen));
    let mut dice = kept.iter();
    near.flows.values_mut().for_each(|flow| flow.seen.retain(|_| dice.next().is_some_and(|(one, _)| *one > 0)));
    let mut dice = kept.iter();
    far.flows.values_mut().for_each(|flow| {
        flow.seen.retain(|_| dice.next().is_some_and(|(_, other)| *other > 0));
        flow.seen.drain(..late.min(flow.seen.len()));
    });
    numbers
}

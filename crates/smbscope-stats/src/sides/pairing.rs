//! Exchanges as one capture point saw them, and the same connections and exchanges at two points.
//!
//! Exchanges whose content occurs once at either point are anchors; if content repeats (SMB1 reuses multiplex ids,
//! encrypted frames have none), a run of three neighbours is compared instead. Connections with common anchors are the
//! same, whatever their addresses. If an exchange is missing at one point, its content may occur once for two different
//! ones; such anchors contradict the clock of the others and are dropped. The rest give the difference of the clocks,
//! and with it all exchanges find each other: at the far point, an exchange lies within its time at the near one.

use super::clock::{ClockBounds, ClockDifference, ClockPiece};
use smbscope_model::{ClockStep, CommandGroup, Endpoints, Exchange, FlowId, Nanos, PacketRef, Timestamp};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
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

/// Anchors that make two connections the same. In periodic traffic with losses, a single one may be a coincidence.
const ANCHORS_LEAST: usize = 3;

/// Fewer anchors may agree by chance in repeating traffic, and up to the second number if others contradict them.
const ANCHORS_FEW: usize = 8;
const ANCHORS_CERTAIN: usize = 32;

/// Anchors that are compared with each other.
const NEIGHBOURS: usize = 32;

/// Largest drift between anchors, in nanoseconds per nanosecond.
const DRIFT: f64 = 2e-4;

/// Clock resolution and delays of capturing that may make an exchange appear longer at the far point.
const TOLERANCE: i64 = 50_000;

/// A connection that both points saw, with its exchanges in the order of the near point.
#[derive(Debug, Clone)]
pub struct PairedConnection {
    pub near: FlowId,
    pub far: FlowId,
    /// False if a device in between rewrote an address or port, or opened a connection of its own.
    pub same_addresses: bool,
    /// The exchange at the near and at the far point.
    pub pairs: Vec<(SeenExchange, SeenExchange)>,
}

/// Two points that saw the same traffic.
#[derive(Debug, Clone)]
pub struct PairedPoints {
    pub connections: Vec<PairedConnection>,
    pub clock: ClockDifference,
}

impl PairedPoints {
    /// Returns true if the first point is nearer to the client: most exchanges take longer there. `None` if fewer than
    /// `least` exchanges are certainly the same.
    pub fn is_nearer(one: &PointSightings, other: &PointSightings, least: usize) -> Option<bool> {
        let anchored = connections(one, other);
        let anchors = || anchored.iter().flat_map(|connection| &connection.pairs);
        let longer = anchors().filter(|(one, other)| one.response_time() >= other.response_time()).count();
        (anchors().count() >= least).then(|| 2 * longer >= anchors().count())
    }

    /// Pairs the exchanges of two points; the first is nearer to the client. `None` if they have no traffic in
    /// common.
    pub fn find(near: &PointSightings, far: &PointSightings) -> Option<PairedPoints> {
        let anchored = connections(near, far);
        let anchors: Vec<(SeenExchange, SeenExchange)> =
            anchored.iter().flat_map(|connection| connection.pairs.iter().copied()).collect();
        let fit = |pairs: &[(SeenExchange, SeenExchange)]| ClockDifference::fit(&bounds_in_epochs(pairs, near, far));
        let clock = fit(&anchors)?;
        let connections: Vec<PairedConnection> = anchored
            .into_iter()
            .map(|connection| completed(connection, near, far, &clock))
            .filter(|connection| !connection.pairs.is_empty())
            .collect();
        let all: Vec<(SeenExchange, SeenExchange)> =
            connections.iter().flat_map(|connection| connection.pairs.iter().copied()).collect();
        Some(PairedPoints { clock: fit(&all)?, connections })
    }

    pub fn pairs(&self) -> impl Iterator<Item = &(SeenExchange, SeenExchange)> {
        self.connections.iter().flat_map(|connection| &connection.pairs)
    }
}

/// Returns the bounds that an exchange puts on the difference of the clocks.
fn bounds_of((near, far): &(SeenExchange, SeenExchange)) -> ClockBounds {
    let (least, most) = ((far.end() - near.end()).0, (far.begin() - near.begin()).0);
    ClockBounds { at: near.begin(), least, most, epoch: 0 }
}

/// Returns the bounds of exchanges by time, divided where a capture itself shows that its clock stepped.
fn bounds_in_epochs(
    pairs: &[(SeenExchange, SeenExchange)],
    near: &PointSightings,
    far: &PointSightings,
) -> Vec<ClockBounds> {
    let bound = |pair: &(SeenExchange, SeenExchange)| ClockBounds {
        epoch: near.epoch(&pair.0) + far.epoch(&pair.1),
        ..bounds_of(pair)
    };
    let mut bounds: Vec<ClockBounds> = pairs.iter().map(bound).collect();
    bounds.sort_by_key(|bound| (bound.epoch, bound.at));
    bounds
}

/// An exchange by its place at a point: connection, and index in its list.
type Place = (FlowId, usize);

/// A connection at the near point, and one at the far point.
type Flows = (FlowId, FlowId);

/// A connection of a point.
type Listed<'a> = (FlowId, &'a FlowSightings);

/// Finds connections with common anchors, which are their pairs so far.
fn connections(near: &PointSightings, far: &PointSightings) -> Vec<PairedConnection> {
    let mut common: HashMap<Flows, Vec<(usize, usize)>> = HashMap::new();
    let mut add = |here: &[Listed<'_>], there: &[Listed<'_>]| {
        for key in [content as fn(&[SeenExchange], usize) -> Option<u64>, run] {
            let theirs = single(there, key);
            for (key, (flow, index)) in single(here, key) {
                if let Some((other, place)) = theirs.get(&key) {
                    common.entry((flow, *other)).or_default().push((index, *place));
                }
            }
        }
    };
    let (here, there) = (near.listed(), far.listed());
    add(&here, &there);
    // Clients that do the same have the same content, so it need occur only once on connections with these
    // addresses.
    let mut by_addresses: HashMap<Endpoints, Vec<Listed<'_>>> = HashMap::new();
    there.iter().for_each(|other| by_addresses.entry(other.1.endpoints).or_default().push(*other));
    for one in &here {
        by_addresses.get(&one.1.endpoints).into_iter().for_each(|others| add(&[*one], others));
    }
    let same_addresses = |(one, other): &Flows| near.flows[one].endpoints == far.flows[other].endpoints;
    let mut candidates: Vec<(Flows, Vec<(usize, usize)>)> = common.into_iter().collect();
    candidates.sort_by_key(|(flows, anchors)| (Reverse(anchors.len()), Reverse(same_addresses(flows)), *flows));
    let (mut taken_here, mut taken_there) = (HashSet::new(), HashSet::new());
    let mut paired = Vec::new();
    for (flows, mut anchors) in candidates {
        anchors.sort_unstable();
        anchors.dedup();
        let same_addresses = same_addresses(&flows);
        let (one, other) = flows;
        let (here, there) = (&near.flows[&one].seen, &far.flows[&other].seen);
        let shorter = here.len().min(there.len());
        // Short connections with the same addresses may have fewer.
        let is_sure = |anchors: usize| anchors >= ANCHORS_LEAST || same_addresses && anchors * 2 >= shorter;
        if !is_sure(anchors.len()) || taken_here.contains(&one) || taken_there.contains(&other) {
            continue;
        }
        let pairs = anchors.iter().map(|(index, place)| (here[*index], there[*place])).collect();
        let repeats = repeats(here);
        let pairs = agreeing(pairs, !repeats);
        if pairs.is_empty() || !is_sure(pairs.len()) || repeats && is_by_chance(anchors.len(), pairs.len()) {
            continue;
        }
        taken_here.insert(one);
        taken_there.insert(other);
        paired.push(PairedConnection { near: one, far: other, same_addresses, pairs });
    }
    paired.sort_by_key(|connection| connection.near);
    paired
}

/// Returns true if most exchanges have the content of another one.
fn repeats(seen: &[SeenExchange]) -> bool {
    let distinct: HashSet<u64> = seen.iter().map(|sighting| sighting.content).collect();
    distinct.len() * 2 < seen.len()
}

/// Returns true if the anchors in repeating traffic may agree by chance: losses make content occur once that repeats.
fn is_by_chance(anchors: usize, agreeing: usize) -> bool {
    agreeing < ANCHORS_FEW || agreeing < ANCHORS_CERTAIN && agreeing * 10 < anchors * 9
}

/// Returns the exchanges whose key occurs once on these connections.
fn single(flows: &[Listed<'_>], key: fn(&[SeenExchange], usize) -> Option<u64>) -> HashMap<u64, Place> {
    let mut places: HashMap<u64, Option<Place>> = HashMap::new();
    for (flow, FlowSightings { seen, .. }) in flows {
        for index in 0..seen.len() {
            if let Some(key) = key(seen, index) {
                places.entry(key).and_modify(|place| *place = None).or_insert(Some((*flow, index)));
            }
        }
    }
    places.into_iter().filter_map(|(key, place)| place.map(|place| (key, place))).collect()
}

fn content(seen: &[SeenExchange], index: usize) -> Option<u64> {
    Some(seen[index].content)
}

/// Returns a hash of an exchange and its neighbours, if they follow one another without overlap.
fn run(seen: &[SeenExchange], index: usize) -> Option<u64> {
    let run = seen.get(index.checked_sub(1)?..index + 2)?;
    if run.windows(2).any(|pair| pair[0].end() > pair[1].begin()) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    run.iter().for_each(|sighting| sighting.content.hash(&mut hasher));
    Some(hasher.finish())
}

/// Returns the anchors that most of their neighbours agree with on the difference of the clocks, after Marzullo (1984).
/// Neighbours without a majority are all dropped, unless a clock may step, and a single step explains them.
fn agreeing(pairs: Vec<(SeenExchange, SeenExchange)>, may_step: bool) -> Vec<(SeenExchange, SeenExchange)> {
    let mut kept = Vec::new();
    for window in pairs.chunks(NEIGHBOURS) {
        let ranges = ranges(window);
        let agree = agreement(&ranges);
        let count = agree.iter().filter(|agrees| **agrees).count();
        let all_agree = |part: &[(i64, i64)]| agreement(part).iter().all(|agrees| *agrees);
        let stepped = || (1..ranges.len()).any(|at| all_agree(&ranges[..at]) && all_agree(&ranges[at..]));
        if count * 2 > window.len() {
            kept.extend(window.iter().zip(agree).filter(|(_, agrees)| *agrees).map(|(pair, _)| *pair));
        } else if may_step && stepped() {
            kept.extend_from_slice(window);
        }
    }
    kept
}

/// Returns the range of clock differences that each anchor allows. The anchors are in the order of the near point.
fn ranges(window: &[(SeenExchange, SeenExchange)]) -> Vec<(i64, i64)> {
    let (first, last) = (window[0].0.begin(), window[window.len() - 1].0.begin());
    let slack = TOLERANCE.saturating_add(((last - first).0 as f64 * DRIFT) as i64);
    // Either order of the points: whichever is nearer to the client has the longer time.
    let range = |bound: ClockBounds| {
        let (low, high) = (bound.least.min(bound.most), bound.least.max(bound.most));
        (low.saturating_sub(slack), high.saturating_add(slack))
    };
    window.iter().map(|pair| range(bounds_of(pair))).collect()
}

/// Returns for each range if it has a part of the range that most ranges have in common.
fn agreement(ranges: &[(i64, i64)]) -> Vec<bool> {
    let Some((least, most)) = common_range(ranges) else { return vec![false; ranges.len()] };
    ranges.iter().map(|(low, high)| *low <= most && *high >= least).collect()
}

/// Returns the range that lies within the largest number of ranges.
fn common_range(ranges: &[(i64, i64)]) -> Option<(i64, i64)> {
    let mut ends: Vec<(i64, bool)> = ranges.iter().flat_map(|(low, high)| [(*low, false), (*high, true)]).collect();
    ends.sort_unstable();
    let (mut open, mut most, mut best) = (0_usize, 0, None);
    for (at, (end, is_high)) in ends.iter().enumerate() {
        if *is_high {
            open -= 1;
            continue;
        }
        open += 1;
        if open > most {
            most = open;
            best = ends.get(at + 1).map(|(next, _)| (*end, *next));
        }
    }
    best
}

/// Pairs the remaining exchanges of a connection, if only one with the same content lies, at the far point, within the
/// time at the near one.
fn completed(
    connection: PairedConnection,
    near: &PointSightings,
    far: &PointSightings,
    clock: &ClockDifference,
) -> PairedConnection {
    let (here, there) = (&near.flows[&connection.near].seen, &far.flows[&connection.far].seen);
    let mut by_content: HashMap<u64, Vec<&SeenExchange>> = HashMap::new();
    there.iter().for_each(|sighting| by_content.entry(sighting.content).or_default().push(sighting));
    let mut claims: HashMap<*const SeenExchange, usize> = HashMap::new();
    let mut found: Vec<(SeenExchange, &SeenExchange)> = Vec::new();
    for sighting in here {
        let Some(candidates) = by_content.get(&sighting.content) else { continue };
        let mut within: Vec<&SeenExchange> =
            clock.pieces_at(sighting.begin()).flat_map(|piece| contained(sighting, candidates, piece)).collect();
        within.dedup_by_key(|candidate| std::ptr::from_ref(*candidate));
        if let [only] = within[..] {
            *claims.entry(std::ptr::from_ref(only)).or_default() += 1;
            found.push((*sighting, only));
        }
    }
    let is_single = |other: &&SeenExchange| claims.get(&std::ptr::from_ref(*other)) == Some(&1);
    let pairs =
        found.into_iter().filter(|(_, other)| is_single(other)).map(|(sighting, other)| (sighting, *other)).collect();
    PairedConnection { pairs, ..connection }
}

/// Returns the exchanges of the far point that lie within the time of one at the near point, two of them at most.
fn contained<'a>(near: &SeenExchange, candidates: &[&'a SeenExchange], clock: ClockPiece) -> Vec<&'a SeenExchange> {
    let offset = clock.offset_at(near.begin());
    // An exchange is on its way at least as long as the fastest anchors in either direction.
    let shortest = clock.shortest_way();
    let slack = TOLERANCE.saturating_add(shortest / 10);
    let earliest = near.begin().0.saturating_add(offset).saturating_add(shortest).saturating_sub(slack);
    let latest = near.end().0.saturating_add(offset).saturating_sub(shortest).saturating_add(slack);
    let from = candidates.partition_point(|candidate| candidate.begin().0 < earliest);
    let is_within = |candidate: &&&SeenExchange| {
        candidate.end().0 <= latest && candidate.response_time().0 <= near.response_time().0.saturating_add(TOLERANCE)
    };
    let begun = candidates[from..].iter().take_while(|candidate| candidate.begin().0 <= latest);
    begun.filter(is_within).take(2).copied().collect()
}

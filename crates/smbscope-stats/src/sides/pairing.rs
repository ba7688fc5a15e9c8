//! The same connections and exchanges at two capture points.
//!
//! Exchanges whose content occurs once at either point are anchors; if content repeats (SMB1 reuses multiplex ids,
//! encrypted frames have none), a run of three neighbours is compared instead. Connections with common anchors are the
//! same, whatever their addresses. The anchors give the difference of the clocks, and with it the remaining exchanges
//! find each other: at the far point, an exchange lies within its time at the near one.

use super::clock::{ClockBounds, ClockDifference};
use super::sightings::{FlowSightings, PointSightings, Sighting};
use smbscope_model::FlowId;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Anchors that make two connections with different addresses the same.
const ANCHORS_LEAST: usize = 3;

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
    pub pairs: Vec<(Sighting, Sighting)>,
}

/// Two points that saw the same traffic.
#[derive(Debug, Clone)]
pub struct PairedPoints {
    pub connections: Vec<PairedConnection>,
    pub clock: ClockDifference,
}

impl PairedPoints {
    /// Pairs the exchanges of two points. `None` if they have no traffic in common.
    pub fn find(near: &PointSightings, far: &PointSightings) -> Option<PairedPoints> {
        let anchored = connections(near, far);
        let anchors: Vec<(Sighting, Sighting)> =
            anchored.iter().flat_map(|connection| connection.pairs.iter().copied()).collect();
        let clock = ClockDifference::fit(&bounds(&anchors))?;
        let connections: Vec<PairedConnection> = anchored
            .into_iter()
            .map(|connection| completed(connection, near, far, &clock))
            .filter(|connection| !connection.pairs.is_empty())
            .collect();
        let all: Vec<(Sighting, Sighting)> =
            connections.iter().flat_map(|connection| connection.pairs.iter().copied()).collect();
        Some(PairedPoints { clock: ClockDifference::fit(&bounds(&all))?, connections })
    }

    pub fn pairs(&self) -> impl Iterator<Item = &(Sighting, Sighting)> {
        self.connections.iter().flat_map(|connection| &connection.pairs)
    }

    /// Returns true if most exchanges took longer at the first point, which is therefore nearer to the client.
    pub fn is_near_first(&self) -> bool {
        let (longer, all) = self.pairs().fold((0_u64, 0_u64), |(longer, all), (near, far)| {
            (longer + u64::from(near.response_time() >= far.response_time()), all + 1)
        });
        2 * longer >= all
    }
}

/// Returns the bounds that exchanges put on the difference of the clocks, sorted by time.
fn bounds(pairs: &[(Sighting, Sighting)]) -> Vec<ClockBounds> {
    let bound = |(near, far): &(Sighting, Sighting)| ClockBounds {
        at: near.begin(),
        least: (far.end() - near.end()).0,
        most: (far.begin() - near.begin()).0,
    };
    let mut bounds: Vec<ClockBounds> = pairs.iter().map(bound).collect();
    bounds.sort_by_key(|bound| bound.at);
    bounds
}

/// An exchange by its place at a point: connection, and index in its list.
type Place = (FlowId, usize);

/// A connection at the near point, and one at the far point.
type Flows = (FlowId, FlowId);

/// Finds connections with common anchors, which are their pairs so far.
fn connections(near: &PointSightings, far: &PointSightings) -> Vec<PairedConnection> {
    let mut common: HashMap<Flows, Vec<(usize, usize)>> = HashMap::new();
    let (here, there) = (single(near, content), single(far, content));
    let (here_runs, there_runs) = (single(near, run), single(far, run));
    for (mine, theirs) in [(here, there), (here_runs, there_runs)] {
        for (key, (flow, index)) in mine {
            if let Some((other, place)) = theirs.get(&key) {
                common.entry((flow, *other)).or_default().push((index, *place));
            }
        }
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
        let is_sure = same_addresses || anchors.len() >= ANCHORS_LEAST;
        if !is_sure || taken_here.contains(&one) || taken_there.contains(&other) {
            continue;
        }
        let pairs = in_order(&near.flows[&one], &far.flows[&other], &anchors);
        if pairs.is_empty() {
            continue;
        }
        taken_here.insert(one);
        taken_there.insert(other);
        paired.push(PairedConnection { near: one, far: other, same_addresses, pairs });
    }
    paired.sort_by_key(|connection| connection.near);
    paired
}

/// Returns the exchanges whose key occurs once at the point.
fn single(point: &PointSightings, key: fn(&[Sighting], usize) -> Option<u64>) -> HashMap<u64, Place> {
    let mut places: HashMap<u64, Option<Place>> = HashMap::new();
    for (flow, FlowSightings { seen, .. }) in &point.flows {
        for index in 0..seen.len() {
            if let Some(key) = key(seen, index) {
                places.entry(key).and_modify(|place| *place = None).or_insert(Some((*flow, index)));
            }
        }
    }
    places.into_iter().filter_map(|(key, place)| place.map(|place| (key, place))).collect()
}

fn content(seen: &[Sighting], index: usize) -> Option<u64> {
    Some(seen[index].content)
}

/// Returns a hash of an exchange and its neighbours, if they follow one another without overlap.
fn run(seen: &[Sighting], index: usize) -> Option<u64> {
    let run = seen.get(index.checked_sub(1)?..index + 2)?;
    if run.windows(2).any(|pair| pair[0].end() > pair[1].begin()) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    run.iter().for_each(|sighting| sighting.content.hash(&mut hasher));
    Some(hasher.finish())
}

/// Returns the anchors that follow the same order at both points, and agree on which point is nearer to the client.
fn in_order(near: &FlowSightings, far: &FlowSightings, anchors: &[(usize, usize)]) -> Vec<(Sighting, Sighting)> {
    let mut pairs: Vec<(Sighting, Sighting)> = Vec::new();
    let mut last = None;
    for (one, other) in anchors {
        if last.is_some_and(|last| *other <= last) {
            continue;
        }
        last = Some(*other);
        pairs.push((near.seen[*one], far.seen[*other]));
    }
    pairs
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
    let mut by_content: HashMap<u64, Vec<&Sighting>> = HashMap::new();
    there.iter().for_each(|sighting| by_content.entry(sighting.content).or_default().push(sighting));
    let mut claims: HashMap<*const Sighting, usize> = HashMap::new();
    let mut found: Vec<(Sighting, &Sighting)> = Vec::new();
    for sighting in here {
        let Some(candidates) = by_content.get(&sighting.content) else { continue };
        let offset = clock.at(sighting.begin()).0;
        let slack = clock.half_width_at(sighting.begin()).0.saturating_add(TOLERANCE);
        let earliest = sighting.begin().0.saturating_add(offset).saturating_sub(slack);
        let latest = sighting.end().0.saturating_add(offset).saturating_add(slack);
        let from = candidates.partition_point(|candidate| candidate.begin().0 < earliest);
        let mut within = candidates[from..].iter().take_while(|candidate| candidate.begin().0 <= latest).filter(|it| {
            it.end().0 <= latest && it.response_time().0 <= sighting.response_time().0.saturating_add(TOLERANCE)
        });
        if let (Some(only), None) = (within.next(), within.next()) {
            *claims.entry(std::ptr::from_ref(*only)).or_default() += 1;
            found.push((*sighting, only));
        }
    }
    let is_single = |other: &&Sighting| claims.get(&std::ptr::from_ref(*other)) == Some(&1);
    let pairs =
        found.into_iter().filter(|(_, other)| is_single(other)).map(|(sighting, other)| (sighting, *other)).collect();
    PairedConnection { pairs, ..connection }
}

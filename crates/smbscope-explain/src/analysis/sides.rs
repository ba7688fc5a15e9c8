//! Captures of the same traffic at several points, such as client and server.
//!
//! Each point is read on its own. If their exchanges pair, the report covers the point nearest to the client. The way
//! to the server, measured between the points, replaces the round trip that one point can see.

use super::{AnalysisError, AnalysisObserver, AnalysisOptions, AnalysisPass, FollowOptions, how};
use crate::options::NamedSide;
use smbscope_analyze::pipeline::{Sharding, Sink, Threading};
use smbscope_capture::reader::CaptureInput;
use smbscope_model::{ConnectionSummary, Exchange, FlowId, Nanos, PacketRef, Settled};
use smbscope_stats::sides::{CapturePoint, PairedPoints, PointConnections, PointSightings, SidesFigures};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Captures that are compared with each other without --sides. More are taken for a rotated set.
const POINTS_MAX: usize = 4;

/// Minimum number of common exchanges of captures at several points.
const PAIRS_LEAST: usize = 10;

/// Points nearer to each other than this are one place.
const WAY_LEAST: Nanos = Nanos(10_000);

/// The way of each exchange, measured between capture points.
#[derive(Debug)]
pub(super) struct MeasuredPaths {
    round_trips: HashMap<PacketRef, Nanos>,
    shortest: HashMap<FlowId, Nanos>,
    pub(super) figures: SidesFigures,
}

/// Captures of one point, and what they hold.
struct Point {
    name: String,
    inputs: Vec<CaptureInput>,
    sightings: PointSightings,
    connections: Vec<ConnectionSummary>,
}

impl Point {
    fn connections(&self) -> PointConnections<'_> {
        PointConnections::new(&self.name, &self.sightings, &self.connections)
    }

    fn described(&self) -> CapturePoint {
        CapturePoint {
            name: self.name.clone(),
            captures: self.inputs.iter().map(CaptureInput::name).collect(),
            connections: self.connections.len() as u64,
            exchanges: self.sightings.exchanges() as u64,
        }
    }
}

/// Returns the captures of the point nearest to the client, and the measured paths. `None` if the inputs are not of
/// several points.
pub(super) fn measured(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
    observer: &mut dyn AnalysisObserver,
) -> Result<Option<(Vec<CaptureInput>, MeasuredPaths)>, AnalysisError> {
    let is_named = !options.sides.is_empty();
    let named = match is_named {
        true => named_points(inputs, &options.sides)?,
        false if is_candidate(inputs) => inputs.iter().map(|input| (String::new(), vec![input.clone()])).collect(),
        false => return Ok(None),
    };
    let mut points = Vec::new();
    for (name, inputs) in named {
        points.push(seen(name, inputs, options, observer)?);
    }
    let Some(segments) = paired(&mut points) else {
        return match is_named {
            true => Err(AnalysisError::Sides(nothing_in_common(&points))),
            false => Ok(None),
        };
    };
    if !is_named && !segments.iter().any(are_apart) {
        return Ok(None);
    }
    name_by_order(&mut points);
    let paths = MeasuredPaths::new(&points, &segments);
    Ok(Some((points.swap_remove(0).inputs, paths)))
}

/// Returns true for a few captures that may be several points.
fn is_candidate(inputs: &[CaptureInput]) -> bool {
    (2..=POINTS_MAX).contains(&inputs.len()) && inputs.iter().all(CaptureInput::can_be_read_again)
}

/// Returns the captures of each point of --sides.
fn named_points(
    inputs: &[CaptureInput],
    sides: &[NamedSide],
) -> Result<Vec<(String, Vec<CaptureInput>)>, AnalysisError> {
    let mut points: Vec<(String, Vec<CaptureInput>)> = Vec::new();
    for NamedSide { point, file } in sides {
        let input = CaptureInput::from_argument(file);
        match points.iter_mut().find(|(name, _)| name == point) {
            Some((_, inputs)) => inputs.push(input),
            None => points.push((point.clone(), vec![input])),
        }
    }
    let named = |input: &CaptureInput| sides.iter().any(|side| CaptureInput::from_argument(&side.file) == *input);
    if let Some(other) = inputs.iter().find(|input| !named(input)) {
        return Err(AnalysisError::Sides(format!("--sides does not name the point of {}", other.name())));
    }
    if let [(only, _)] = points.as_slice() {
        return Err(AnalysisError::Sides(format!("--sides names one point, {only}: name another, server=FILE")));
    }
    if let Some(pipe) = points.iter().flat_map(|(_, inputs)| inputs).find(|input| !input.can_be_read_again()) {
        return Err(AnalysisError::Sides(format!("--sides reads captures twice: {} is not a file", pipe.name())));
    }
    Ok(points)
}

fn nothing_in_common(points: &[Point]) -> String {
    let names: Vec<String> = points.iter().flat_map(|point| &point.inputs).map(CaptureInput::name).collect();
    format!("--sides: {} have no commands in common; capture both points at the same time", names.join(" and "))
}

/// Sorts the points from the client to the server, and pairs neighbours. `None` if any two have nothing in common.
fn paired(points: &mut Vec<Point>) -> Option<Vec<PairedPoints>> {
    let mut wins = vec![0_usize; points.len()];
    for at in 0..points.len() {
        for other in at + 1..points.len() {
            let (one, two) = (&points[at].sightings, &points[other].sightings);
            let nearer = if PairedPoints::is_nearer(one, two, PAIRS_LEAST)? { at } else { other };
            wins[nearer] += 1;
        }
    }
    let mut ranked: Vec<(usize, Point)> = wins.into_iter().zip(points.drain(..)).collect();
    ranked.sort_by_key(|(wins, _)| Reverse(*wins));
    points.extend(ranked.into_iter().map(|(_, point)| point));
    points.windows(2).map(|pair| PairedPoints::find(&pair[0].sightings, &pair[1].sightings)).collect()
}

/// Returns which of two captures was taken nearer to the client: 0 or 1. `None` if they are not of the same traffic at
/// two points.
pub fn nearer_to_the_client(sightings: [&PointSightings; 2]) -> Option<usize> {
    let [one, other] = sightings;
    let (near, far, nearer) = match PairedPoints::is_nearer(one, other, PAIRS_LEAST)? {
        true => (one, other, 0),
        false => (other, one, 1),
    };
    let paired = PairedPoints::find(near, far)?;
    are_apart(&paired).then_some(nearer)
}

fn are_apart(points: &PairedPoints) -> bool {
    points.longest_way() > WAY_LEAST
}

fn name_by_order(points: &mut [Point]) {
    let last = points.len() - 1;
    for (at, point) in points.iter_mut().enumerate().filter(|(_, point)| point.name.is_empty()) {
        point.name = match at {
            0 => "client".to_owned(),
            at if at == last => "server".to_owned(),
            at => format!("point {}", at + 1),
        };
    }
}

/// Reads the captures of a point.
fn seen(
    name: String,
    inputs: Vec<CaptureInput>,
    options: &AnalysisOptions,
    observer: &mut dyn AnalysisObserver,
) -> Result<Point, AnalysisError> {
    let how = how(options)?;
    let following = FollowOptions { analyzer: &how, paths: None };
    let mut pass = AnalysisPass::first(&inputs, options);
    loop {
        let mut set = pass.open(&inputs)?;
        let sharding = pass.sharding();
        let workers = if sharding == Sharding::None { 1 } else { options.reading.threads().max(1) };
        let threading = if options.reading.threads() <= 1 { Threading::Inline } else { Threading::Workers };
        let mut recorders: Vec<SightingRecorder> = (0..workers).map(|_| SightingRecorder::default()).collect();
        match following.follow(&mut set, sharding, threading, &mut recorders, observer) {
            Ok(found) if found.interrupted => {
                let names: Vec<String> = inputs.iter().map(CaptureInput::name).collect();
                let names = names.join(", ");
                return Err(AnalysisError::Interrupted(format!("{names}: interrupted before the report was begun")));
            }
            Ok(found) => {
                let mut sightings = PointSightings::default();
                recorders.into_iter().for_each(|recorder| sightings.merge(recorder.0));
                sightings.finish(&set.clock_steps());
                return Ok(Point { name, inputs, sightings, connections: found.analysis.connections });
            }
            Err(failure) => {
                pass.learn(failure);
                set.refuse_cut_short()?;
            }
        }
    }
}

#[derive(Default)]
struct SightingRecorder(PointSightings);

impl Sink for SightingRecorder {
    fn exchange(&mut self, exchange: &Exchange) {
        self.0.record(exchange);
    }
}

impl MeasuredPaths {
    fn new(points: &[Point], segments: &[PairedPoints]) -> MeasuredPaths {
        // From end to end, whatever points lie in between.
        let whole = match points {
            [client, _, .., server] => PairedPoints::find(&client.sightings, &server.sightings),
            _ => None,
        };
        let whole = whole.as_ref().unwrap_or(&segments[0]);
        let between = points.windows(2).zip(segments);
        MeasuredPaths {
            round_trips: whole.round_trips(),
            shortest: whole.shortest_round_trips(),
            figures: SidesFigures {
                points: points.iter().map(Point::described).collect(),
                segments: between
                    .map(|(pair, paired)| paired.segment(&pair[0].connections(), &pair[1].connections()))
                    .collect(),
            },
        }
    }

    /// Enters the measured way to the server.
    pub(super) fn correct(&self, connections: &mut [ConnectionSummary]) {
        connections.iter_mut().for_each(|connection| self.correct_one(connection));
    }

    fn correct_one(&self, connection: &mut ConnectionSummary) {
        if let Some(shortest) = self.shortest.get(&connection.flow) {
            connection.server_round_trip = Some(*shortest);
        }
    }
}

/// Passes exchanges on with the measured way to the server.
pub(super) struct MeasuredSink<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) paths: &'a MeasuredPaths,
}

impl<S: Sink> Sink for MeasuredSink<'_, S> {
    fn turn_to(&mut self, shard: usize) {
        self.sink.turn_to(shard);
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let measured = exchange.request.first.and_then(|first| self.paths.round_trips.get(&first.packet));
        let measured = measured.or_else(|| self.paths.shortest.get(&exchange.flow));
        match measured {
            Some(trip) => self.sink.exchange(&Exchange { server_round_trip: Some(*trip), ..exchange.clone() }),
            None => self.sink.exchange(exchange),
        }
    }

    fn settled(&mut self, settled: &Settled) {
        self.sink.settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        let mut connection = connection.clone();
        self.paths.correct_one(&mut connection);
        self.sink.closed(&connection);
    }
}

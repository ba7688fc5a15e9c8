//! Predicts how long an episode would take with another round trip, a faster or slower server, opens from a cache, or read-ahead.
//!
//! The commands are played again on a graph of what each of them waits for (`graph`), over a model of TCP (`tcp`).
//! What a capture can't tell is assumed both ways, which gives an interval.
//! Not modelled: losses, load that a faster client puts on the server, and what a client would do otherwise if it knew.

mod caches;
mod graph;
mod lanes;
mod pools;
mod simulate;
mod tcp;
#[cfg(test)]
mod tests;
mod waits;

use graph::Graph;
use simulate::{Assumptions, Conditions};
use smbscope_model::{ConnectionSummary, Exchange, FlowId, Nanos, Timestamp, units};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;
use tcp::Behavior;

/// Commands that a prediction can take.
pub const COMMANDS_MAX: usize = 200_000;

/// What is to be different.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    /// The round trip between client and server.
    pub round_trip: Option<Nanos>,
    /// By which factor the server's time grows or shrinks.
    pub server: Option<f64>,
    /// Files that were opened before and not written since are opened, read and closed without the server.
    pub cache_opens: bool,
    /// Files that are read from one end to the other, a read at a time, are asked for ahead of the program.
    pub read_ahead: bool,
}

impl FromStr for Scenario {
    type Err = String;

    /// `rtt=20ms`, `server=0.5x`, `cache-opens`, `read-ahead`; several separated by commas.
    fn from_str(text: &str) -> Result<Scenario, String> {
        const EXPECTED: &str =
            "expected rtt=20ms, server=0.5x, cache-opens or read-ahead, or several of them separated by commas";
        let mut scenario = Scenario::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some(("rtt", time)) => {
                    let time = units::duration(time)?;
                    if time.0 < 0 {
                        return Err(format!("rtt={time}: expected a time from 0 on"));
                    }
                    scenario.round_trip = Some(time);
                }
                Some(("server", factor)) => {
                    let number = factor.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
                    let number = number.filter(|number| (0.0..=1e6).contains(number));
                    scenario.server = Some(number.ok_or("expected a factor of the server's time, such as 0.5x or 3x")?);
                }
                None if part == "cache-opens" => scenario.cache_opens = true,
                None if matches!(part, "read-ahead" | "readahead") => scenario.read_ahead = true,
                _ => return Err(EXPECTED.to_owned()),
            }
        }
        Ok(scenario)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.round_trip.map(|time| format!("rtt={}", units::exact_duration(time))));
        parts.extend(self.server.map(|factor| format!("server={factor}x")));
        parts.extend(self.cache_opens.then(|| "cache-opens".to_owned()));
        parts.extend(self.read_ahead.then(|| "read-ahead".to_owned()));
        f.write_str(&parts.join(","))
    }
}

/// How long an episode took, and would take.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// What is different.
    pub scenario: Scenario,
    /// First request to last response.
    pub now: Nanos,
    /// The same with what is different, at least.
    pub low: Nanos,
    /// The same, at best guess.
    pub then: Nanos,
    /// The same, at most.
    pub high: Nanos,
    /// The round trip that commands have now, on the connection with the longest.
    pub round_trip: Option<Nanos>,
    /// Commands of the episode.
    pub commands: u64,
    /// Commands that would not be sent.
    pub saved: u64,
}

/// What the capture tells of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path {
    /// Shortest round trip between client and server.
    pub round_trip: Option<Nanos>,
    /// First packet of the handshake, if it was captured.
    pub opened: Option<Timestamp>,
    /// Receive windows that were filled, in bytes: the server's, the client's.
    pub filled_windows: [Option<u32>; 2],
}

/// Connections of an episode.
pub type FlowPaths = BTreeMap<FlowId, Path>;

/// Summarizes connections for predictions.
pub fn paths(connections: &[ConnectionSummary]) -> FlowPaths {
    let path = |connection: &ConnectionSummary| Path {
        round_trip: connection.round_trip(),
        opened: (!connection.midstream).then_some(connection.first),
        filled_windows: [&connection.to_server, &connection.to_client].map(|direction| direction.filled_window),
    };
    connections.iter().map(|connection| (connection.flow, path(connection))).collect()
}

/// Share of a round trip over which senders spread a window: none, and Linux's `tcp_pacing_ss_ratio` (200%) and
/// `tcp_pacing_ca_ratio` (120%).
const PACING: [f64; 3] = [0.0, 0.5, 0.83];
/// Factors by which the time of client and server differs if a job is repeated.
const REPEATED: [f64; 2] = [0.9, 1.1];
/// The same if hosts that waited most of the time get busy.
const BUSIER: f64 = 1.25;
/// Parts of a round trip by which hosts that wait for each other are late, at best guess and at most.
const LATE: [f64; 2] = [0.2, 0.5];
/// Commands wait for more than the shortest round trip. Without this factor, predictions for 10 and 20 ms were 2% to 6% short in
/// the lab.
const LONGER_TRIP: f64 = 1.05;
/// On a busy path or host; large enough for the documents of `wi_docs`, not derived.
const LONGEST_TRIP: f64 = 1.2;

/// Predicts the duration of an episode. Returns none if it has no command, or if a round trip is needed and not known.
pub fn predict(exchanges: &[Exchange], paths: &FlowPaths, scenario: &Scenario) -> Option<Prediction> {
    let mut graph = Graph::new(exchanges, paths)?;
    let needs_trips = scenario.round_trip.is_some() || scenario.server.is_some() || scenario.read_ahead;
    if needs_trips && graph.nodes.iter().any(|node| node.trip.is_none()) {
        return None;
    }
    let cached = if scenario.cache_opens { caches::cached(exchanges) } else { HashSet::new() };
    let ahead = if scenario.read_ahead { caches::read_in_sequence(exchanges) } else { HashSet::new() };
    let mut tight = graph.clone();
    graph.find_dependencies(false);
    tight.find_dependencies(true);
    let duration = |graph: &Graph, assumptions| {
        simulate::duration(graph, paths, Conditions { scenario, cached: &cached, ahead: &ahead, assumptions })
    };
    let ([none, some, most], [less, more]) = (PACING, REPEATED);
    let tcp = |pacing, growth| Behavior { slow_start: true, pacing, growth };
    let best = Assumptions {
        tcp: tcp(some, 1.0),
        own: 1.0,
        trip: LONGER_TRIP,
        waited: LONGER_TRIP,
        warm: Some(0.5),
        late: LATE[0],
    };
    let short = Assumptions { own: less, trip: 1.0, warm: Some(0.1), late: LATE[1], ..best };
    let is_much_shorter = |node: &graph::CommandNode| matches!((scenario.round_trip, node.trip), (Some(new), Some(old)) if new.0 < old / 2);
    let more = if graph.nodes.iter().any(is_much_shorter) { BUSIER } else { more };
    let long = Assumptions { own: more, trip: LONGEST_TRIP, waited: 1.0, warm: None, ..best };
    let then = duration(&graph, best);
    let others = [
        duration(&graph, Assumptions { tcp: Behavior { slow_start: false, ..tcp(none, 1.0) }, ..short }),
        duration(&graph, Assumptions { tcp: tcp(most, 1.0), ..short }),
        duration(&graph, Assumptions { tcp: tcp(none, 1.0), ..long }),
        duration(&graph, Assumptions { tcp: tcp(most, 0.5), ..long }),
        duration(&tight, long),
    ];
    let commands = graph.nodes.iter().filter_map(|node| node.key);
    Some(Prediction {
        scenario: scenario.clone(),
        now: Nanos(graph.nodes.iter().map(|node| node.end).max()?),
        low: Nanos(others.iter().copied().min()?.min(then)),
        then: Nanos(then),
        high: Nanos(others.iter().copied().max()?.max(then)),
        round_trip: graph.nodes.iter().filter_map(|node| node.trip).max().map(Nanos),
        commands: commands.clone().count() as u64,
        saved: commands.filter(|key| cached.contains(key)).count() as u64,
    })
}

/// What tells one exchange of an episode from another.
type EpisodeExchangeKey = (FlowId, Option<u64>, Timestamp);

fn key(exchange: &Exchange) -> Option<EpisodeExchangeKey> {
    Some((exchange.flow, exchange.message_id, exchange.request.first?.time))
}

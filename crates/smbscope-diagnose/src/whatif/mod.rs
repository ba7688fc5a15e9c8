//! Predicts how long an episode would take with another round trip, a faster or slower server, cached opens, or
//! read-ahead.
//!
//! The commands are replayed on a graph of their dependencies (`graph`) over a TCP model (`tcp`). Unknowns are
//! varied, which turns the prediction into an interval. Not modelled: packet loss, the load that a faster client puts
//! on the server, and clients that adapt their behavior.

mod graph;
mod lanes;
mod simulate;
mod tcp;
#[cfg(test)]
mod tests;
mod waits;

use crate::classify::{Fact, facts_of, is_close, is_open};
use graph::Graph;
use serde::{Serialize, Serializer};
use simulate::{Assumptions, Conditions};
use smbscope_model::{CommandGroup, ConnectionSummary, Exchange, FileId, FlowId, Nanos, Timestamp, units};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tcp::Behavior;

/// Commands for `--what-if`; more are refused.
pub const COMMANDS_MAX: usize = 200_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    pub round_trip: Option<Nanos>,
    pub server: Option<f64>,
    /// Serve opens, reads and closes of files that were opened before and not written since from a client cache.
    pub cache_opens: bool,
    pub read_ahead: bool,
}

impl FromStr for Scenario {
    type Err = String;

    /// Parses a comma-separated list of `rtt=20ms`, `server=0.5x`, `cache-opens` and `read-ahead`.
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

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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

/// Prediction of the episode's duration under other conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WhatIf"))]
pub struct Prediction {
    /// Scenario, in the syntax of --what-if.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub scenario: Scenario,
    /// Captured duration, from the first request to the last response.
    #[serde(rename = "now_ns")]
    pub now: Nanos,
    /// Lower bound of the predicted duration.
    #[serde(rename = "then_low_ns")]
    pub low: Nanos,
    /// Best estimate of the predicted duration.
    #[serde(rename = "then_ns")]
    pub then: Nanos,
    /// Upper bound of the predicted duration.
    #[serde(rename = "then_high_ns")]
    pub high: Nanos,
    /// Longest captured round-trip time of the episode's connections.
    #[serde(rename = "round_trip_ns")]
    pub round_trip: Option<Nanos>,
    pub commands: u64,
    /// Commands that would be saved.
    pub saved: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path {
    pub round_trip: Option<Nanos>,
    pub opened: Option<Timestamp>,
    /// Receive windows that the sender filled, in bytes: the server's, the client's.
    pub filled_windows: [Option<u32>; 2],
}

pub type FlowPaths = BTreeMap<FlowId, Path>;

pub fn paths(connections: &[ConnectionSummary]) -> FlowPaths {
    let path = |connection: &ConnectionSummary| Path {
        round_trip: connection.round_trip(),
        opened: (!connection.midstream).then_some(connection.first),
        filled_windows: [&connection.to_server, &connection.to_client].map(|direction| direction.filled_window),
    };
    connections.iter().map(|connection| (connection.flow, path(connection))).collect()
}

/// Share of a round trip over which senders spread a window: unpaced, and by Linux's `tcp_pacing_*_ratio` (200%, 120%).
const PACING: [f64; 3] = [0.0, 0.5, 0.83];
/// Variation of client and server time between repetitions of a job.
const REPEATED: [f64; 2] = [0.9, 1.1];
/// Upper variation for hosts that become busy because they wait less.
const BUSIER: f64 = 1.25;
/// Share of a round trip by which hosts that wait for each other respond late: best estimate and upper bound.
const LATE: [f64; 2] = [0.2, 0.5];
/// Ratio of the round trip of commands to the shortest one. Without it, predictions were 2% to 6% short.
const LONGER_TRIP: f64 = 1.05;
/// Upper bound of that ratio on a busy path or host. Not derived: chosen to cover the documents of `wi_docs`.
const LONGEST_TRIP: f64 = 1.2;

/// Returns `None` if the episode has no command, or if a round trip is needed but unknown.
pub fn predict(exchanges: &[Exchange], paths: &FlowPaths, scenario: &Scenario) -> Option<Prediction> {
    let mut graph = Graph::new(exchanges, paths)?;
    let needs_trips = scenario.round_trip.is_some() || scenario.server.is_some() || scenario.read_ahead;
    if needs_trips && graph.nodes.iter().any(|node| node.trip.is_none()) {
        return None;
    }
    let cached = if scenario.cache_opens { cached(exchanges) } else { HashSet::new() };
    let ahead = if scenario.read_ahead { read_in_sequence(exchanges) } else { HashSet::new() };
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

type EpisodeExchangeKey = (FlowId, Option<u64>, Timestamp);

fn key(exchange: &Exchange) -> Option<EpisodeExchangeKey> {
    Some((exchange.flow, exchange.message_id, exchange.request.first?.time))
}

/// Returns reads that continue a sequential pattern, from the third one on: by then a client has recognised it. Only
/// reads sent after the previous response count.
fn read_in_sequence(exchanges: &[Exchange]) -> HashSet<EpisodeExchangeKey> {
    const KNOWN_AFTER: u32 = 2;
    let mut in_order: Vec<&Exchange> =
        exchanges.iter().filter(|exchange| exchange.group == CommandGroup::Read).collect();
    in_order.sort_by_key(|exchange| exchange.request.first.map(|stamp| stamp.time));
    // By open: end offset of the last read, time of its response, and length of the sequence.
    let mut opens: HashMap<(FlowId, FileId), (u64, Timestamp, u32)> = HashMap::new();
    let mut ahead = HashSet::new();
    for read in in_order {
        let (Some(file), Some(key), Some(last)) = (read.file_id, key(read), read.response.last) else { continue };
        let (Some(offset), Some(length)) = (read.offset, read.length) else { continue };
        let known = opens.get(&(read.flow, file)).copied();
        let reads = match known {
            Some((next, answered, reads)) if next == offset && answered <= key.2 => reads,
            _ => 0,
        };
        if reads >= KNOWN_AFTER {
            ahead.insert(key);
        }
        opens.insert((read.flow, file), (offset.saturating_add(length), last.time, reads.saturating_add(1)));
    }
    ahead
}

/// Returns opens, reads, attribute queries and closes on files opened earlier in the episode and not modified since.
fn cached(exchanges: &[Exchange]) -> HashSet<EpisodeExchangeKey> {
    type Name = (Option<Arc<str>>, Arc<str>);
    let mut in_order: Vec<&Exchange> = exchanges.iter().collect();
    in_order.sort_by_key(|exchange| exchange.request.first.map(|stamp| stamp.time));
    let mut known: HashSet<Name> = HashSet::new();
    let mut opens: HashMap<(FlowId, Option<FileId>), bool> = HashMap::new();
    let mut cached = HashSet::new();
    for exchange in in_order {
        let (Some(path), Some(key)) = (&exchange.path, key(exchange)) else { continue };
        let name = (exchange.share.clone(), Arc::clone(path));
        let open = (exchange.flow, exchange.file_id);
        let changes = match exchange.group {
            CommandGroup::Write => true,
            CommandGroup::Directory => !facts_of(exchange).has(Fact::List),
            _ => false,
        };
        if changes {
            known.remove(&name);
            opens.insert(open, false);
            continue;
        }
        let served = if is_open(exchange) {
            let again = !known.insert(name);
            opens.insert(open, again);
            again
        } else {
            opens.get(&open).copied().unwrap_or(false)
        };
        if served && matches!(exchange.group, CommandGroup::OpenClose | CommandGroup::Read | CommandGroup::Attributes) {
            cached.insert(key);
        }
        if is_close(exchange) {
            opens.remove(&open);
        }
    }
    cached
}

//! Predicts how long commands would take with another round trip, less bandwidth, a faster or slower server, a newer
//! dialect, signatures, cached opens, or read-ahead.
//!
//! The commands are replayed on a graph of their dependencies (`graph`) over a TCP model (`tcp`). Unknowns are
//! varied, which turns the prediction into an interval. Not modelled: packet loss, the load that a faster client puts
//! on the server, and clients that adapt their behavior.

mod graph;
mod lanes;
mod protocol;
mod simulate;
mod tcp;
#[cfg(test)]
mod tests;
mod users;
mod waits;

use crate::classify::{Fact, facts_of, is_close, is_open};
use crate::slow::{group_name, groups};
use graph::Graph;
pub use graph::{ThreadPlace, threads};
use serde::{Serialize, Serializer};
use simulate::{Assumptions, Conditions};
use smbscope_model::{
    CommandGroup, ConnectionSummary, Dialect, Endpoints, Exchange, FileId, FlowId, Nanos, Protocol, Timestamp, prose,
    units,
};
use smbscope_stats::filter::did_you_mean;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
pub use users::{
    Bounded, CapturedLoad, CapturedStation, DoublingPoint, TimeSample, USERS_COMMANDS_MIN, UserIdentity, UsersPoint,
    UsersPrediction, predict_users,
};

/// Commands in a prediction; more are refused.
pub const COMMANDS_MAX: usize = 200_000;

/// Changes of one `--if`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    pub round_trip: Option<Nanos>,
    /// Bits per second in each direction, for all connections of a client together.
    pub bandwidth: Option<u64>,
    /// Factor of the server's time.
    pub server: Option<f64>,
    /// Additional server time of each command, by group.
    pub slower: Vec<(CommandGroup, Nanos)>,
    /// Serve opens, reads and closes of files that were opened before and not written since from a client cache.
    pub cache_opens: bool,
    pub read_ahead: bool,
    pub dialect: Option<Dialect>,
    /// Sign all messages.
    pub signing: bool,
}

impl FromStr for Scenario {
    type Err = String;

    /// Parses a comma-separated list of changes, such as `rtt=20ms,server=0.5x`.
    fn from_str(text: &str) -> Result<Scenario, String> {
        let mut scenario = Scenario::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some(("rtt", time)) => scenario.round_trip = Some(time_from_0(part, time)?),
                Some(("bandwidth", rate)) => {
                    let rate = units::bit_rate(rate)?;
                    scenario.bandwidth = Some(Some(rate).filter(|rate| *rate > 0).ok_or("bandwidth=0: expected more")?);
                }
                Some(("server", factor)) => {
                    let factor = units::factor(factor)?;
                    scenario.server =
                        Some(Some(factor).filter(|factor| *factor <= 1e6).ok_or("server: expected less")?);
                }
                Some(("dialect", name)) => scenario.dialect = Some(dialect(name)?),
                Some(("signing", "required")) => scenario.signing = true,
                Some(("signing", _)) => return Err("expected signing=required".to_owned()),
                Some(("cache", "leases")) => scenario.cache_opens = true,
                Some((name, time)) => scenario.slower.push((group(name)?, additional(part, time)?)),
                None if part == "cache-opens" => scenario.cache_opens = true,
                None if matches!(part, "read-ahead" | "readahead") => scenario.read_ahead = true,
                None => return Err(unknown(part)),
            }
        }
        Ok(scenario)
    }
}

fn unknown(change: &str) -> String {
    const OTHERS: [&str; 7] =
        ["rtt", "bandwidth", "server", "dialect", "signing=required", "cache=leases", "read-ahead"];
    let names = OTHERS.into_iter().chain(groups().map(|(_, group)| group_name(group)));
    let hint = did_you_mean(change, names).map_or_else(String::new, |near| format!("; {near}"));
    format!(
        "unknown change '{change}'; expected rtt=20ms, bandwidth=100mbit, server=0.5x, read=+10ms, dialect=3.1.1, \
         signing=required, cache=leases or read-ahead, or several separated by commas{hint}"
    )
}

/// Parses a dialect of SMB2 or later.
fn dialect(name: &str) -> Result<Dialect, String> {
    let mut all = Dialect::KNOWN.into_iter().filter(|dialect| dialect.protocol() == Protocol::Smb2);
    let found = all.find(|dialect| *dialect != Dialect::SMB2_WILDCARD && dialect.to_string() == name);
    found.ok_or_else(|| format!("dialect={name}: expected 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1"))
}

fn group(name: &str) -> Result<CommandGroup, String> {
    let known = groups().map(|(_, group)| group).find(|group| group_name(*group) == name);
    known.ok_or_else(|| unknown(name))
}

fn additional(part: &str, time: &str) -> Result<Nanos, String> {
    let time = time.strip_prefix('+').ok_or_else(|| format!("{part}: expected additional time, such as +10ms"))?;
    time_from_0(part, time)
}

fn time_from_0(part: &str, time: &str) -> Result<Nanos, String> {
    let time = units::duration(time)?;
    if time.0 < 0 { Err(format!("{part}: expected a time from 0 on")) } else { Ok(time) }
}

impl Scenario {
    /// Returns the assumptions of the prediction, one sentence each.
    fn assumptions(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            (true, "Each command waits for its predecessors on its connection or in its thread, as in the capture."),
            (
                true,
                "No packet is lost. The client's own time between commands, and transfers at an unchanged speed, stay as \
                 they are, within 10%; if several threads wait longer, they may take 20% less.",
            ),
            (
                self.round_trip.is_some(),
                "TCP slow start and the receive window limit transfers; the bandwidth stays as it is.",
            ),
            (
                self.bandwidth.is_some(),
                "All connections of a client share one link. A link faster than the captured one saves nothing.",
            ),
            (self.server.is_some(), "The server's time of every command changes by the same factor."),
            (!self.slower.is_empty(), "The server handles outstanding commands in parallel, as in the capture."),
            (self.cache_opens, "Files that were opened before and not changed since cost no command."),
            (
                self.dialect.is_some(),
                "The client asks for the same with requests of the same size. What names a path in SMB1 is an open, a \
                 command and a close in SMB2, in one compound or, for the upper bound, one after the other. Client and \
                 server take as long for the same command, within 20%.",
            ),
            (
                self.signing,
                "Signing costs as much time for each byte as was measured with this program and Samba, and is shared \
                 by both ends.",
            ),
            (self.read_ahead, "From the third sequential read on, the client has asked for the data in time."),
        ];
        all.into_iter().filter_map(|(holds, sentence)| holds.then_some(sentence))
    }

    fn needs_round_trips(&self) -> bool {
        self.replays_transfers() || self.server.is_some() || self.dialect.is_some() || self.read_ahead
    }

    /// Returns true if commands wait longer for the server or the network. `trip` is the longest captured round trip.
    fn is_slower(&self, trip: Option<i64>) -> bool {
        let Scenario { round_trip, bandwidth, server, slower, .. } = self;
        let is_farther = round_trip.zip(trip).is_some_and(|(changed, captured)| changed.0 > captured);
        is_farther || bandwidth.is_some() || server.is_some_and(|factor| factor > 1.0) || !slower.is_empty()
    }

    /// Returns true if transfers take another time than in the capture.
    pub fn replays_transfers(&self) -> bool {
        self.round_trip.is_some() || self.bandwidth.is_some()
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
        parts.extend(self.bandwidth.map(|rate| format!("bandwidth={}", units::exact_bit_rate(rate))));
        parts.extend(self.server.map(|factor| format!("server={factor}x")));
        let slower = self.slower.iter();
        parts.extend(slower.map(|(group, time)| format!("{}=+{}", group_name(*group), units::exact_duration(*time))));
        parts.extend(self.dialect.map(|dialect| format!("dialect={dialect}")));
        parts.extend(self.signing.then(|| "signing=required".to_owned()));
        parts.extend(self.cache_opens.then(|| "cache=leases".to_owned()));
        parts.extend(self.read_ahead.then(|| "read-ahead".to_owned()));
        f.write_str(&parts.join(","))
    }
}

/// Duration of the commands under a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Change, in the syntax of --if.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub change: Scenario,
    /// Predicted duration.
    pub duration_ns: PredictedDuration,
    /// Commands that would be saved.
    pub saved_commands: u64,
    /// Assumptions of the prediction, one sentence each.
    pub assumptions: Vec<String>,
}

/// Best estimate of a duration, with its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictedDuration {
    pub low: Nanos,
    pub best: Nanos,
    pub high: Nanos,
}

/// Commands as captured, and what changes would make of their duration.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predictions {
    /// Captured duration, from the first request to the last response.
    pub captured_ns: Nanos,
    /// Longest captured round-trip time of the connections. Null if unknown.
    pub round_trip_ns: Option<Nanos>,
    /// Commands with a response.
    pub commands: u64,
    /// Predictions, in the order of the changes.
    pub predictions: Vec<Prediction>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PredictionError {
    NoCommands,
    TooManyCommands,
    /// A connection has no known round trip, which this change needs.
    NoRoundTrip(Scenario),
    /// Dialect of a command, which is newer than the one to predict.
    OlderDialect(Scenario, Dialect),
    /// Too few commands to tell how more users would fare.
    TooFewCommands(usize),
    /// Mean number of users at work.
    OneUser(UserIdentity, f64),
    /// The response time consists mostly of data transfers, in percent.
    BulkTransfers(u64),
    /// Too few commands had the server alone.
    NeverAlone,
}

impl fmt::Display for PredictionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PredictionError::NoCommands => f.write_str("no command was answered, so there is nothing to predict"),
            PredictionError::TooManyCommands => {
                let most = prose::thousands(COMMANDS_MAX as u64);
                write!(f, "{most} commands or more: choose a part with --episode or --filter")
            }
            PredictionError::NoRoundTrip(change) => {
                write!(f, "{change} needs the round trip of every connection: start the capture before they are opened")
            }
            PredictionError::OlderDialect(change, captured) => {
                write!(f, "{change} is older than the captured {captured}, and only newer dialects can be predicted")
            }
            PredictionError::TooFewCommands(commands) => write!(
                f,
                "{}, and --users needs at least {USERS_COMMANDS_MIN}: capture for longer",
                prose::counted(*commands as u64, "command", "commands")
            ),
            PredictionError::OneUser(identity, users) => {
                let hint = match identity {
                    UserIdentity::Connection => "capture several users",
                    _ => "if each connection is a user, use --user-is connection",
                };
                let name = identity.name();
                write!(f, "--users needs several users, and the capture has {users:.1} on average ({name}): {hint}")
            }
            PredictionError::BulkTransfers(share) => write!(
                f,
                "{share}% of the response time is data transfer, so the link decides and not the server: use --if \
                 bandwidth=…, or --filter for the other commands"
            ),
            PredictionError::NeverAlone => f.write_str(
                "--users needs the server time without load, and almost every command met others at the server: \
                 capture at a quieter time",
            ),
        }
    }
}

impl std::error::Error for PredictionError {}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path {
    pub client: Option<IpAddr>,
    pub round_trip: Option<Nanos>,
    pub opened: Option<Timestamp>,
    /// Receive windows that the sender filled, in bytes: the server's, the client's.
    pub filled_windows: [Option<u32>; 2],
    /// All payload bytes of the connection to the server, and to the client. Absent if its beginning was not captured.
    pub bytes: [Option<u64>; 2],
    pub threads: ConnectionThreads,
    /// Id of the algorithm for signatures in SMB 3.1.1, if it is known.
    pub signing_algorithm: Option<u16>,
}

/// Threads of the client that use a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionThreads {
    /// Found from the commands.
    #[default]
    Unknown,
    /// A single thread, which uses no other connection, as in a replay.
    One,
    /// The same, and the thread takes tasks from a list that it shares with others.
    OneOfPool,
}

pub type FlowPaths = BTreeMap<FlowId, Path>;

/// Returns the paths of connections. One whose handshake was not captured has the shortest round trip of the others
/// between the same hosts.
pub fn paths(connections: &[ConnectionSummary]) -> FlowPaths {
    let hosts = |connection: &ConnectionSummary| {
        let Endpoints { client, server } = connection.endpoints;
        (client.ip(), server.ip())
    };
    let mut shortest: HashMap<(IpAddr, IpAddr), Nanos> = HashMap::new();
    for connection in connections {
        if let Some(trip) = connection.round_trip() {
            shortest.entry(hosts(connection)).and_modify(|known| *known = trip.min(*known)).or_insert(trip);
        }
    }
    let path = |connection: &ConnectionSummary| {
        let directions = [&connection.to_server, &connection.to_client];
        Path {
            client: Some(connection.endpoints.client.ip()),
            round_trip: connection.round_trip().or_else(|| shortest.get(&hosts(connection)).copied()),
            opened: (!connection.midstream).then_some(connection.first),
            filled_windows: directions.map(|direction| direction.filled_window),
            bytes: directions.map(|direction| (!connection.midstream).then_some(direction.bytes)),
            threads: ConnectionThreads::Unknown,
            signing_algorithm: connection.offers.signing_algorithm(),
        }
    };
    connections.iter().map(|connection| (connection.flow, path(connection))).collect()
}

/// Predicts the duration of commands under each change.
pub fn predict(
    exchanges: &[Exchange],
    paths: &FlowPaths,
    changes: &[Scenario],
) -> Result<Predictions, PredictionError> {
    if exchanges.len() >= COMMANDS_MAX {
        return Err(PredictionError::TooManyCommands);
    }
    let graph = Graph::new(exchanges, paths).ok_or(PredictionError::NoCommands)?;
    let job = CapturedJob::new(graph, paths);
    let of_change = |change| prediction(exchanges, paths, &job, change);
    let nodes = &job.graph.nodes;
    Ok(Predictions {
        captured_ns: job.graph.captured(),
        round_trip_ns: nodes.iter().filter_map(|node| node.trip).max().map(Nanos),
        commands: nodes.iter().filter(|node| node.key.is_some()).count() as u64,
        predictions: changes.iter().map(of_change).collect::<Result<_, _>>()?,
    })
}

/// Share of the captured duration that is not worth telling.
const UNEXPLAINED_SMALL: f64 = 0.05;

/// Commands with their dependencies.
struct CapturedJob {
    graph: Graph,
    /// Graph with tight dependencies.
    tight: Graph,
    /// Duration of a replay in which nothing changes.
    replayed: i64,
}

impl CapturedJob {
    fn new(mut graph: Graph, paths: &FlowPaths) -> CapturedJob {
        let mut tight = graph.clone();
        graph.find_dependencies(false);
        tight.find_dependencies(true);
        let replayed = simulate::duration_as_captured(&graph, paths);
        CapturedJob { graph, tight, replayed }
    }

    /// Corrects a duration by the error of the replay in which nothing changes: time that the graph doesn't explain. A
    /// shorter duration has less of it.
    fn calibrated(&self, duration: i64) -> i64 {
        let share = (duration as f64 / self.replayed.max(1) as f64).min(1.0);
        duration.saturating_add(((self.graph.captured().0 - self.replayed) as f64 * share) as i64)
    }

    /// Returns a sentence about that error if it matters.
    fn unexplained(&self) -> Option<String> {
        let Nanos(captured) = self.graph.captured();
        let is_small = (captured - self.replayed).abs() as f64 <= captured as f64 * UNEXPLAINED_SMALL;
        let [replayed, captured] = [self.replayed, captured].map(|time| prose::span(Nanos(time)));
        (!is_small).then(|| {
            format!(
                "Without any change, the commands would take {replayed} like this; they took {captured}. The difference \
                 is added."
            )
        })
    }
}

fn prediction(
    exchanges: &[Exchange],
    paths: &FlowPaths,
    job: &CapturedJob,
    scenario: &Scenario,
) -> Result<Prediction, PredictionError> {
    let CapturedJob { graph, tight, .. } = job;
    if scenario.needs_round_trips() && graph.nodes.iter().any(|node| node.trip.is_none()) {
        return Err(PredictionError::NoRoundTrip(scenario.clone()));
    }
    if let Some(newer) = protocol::newer_dialect(graph, scenario) {
        return Err(PredictionError::OlderDialect(scenario.clone(), newer));
    }
    let cached = if scenario.cache_opens { cached(exchanges) } else { HashSet::new() };
    let ahead = if scenario.read_ahead { read_in_sequence(exchanges) } else { HashSet::new() };
    let duration = |is_tight: bool, assumptions| {
        let graph = if is_tight { tight } else { graph };
        let conditions = Conditions { scenario, cached: &cached, ahead: &ahead, assumptions };
        job.calibrated(simulate::duration(graph, paths, conditions))
    };
    let (best, others) = Assumptions::varied(graph, scenario);
    let then = duration(false, best);
    let others = others.map(|(is_tight, assumptions)| duration(is_tight, assumptions));
    let [low, high] = [others.iter().min(), others.iter().max()].map(|bound| bound.copied().unwrap_or(then));
    Ok(Prediction {
        change: scenario.clone(),
        duration_ns: PredictedDuration { low: Nanos(low.min(then)), best: Nanos(then), high: Nanos(high.max(then)) },
        saved_commands: graph.nodes.iter().filter(|node| node.key.is_some_and(|key| cached.contains(&key))).count()
            as u64,
        assumptions: scenario.assumptions().map(str::to_owned).chain(job.unexplained()).collect(),
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

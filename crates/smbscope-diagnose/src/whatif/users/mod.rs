//! Predicts the response time with more users, or fewer, from the load of the captured ones.
//!
//! Operational laws give users, think time and rates (`captured`). Server times of commands that met others, compared
//! with those that met none, give the part of the server time that queues (`station`). Exact mean value analysis gives
//! response times (`network`). A capture does not show how many commands a server can handle at a time, so each
//! prediction is an interval, from the least queue that the capture allows to the longest one.

mod captured;
mod network;
mod station;
#[cfg(test)]
mod tests;

use super::PredictionError;
use crate::facts::bit_rate;
use crate::slow::group_name;
use captured::LoadOfUsers;
pub use captured::TimeSample;
use network::{ClosedNetwork, SolvedNetwork};
use serde::Serialize;
use smbscope_model::{CommandGroup, Exchange, FlowId, Nanos, Timestamp, prose};
use station::ServerStation;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Commands needed to predict the load of other users.
pub const USERS_COMMANDS_MIN: usize = 200;
/// Mean number of users at work below which one user's commands say nothing about several.
const USERS_LEAST: f64 = 1.5;
/// Customers in a prediction of users. A user with several outstanding commands is several customers.
const CUSTOMERS_MAX: u32 = 1_000_000;
/// Relative error of the model that widens each interval.
const MODEL: f64 = 0.1;
/// Share of data transfers in the response time above which the link decides, not the server.
const BULK: f64 = 0.5;

/// Meaning of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UserIdentity {
    /// Address of the client.
    Client,
    /// Account of the session and address of the client.
    Account,
    /// TCP connection.
    Connection,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum UserKey {
    Client(IpAddr),
    Account(IpAddr, Option<Arc<str>>),
    Connection(FlowId, SocketAddr),
}

impl UserIdentity {
    /// Returns clients, or accounts if all commands come from one client.
    pub fn of_capture(exchanges: &[Exchange]) -> UserIdentity {
        let mut clients = exchanges.iter().map(|exchange| exchange.endpoints.client.ip());
        let first = clients.next();
        if clients.all(|client| Some(client) == first) { UserIdentity::Account } else { UserIdentity::Client }
    }

    fn key(self, exchange: &Exchange) -> UserKey {
        let client = exchange.endpoints.client;
        match self {
            UserIdentity::Client => UserKey::Client(client.ip()),
            UserIdentity::Account => UserKey::Account(client.ip(), exchange.user.clone()),
            UserIdentity::Connection => UserKey::Connection(exchange.flow, client),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            UserIdentity::Client => "client address",
            UserIdentity::Account => "account",
            UserIdentity::Connection => "connection",
        }
    }
}

/// A figure with its bounds. `best` is null if the capture supports only the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounded<T> {
    pub low: T,
    pub best: Option<T>,
    pub high: T,
}

impl<T> Bounded<T> {
    fn map<U>(self, of: impl Fn(T) -> U) -> Bounded<U> {
        Bounded { low: of(self.low), best: self.best.map(&of), high: of(self.high) }
    }
}

/// Predictions for numbers of users.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersPrediction {
    /// Predictions, by number of users.
    pub users: Vec<UsersPoint>,
    /// Number of users at which the captured response time doubles. `low` is the number at the longest queue that the
    /// capture allows. Null if it does not double with ten times the predicted users.
    pub doubled_at: DoublingPoint,
    /// Captured load, from which the predictions derive.
    pub load: CapturedLoad,
    /// The server as the capture shows it.
    pub station: CapturedStation,
    /// Assumptions of the predictions for users, one sentence each.
    pub users_assumptions: Vec<String>,
}

/// Prediction for a number of users.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersPoint {
    pub users: u32,
    /// Mean response time of a command.
    pub response_time_ns: Bounded<Nanos>,
    /// Commands per second of all users.
    pub commands_per_s: Bounded<f64>,
    /// Share of time in which the queueing part of the server works, from 0 to 1.
    pub server_busy: Bounded<f64>,
    /// True if more commands meet at the server than ever in the capture.
    pub is_extrapolated: bool,
}

/// Numbers of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoublingPoint {
    pub low: Option<u32>,
    pub best: Option<u32>,
    pub high: Option<u32>,
}

/// Load of the captured users on one server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedLoad {
    /// Server to which the predictions apply: the one with the most commands.
    pub server: IpAddr,
    /// Meaning of a user.
    pub user_is: UserIdentity,
    /// Mean number of users at work: between their first command and their last.
    pub users: f64,
    /// Commands that the predictions derive from. A compound counts as one.
    pub commands: u64,
    /// First request.
    pub from_ns: Timestamp,
    /// Last response.
    pub to_ns: Timestamp,
    /// True if the capture is longer than two hours and only the hour with the most commands counts.
    pub is_busiest_hour: bool,
    /// One of this number of time windows of 7 s was used. 1 is all of them.
    pub one_window_in: i64,
    pub commands_per_s: f64,
    /// Time of a user per command with nothing outstanding.
    pub think_time_ns: Nanos,
    /// Mean response time of a command.
    pub response_time_ns: Nanos,
    /// Mean response time outside the server: round trip and transfers.
    pub network_ns: Nanos,
    /// Mean number of outstanding commands of a user that has any.
    pub outstanding_per_user: f64,
    /// Bytes per command to the server.
    pub bytes_to_server: f64,
    /// Bytes per command to the client.
    pub bytes_to_client: f64,
    /// Share of each group in the commands, from 0 to 1.
    pub mix: BTreeMap<&'static str, f64>,
}

/// Server times of the captured commands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedStation {
    /// Mean server time of a command.
    pub server_time_ns: Nanos,
    /// Mean server time of a command that the server has alone, with its 95% interval.
    pub unloaded_ns: Bounded<Nanos>,
    /// Part of `unloaded_ns` in which the server handles one command at a time. It limits the rate to its reciprocal.
    pub queueing_ns: Bounded<Nanos>,
    /// Commands that met others at the server.
    pub overlapping_commands: u64,
    /// Most commands at the server at one time.
    pub outstanding_max: u64,
}

/// Predicts the response time for each number of users. `sample` tells which part of the capture the commands are.
pub fn predict_users(
    exchanges: &[Exchange],
    sample: TimeSample,
    identity: Option<UserIdentity>,
    users: &[u32],
) -> Result<UsersPrediction, PredictionError> {
    let identity = identity.unwrap_or_else(|| UserIdentity::of_capture(exchanges));
    let load = LoadOfUsers::new(exchanges, sample, identity)?;
    if load.commands.len() < USERS_COMMANDS_MIN {
        return Err(PredictionError::TooFewCommands(load.commands.len()));
    } else if load.users < USERS_LEAST {
        return Err(PredictionError::OneUser(identity, load.users));
    } else if load.transfer > BULK {
        return Err(PredictionError::BulkTransfers((100.0 * load.transfer).round() as u64));
    }
    let station = ServerStation::new(&load.commands, load.time)?;
    let most = users.iter().copied().max().unwrap_or(1);
    let curves = ResponseCurves::new(&load, &station, f64::from(most));
    let points: Vec<UsersPoint> = users.iter().map(|users| curves.point(*users)).collect();
    Ok(UsersPrediction {
        users_assumptions: assumptions(&load, &station, identity, sample, &points),
        doubled_at: curves.doubled_at(most.saturating_mul(10)),
        users: points,
        load: described_load(&load, identity, sample),
        station: described_station(&station),
    })
}

fn nanos(time: f64) -> Nanos {
    Nanos(time.round() as i64)
}

fn described_load(load: &LoadOfUsers, user_is: UserIdentity, sample: TimeSample) -> CapturedLoad {
    let mut counts: BTreeMap<CommandGroup, u64> = BTreeMap::new();
    load.commands.iter().for_each(|command| *counts.entry(command.group).or_default() += 1);
    let all = load.commands.len() as f64;
    CapturedLoad {
        server: load.server,
        user_is,
        users: load.users,
        commands: load.commands.len() as u64,
        from_ns: load.from,
        to_ns: load.to,
        is_busiest_hour: load.is_busiest_hour,
        one_window_in: sample.every(),
        commands_per_s: all / load.time * 1e9,
        think_time_ns: nanos(load.think),
        response_time_ns: nanos(load.response_time),
        network_ns: nanos(load.network),
        outstanding_per_user: load.parallel,
        bytes_to_server: load.bytes[0],
        bytes_to_client: load.bytes[1],
        mix: counts.into_iter().map(|(group, count)| (group_name(group), count as f64 / all)).collect(),
    }
}

fn described_station(station: &ServerStation) -> CapturedStation {
    let ServerStation { unloaded, queue, is_queue_known, .. } = *station;
    let unloaded = Bounded { low: unloaded.low, best: Some(unloaded.best), high: unloaded.high };
    let queue = Bounded { low: queue.low, best: is_queue_known.then_some(queue.best), high: queue.high };
    CapturedStation {
        server_time_ns: nanos(station.server_time),
        unloaded_ns: unloaded.map(nanos),
        queueing_ns: queue.map(nanos),
        overlapping_commands: station.overlapping as u64,
        outstanding_max: station.outstanding_max as u64,
    }
}

/// Response times by number of users, with the shortest queue that the capture allows, the likely one and the longest.
struct ResponseCurves<'a> {
    load: &'a LoadOfUsers,
    outstanding_max: f64,
    low: SolvedNetwork,
    best: Option<SolvedNetwork>,
    high: SolvedNetwork,
}

impl<'a> ResponseCurves<'a> {
    fn new(load: &'a LoadOfUsers, station: &ServerStation, most: f64) -> ResponseCurves<'a> {
        let customers = (10.0 * most).max(load.users) * load.parallel;
        let solve = |unloaded: f64, queue: f64| {
            let delay = load.network + (unloaded - queue).max(0.0);
            let network = ClosedNetwork { think: load.think * load.parallel, delay, queue: queue.min(unloaded) };
            network.solve(customers.clamp(1.0, CUSTOMERS_MAX.into()).ceil() as usize)
        };
        let ServerStation { unloaded, queue, is_queue_known, .. } = station;
        ResponseCurves {
            load,
            outstanding_max: station.outstanding_max as f64,
            low: solve(unloaded.low, queue.low),
            best: is_queue_known.then(|| solve(unloaded.best, queue.best)),
            high: solve(unloaded.high, queue.high),
        }
    }

    /// Returns the mean number of commands at the server.
    fn at_server(&self, curve: &SolvedNetwork, users: f64) -> f64 {
        let LoadOfUsers { think, parallel, network, .. } = self.load;
        let (customers, response) = (users * parallel, curve.response_time(users * parallel));
        customers * (response - network).max(0.0) / (think * parallel + response).max(1.0)
    }

    /// Returns the factor that widens an interval: 10%, and 10% more for each doubling beyond the most commands
    /// that the capture shows at the server.
    fn widening(&self, curve: &SolvedNetwork, users: f64) -> f64 {
        let beyond = (self.at_server(curve, users) / self.outstanding_max.max(1.0)).log2().max(0.0);
        1.0 + MODEL * (1.0 + beyond)
    }

    /// Returns response times in ns. With the captured users, the bounds include the captured response time. Only the
    /// time above a single user's is uncertain beyond the capture, so that the lower bound never falls.
    fn response_time(&self, users: f64) -> Bounded<f64> {
        let LoadOfUsers { parallel, response_time: captured, .. } = self.load;
        let of = |curve: &SolvedNetwork, users: f64| curve.response_time(users * parallel).max(1.0);
        let off = |curve: &SolvedNetwork| captured / of(curve, self.load.users);
        let alone = of(&self.low, 0.0);
        let lowest = alone / (1.0 + MODEL) + (of(&self.low, users) - alone) / self.widening(&self.low, users);
        let low = lowest * off(&self.low).min(1.0);
        let high = of(&self.high, users) * off(&self.high).max(1.0) * self.widening(&self.high, users);
        Bounded { low, best: self.best.as_ref().map(|best| of(best, users).clamp(low, high)), high }
    }

    fn point(&self, users: u32) -> UsersPoint {
        let users_f = f64::from(users);
        let LoadOfUsers { think, parallel, .. } = self.load;
        let response = self.response_time(users_f);
        let rate = |response: f64| users_f * parallel / (think * parallel + response) * 1e9;
        let busy = |curve: &SolvedNetwork| curve.utilization(users_f * parallel);
        let likely = self.best.as_ref().unwrap_or(&self.high);
        UsersPoint {
            users,
            response_time_ns: response.map(nanos),
            commands_per_s: Bounded {
                low: rate(response.high),
                best: response.best.map(rate),
                high: rate(response.low),
            },
            server_busy: Bounded { low: busy(&self.low), best: self.best.as_ref().map(busy), high: busy(&self.high) },
            is_extrapolated: self.at_server(likely, users_f) > self.outstanding_max,
        }
    }

    fn doubled_at(&self, most: u32) -> DoublingPoint {
        let doubled = 2.0 * self.load.response_time;
        let first = |of: &dyn Fn(Bounded<f64>) -> f64| {
            let (mut below, mut above) = (0, most);
            if of(self.response_time(f64::from(most))) < doubled {
                return None;
            }
            while above - below > 1 {
                let middle = below + (above - below) / 2;
                if of(self.response_time(f64::from(middle))) < doubled { below = middle } else { above = middle }
            }
            Some(above)
        };
        DoublingPoint {
            low: first(&|time| time.high),
            best: self.best.as_ref().and_then(|_| first(&|time| time.best.unwrap_or(0.0))),
            high: first(&|time| time.low),
        }
    }
}

/// Returns what a reader must know about the predictions, one sentence each.
fn assumptions(
    load: &LoadOfUsers,
    station: &ServerStation,
    identity: UserIdentity,
    sample: TimeSample,
    points: &[UsersPoint],
) -> Vec<String> {
    let mut all = vec![
        format!(
            "A user is one {} of the capture and keeps its mix of commands and its think time, {} per command.",
            identity.name(),
            nanos(load.think)
        ),
        queue_in_words(station),
    ];
    if load.is_busiest_hour {
        all.push(format!("Only the busiest hour counts, from {} UTC.", prose::time_of_day(load.from, 0)));
    }
    if !sample.is_whole() {
        all.push(format!("The capture is long: one window of 7 s in {} was used.", sample.every()));
    }
    if load.elsewhere > 0.0 {
        let share = prose::prose_percent((1e4 * load.elsewhere).round() as u64, 10_000);
        all.push(format!("Only server {} counts; others answered {share} of the commands.", load.server));
    }
    if let Some(point) = points.iter().find(|point| point.is_extrapolated) {
        all.push(format!(
            "From {} users on, more commands meet at the server than the {} of the capture: a busier one is needed to \
             know more.",
            prose::thousands(point.users.into()),
            station.outstanding_max
        ));
    }
    all.extend(points.last().map(|point| link_in_words(load, point)));
    all.push(
        "Not predicted: a server that slows down under load, with full caches or memory, and a limit that it has not \
         reached, such as the IOPS of a cloud."
            .to_owned(),
    );
    all
}

fn queue_in_words(station: &ServerStation) -> String {
    let ServerStation { unloaded, queue, is_queue_known, overlapping, .. } = station;
    let [unloaded, low, best, high] =
        [unloaded.best, queue.low, queue.best, queue.high].map(|time| nanos(time).to_string());
    if *is_queue_known {
        let range = prose::from_to(&low, &high);
        return format!(
            "Of {unloaded} of server time per command without others, commands queue for {best} ({range})."
        );
    }
    let begin = match overlapping {
        0 => "No command met another one at the server".to_owned(),
        _ => format!(
            "The {} commands that met others at the server show no queue",
            prose::thousands(*overlapping as u64)
        ),
    };
    format!(
        "{begin}, so the capture only gives bounds: of {unloaded} of server time per command, commands queue for {high} \
         at most."
    )
}

/// Says what the link must carry with the last number of users.
fn link_in_words(load: &LoadOfUsers, point: &UsersPoint) -> String {
    let rate = point.commands_per_s.best.unwrap_or(point.commands_per_s.high);
    let [to_server, to_client] = load.bytes.map(|bytes| bit_rate(bytes * rate));
    format!(
        "The link is left out: {} users need {to_server} to the server and {to_client} to the clients.",
        prose::thousands(point.users.into())
    )
}

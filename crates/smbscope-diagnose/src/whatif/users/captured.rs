//! The load that captured users put on a server, by operational laws.

use super::UserIdentity;
use crate::whatif::PredictionError;
use smbscope_model::{CommandGroup, Exchange, Nanos, TimeKind, Timestamp};
use smbscope_stats::Covered;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Width of the time windows of a sample. 7 s do not divide a minute or an hour, so the sample neither misses nor
/// prefers what happens once a minute.
const WINDOW: i64 = 7_000_000_000;
/// Captures longer than this are reduced to their busiest hour.
const WHOLE: i64 = 2 * HOUR;
const HOUR: i64 = 3_600_000_000_000;
/// Steps in which the busiest hour is searched.
const STEP: i64 = HOUR / 12;

/// Sample of a capture: every second, fourth, eighth, … window of 7 s. It does not depend on the order of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeSample {
    halvings: u32,
}

impl TimeSample {
    /// Returns the sample with half of the windows.
    pub fn half(self) -> TimeSample {
        TimeSample { halvings: (self.halvings + 1).min(62) }
    }

    /// Returns true if the sample holds commands sent at this time.
    pub fn holds(self, time: Timestamp) -> bool {
        time.0.div_euclid(WINDOW).rem_euclid(self.every()) == 0
    }

    pub fn is_whole(self) -> bool {
        self.halvings == 0
    }

    /// Returns n if the sample holds one window in n.
    pub fn every(self) -> i64 {
        1 << self.halvings
    }

    /// Returns the part of a period that is in the sample, in ns.
    fn within(self, from: i64, to: i64) -> i64 {
        let before = |time: i64| {
            let (window, into) = (time.div_euclid(WINDOW), time.rem_euclid(WINDOW));
            let (group, place) = (window.div_euclid(self.every()), window.rem_euclid(self.every()));
            group * WINDOW + if place == 0 { into } else { WINDOW }
        };
        (before(to) - before(from)).max(0)
    }
}

/// A command of a user. Times in ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserCommand {
    user: u32,
    pub(super) group: CommandGroup,
    begin: i64,
    /// The server has the whole request.
    pub(super) arrived: i64,
    /// The server begins its response.
    pub(super) left: i64,
    end: i64,
    transfer: i64,
    bytes: [u64; 2],
}

/// Load of the captured users on one server.
#[derive(Debug, Clone)]
pub(super) struct LoadOfUsers {
    pub(super) server: IpAddr,
    /// Share of the commands that other servers answered.
    pub(super) elsewhere: f64,
    /// In the order of their arrival at the server.
    pub(super) commands: Vec<UserCommand>,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// True if only the busiest hour of the capture counts.
    pub(super) is_busiest_hour: bool,
    /// Sampled part of the time, in ns.
    pub(super) time: f64,
    /// Mean number of users at work: from their first command to their last.
    pub(super) users: f64,
    /// Think time of a user per command, in ns.
    pub(super) think: f64,
    /// Mean response time, in ns.
    pub(super) response_time: f64,
    /// Mean time between request and response outside the server, in ns.
    pub(super) network: f64,
    /// Outstanding commands of a user that has any.
    pub(super) parallel: f64,
    /// Share of the response time in which data is transferred.
    pub(super) transfer: f64,
    /// Mean bytes of a command to the server, to the client.
    pub(super) bytes: [f64; 2],
}

impl LoadOfUsers {
    pub(super) fn new(
        exchanges: &[Exchange],
        sample: TimeSample,
        identity: UserIdentity,
    ) -> Result<LoadOfUsers, PredictionError> {
        let (server, share) = busiest_server(exchanges).ok_or(PredictionError::NoCommands)?;
        let mut commands = commands(exchanges, server, identity);
        let is_busiest_hour = keep_busiest_hour(&mut commands);
        let from = commands.iter().map(|command| command.begin).min().ok_or(PredictionError::NoCommands)?;
        let to = commands.iter().map(|command| command.end).max().unwrap_or(from);
        commands.sort_by_key(|command| command.arrived);
        let count = commands.len() as f64;
        let sum = |of: fn(&UserCommand) -> i64| commands.iter().map(|command| of(command) as f64).sum::<f64>();
        let waited = sum(|command| command.end - command.begin);
        let (present, busy) = presence(&commands, sample);
        let time = (sample.within(from, to) as f64).max(1.0);
        Ok(LoadOfUsers {
            server,
            elsewhere: 1.0 - share,
            from: Timestamp(from),
            to: Timestamp(to),
            is_busiest_hour,
            time,
            users: present / time,
            think: (present - busy).max(0.0) / count,
            response_time: waited / count,
            network: (waited - sum(|command| command.left - command.arrived)).max(0.0) / count,
            parallel: (waited / busy.max(1.0)).max(1.0),
            transfer: sum(|command| command.transfer) / waited.max(1.0),
            bytes: [0, 1].map(|at| commands.iter().map(|command| command.bytes[at] as f64).sum::<f64>() / count),
            commands,
        })
    }
}

/// Returns the server with the most commands, and its share of them.
fn busiest_server(exchanges: &[Exchange]) -> Option<(IpAddr, f64)> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for exchange in exchanges {
        *counts.entry(exchange.endpoints.server.ip()).or_default() += 1;
    }
    let (server, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some((server, most as f64 / exchanges.len() as f64))
}

/// Returns the commands that a server answered. A compound counts as one command, because its members share their
/// packets.
fn commands(exchanges: &[Exchange], server: IpAddr, identity: UserIdentity) -> Vec<UserCommand> {
    let mut users = HashMap::new();
    let mut last = None;
    let mut commands = Vec::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.endpoints.server.ip() == server) {
        let (Some(begin), Some(arrived), Some(end)) =
            (exchange.request.first, exchange.request.last, exchange.response.last)
        else {
            continue;
        };
        let frame = (exchange.flow, begin.packet, arrived.packet);
        if exchange.compounded && last.replace(frame) == Some(frame) {
            continue;
        }
        let next = users.len() as u32;
        let at_server = exchange.time(TimeKind::ServerTime).or_else(|| exchange.time(TimeKind::ServiceTime));
        let Nanos(at_server) = at_server.unwrap_or_default();
        let transfers = [TimeKind::RequestTransfer, TimeKind::ResponseTransfer].map(|kind| exchange.time(kind));
        commands.push(UserCommand {
            user: *users.entry(identity.key(exchange)).or_insert(next),
            group: exchange.group,
            begin: begin.time.0,
            arrived: arrived.time.0,
            left: arrived.time.0.saturating_add(at_server.max(0)),
            end: end.time.0.max(begin.time.0),
            transfer: transfers.into_iter().flatten().map(|Nanos(time)| time).sum(),
            bytes: [exchange.request.bytes, exchange.response.bytes],
        });
    }
    commands
}

/// Reduces a long capture to the hour with the most commands. Returns false if it is short.
fn keep_busiest_hour(commands: &mut Vec<UserCommand>) -> bool {
    let begins = || commands.iter().map(|command| command.begin);
    let (Some(first), Some(last)) = (begins().min(), begins().max()) else { return false };
    if last - first <= WHOLE {
        return false;
    }
    let mut steps = vec![0u64; usize::try_from((last - first) / STEP).unwrap_or(0) + 1];
    begins().for_each(|begin| steps[((begin - first) / STEP) as usize] += 1);
    let hours = steps.windows((HOUR / STEP) as usize).map(|hour| hour.iter().sum::<u64>()).enumerate();
    // The first of several hours with as many commands.
    let busiest = hours.rev().max_by_key(|(_, count)| *count).map_or(0, |(at, _)| at);
    let from = first + busiest as i64 * STEP;
    commands.retain(|command| (from..from + HOUR).contains(&command.begin));
    true
}

/// Returns the time of all users from their first command to their last, and the part of it in which they wait for at
/// least one command, in ns.
fn presence(commands: &[UserCommand], sample: TimeSample) -> (f64, f64) {
    let mut of_users: BTreeMap<u32, Vec<(i64, i64)>> = BTreeMap::new();
    for command in commands {
        of_users.entry(command.user).or_default().push((command.begin, command.end));
    }
    let (mut present, mut busy) = (0, 0);
    for waits in of_users.values_mut() {
        waits.sort_unstable();
        let mut covered = Covered::default();
        let waited = waits.iter().map(|(begin, end)| covered.add(Timestamp(*begin), Timestamp(*end)).0);
        busy += waited.sum::<i64>();
        let until = waits.iter().map(|(_, end)| *end).max().unwrap_or(0);
        present += sample.within(waits[0].0, until);
    }
    (present.max(busy) as f64, busy as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_sample_holds_every_second_window() {
        let sample = TimeSample::default().half();
        let held: Vec<i64> = (0..8).filter(|at| sample.holds(Timestamp(at * WINDOW + 1))).collect();
        assert_eq!((held, sample.every()), (vec![0, 2, 4, 6], 2));
        assert!((0..8).all(|at| TimeSample::default().holds(Timestamp(at * WINDOW))));
        // From the middle of window 0 to the middle of window 3: half of window 0, and window 2.
        assert_eq!(sample.within(WINDOW / 2, 3 * WINDOW + WINDOW / 2), WINDOW / 2 + WINDOW);
        assert_eq!(TimeSample::default().within(5, 3 * WINDOW), 3 * WINDOW - 5);
    }
}

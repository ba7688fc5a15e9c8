//! How long an episode would take with another round trip, a faster or slower server, opens from a cache, or read ahead.
//!
//! A client sends a request because of what it has been answered. So a request is taken to follow the last response that the
//! client had before it, after the same time to think; all that was outstanding together stays so. Each command is given
//! what it took less the round trip that it had, and the new one; the server's part of it is scaled. A response that comes in
//! within a round trip is a part of a window, which TCP's pacing spreads over the round trip: its transfer grows with it. A
//! longer one is bound by the bandwidth and stays. Who reads ahead, as clients of SMB2 and later do, has asked for the next
//! bytes of a file that is read from one end to the other before the program does: the round trips of all such reads but the
//! first two are hidden, the server's time and the transfer stay. What is not modelled: windows that are too small for a longer round trip,
//! load that a faster client puts on the server, and what a client would do otherwise if it knew.

use crate::facts::{Fact, facts_of, is_close, is_open};
use smbscope_model::{Exchange, FileId, FlowId, Group, Nanos, TimeKind, Timestamp, units};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

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
    /// The same with what is different.
    pub then: Nanos,
    /// The round trip that commands have now, on the connection with the longest.
    pub round_trip: Option<Nanos>,
    /// Commands of the episode.
    pub commands: u64,
    /// Commands that would not be sent.
    pub saved: u64,
}

/// The round trip of a connection between client and server, where it is known.
pub type RoundTrips = BTreeMap<FlowId, Nanos>;

/// What would become of an episode; none where it has no command, or its round trips are not known and asked for.
pub fn predict(exchanges: &[Exchange], round_trips: &RoundTrips, scenario: &Scenario) -> Option<Prediction> {
    let mut commands: Vec<Command> =
        exchanges.iter().filter_map(|exchange| Command::of(exchange, round_trips)).collect();
    commands.sort_by_key(|command| (command.start, command.end));
    trip_no_longer_than_any_service(&mut commands);
    let begin = commands.first()?.start;
    let end = commands.iter().map(|command| command.end).max()?;
    if (scenario.round_trip.is_some() || scenario.server.is_some() || scenario.read_ahead)
        && commands.iter().any(|command| command.round_trip.is_none())
    {
        return None;
    }
    let cached = if scenario.cache_opens { cached(exchanges) } else { HashSet::new() };
    let ahead = if scenario.read_ahead { read_in_sequence(exchanges) } else { HashSet::new() };
    // Responses in the order in which they came: the last one before a request is what it follows.
    let mut by_end: Vec<usize> = (0..commands.len()).collect();
    by_end.sort_by_key(|at| (commands[*at].end, *at));
    let mut ends = vec![begin; commands.len()];
    let mut last = begin;
    for at in 0..commands.len() {
        let command = &commands[at];
        let before = by_end.partition_point(|other| commands[*other].end <= command.start);
        // Members of a compound end together, and so does what a cache makes end earlier: the latest of them counts.
        let follows = by_end[..before].last().copied().filter(|other| *other != at);
        let start = match follows {
            Some(other) => ends[other].0.saturating_add((command.start - commands[other].end).0),
            None => command.start.0,
        };
        let took = match cached.contains(&command.key) {
            true => 0,
            false => command.takes(scenario, ahead.contains(&command.key)),
        };
        ends[at] = Timestamp(start.saturating_add(took));
        last = last.max(ends[at]);
    }
    Some(Prediction {
        scenario: scenario.clone(),
        now: end - begin,
        then: last - begin,
        round_trip: commands.iter().filter_map(|command| command.round_trip).max(),
        commands: commands.len() as u64,
        saved: commands.iter().filter(|command| cached.contains(&command.key)).count() as u64,
    })
}

/// The round trip of the handshake may have been a slow one: a command that took less had less. What is left of all others is
/// the server's.
fn trip_no_longer_than_any_service(commands: &mut [Command]) {
    let mut least: HashMap<FlowId, Nanos> = HashMap::new();
    for command in commands.iter().filter(|command| command.service.0 > 0) {
        let known = least.entry(command.key.0).or_insert(command.service);
        *known = command.service.min(*known);
    }
    for command in commands {
        if let (Some(trip), Some(least)) = (&mut command.round_trip, least.get(&command.key.0)) {
            *trip = (*trip).min(*least);
        }
    }
}

/// What tells one exchange of an episode from another.
type Key = (FlowId, Option<u64>, Timestamp);

fn key(exchange: &Exchange) -> Option<Key> {
    Some((exchange.flow, exchange.message_id, exchange.request.first?.time))
}

/// A command with its times.
struct Command {
    key: Key,
    start: Timestamp,
    end: Timestamp,
    round_trip: Option<Nanos>,
    service: Nanos,
    response_transfer: Nanos,
}

impl Command {
    fn of(exchange: &Exchange, round_trips: &RoundTrips) -> Option<Command> {
        // Change notifications and other expected waits hold nobody up.
        if exchange.group == Group::Waiting {
            return None;
        }
        Some(Command {
            key: key(exchange)?,
            start: exchange.request.first?.time,
            end: exchange.response.last?.time,
            round_trip: round_trips.get(&exchange.flow).copied(),
            service: exchange.time(TimeKind::ServiceTime).unwrap_or_default(),
            response_transfer: exchange.time(TimeKind::ResponseTransfer).unwrap_or_default(),
        })
    }

    /// What it would take; asked for ahead, it does not wait for the round trip.
    fn takes(&self, scenario: &Scenario, is_ahead: bool) -> i64 {
        let took = (self.end - self.start).0;
        let Some(whole_trip) = self.round_trip else { return took };
        // What had no server in it had no round trip.
        let trip = whole_trip.0.min(self.service.0);
        let server = self.service.0 - trip;
        let new_server = scenario.server.map_or(server, |factor| (server as f64 * factor) as i64);
        let new_trip = if is_ahead { 0 } else { scenario.round_trip.map_or(trip, |time| time.0) };
        let transfer = self.response_transfer.0;
        let new_transfer = match scenario.round_trip {
            Some(new) if transfer < whole_trip.0 => (transfer as f64 * new.0 as f64 / whole_trip.0 as f64) as i64,
            _ => transfer,
        };
        let rest = took - self.service.0 - transfer;
        rest.saturating_add(new_server).saturating_add(new_trip).saturating_add(new_transfer)
    }
}

/// Reads of a file from one end to the other, a read at a time, from the third on: by then a client knows the pattern.
fn read_in_sequence(exchanges: &[Exchange]) -> HashSet<Key> {
    /// Reads after which a client reads ahead.
    const KNOWN_AFTER: u32 = 2;
    let mut in_order: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.group == Group::Read).collect();
    in_order.sort_by_key(|exchange| exchange.request.first.map(|stamp| stamp.time));
    // Of each open: where the next read begins, when the last one was answered, and how many there were.
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

/// Commands on files that had been opened before and not been written since.
fn cached(exchanges: &[Exchange]) -> HashSet<Key> {
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
            Group::Write => true,
            Group::Directory => !facts_of(exchange).has(Fact::List),
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
        if served && matches!(exchange.group, Group::OpenClose | Group::Read | Group::Attributes) {
            cached.insert(key);
        }
        if is_close(exchange) {
            opens.remove(&open);
        }
    }
    cached
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    const MS: i64 = 1_000_000;

    /// Reads that begin and take so many milliseconds, each with a message id.
    fn episode(times: &[(i64, i64)]) -> Vec<Exchange> {
        let all = times
            .iter()
            .enumerate()
            .map(|(id, (start, took))| Exchange { message_id: Some(id as u64), ..read(start * MS, took * MS) });
        all.collect()
    }

    fn predicted(exchanges: &[Exchange], trip: i64, scenario: &str) -> (i64, i64) {
        let trips = RoundTrips::from([(FlowId(0), Nanos(trip * MS))]);
        let scenario: Scenario = scenario.parse().expect("it is one");
        let found = predict(exchanges, &trips, &scenario).expect("the round trip is known");
        (found.now.0 / MS, found.then.0 / MS)
    }

    #[test]
    fn commands_one_after_the_other_each_wait_for_the_round_trip() {
        // Three commands of 2 ms with 1 ms of thought: 8 ms. With 10 ms instead of 1 ms each takes 9 ms more.
        assert_eq!(predicted(&episode(&[(0, 2), (3, 2), (6, 2)]), 1, "rtt=10ms"), (8, 35));
    }

    #[test]
    fn commands_outstanding_together_wait_for_one_round_trip() {
        // Four at once, of 2, 3, 4 and 5 ms: the longest takes 9 ms more.
        assert_eq!(predicted(&episode(&[(0, 2), (0, 3), (0, 4), (0, 5)]), 1, "rtt=10ms"), (5, 14));
    }

    #[test]
    fn a_server_twice_as_fast_halves_its_part_alone() {
        // 10 ms each, of which 2 are the round trip: 2 + 4 each, and 1 ms of thought.
        assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "server=0.5x"), (21, 13));
        assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "server=0.5x,rtt=0ms"), (21, 9));
    }

    #[test]
    fn reading_ahead_hides_the_round_trips_of_a_sequence() {
        let mut reads = episode(&[(0, 10), (10, 10), (20, 10), (30, 10), (40, 10)]);
        for (n, read) in reads.iter_mut().enumerate() {
            (read.file_id, read.offset, read.length) = (Some(FileId::Smb1(5)), Some(n as u64 * 100), Some(100));
        }
        // Of 10 ms, 8 are the round trip: from the third read on, 2 are left.
        assert_eq!(predicted(&reads, 8, "read-ahead"), (50, 26));
        assert_eq!(predicted(&reads, 8, "read-ahead,rtt=0ms"), (50, 10));
        // Two that are outstanding together are ahead already; and elsewhere in the file, the sequence begins anew.
        reads[3].offset = Some(1_000);
        assert_eq!(predicted(&reads, 8, "read-ahead"), (50, 42));
    }

    #[test]
    fn without_the_round_trip_there_is_no_prediction() {
        let scenario: Scenario = "rtt=10ms".parse().expect("it is one");
        assert_eq!(predict(&episode(&[(0, 2)]), &RoundTrips::new(), &scenario), None);
        assert_eq!(predict(&[], &RoundTrips::new(), &scenario), None);
    }

    #[test]
    fn files_opened_again_cost_nothing_from_a_cache_until_they_are_written() {
        let mut exchanges = Vec::new();
        for n in 0..4u64 {
            for (at, command, group) in [
                (0, smbscope_wire::smb2::Command::CREATE, Group::OpenClose),
                (1, smbscope_wire::smb2::Command::READ, if n == 2 { Group::Write } else { Group::Read }),
                (2, smbscope_wire::smb2::Command::CLOSE, Group::OpenClose),
            ] {
                exchanges.push(Exchange {
                    command: smbscope_model::Command::Smb2(command),
                    group,
                    path: Some("a.ini".into()),
                    file_id: Some(FileId::Smb2 { persistent: 0, volatile: n }),
                    message_id: Some(n * 3 + at),
                    ..read((n * 3 + at) as i64 * MS, MS)
                });
            }
        }
        let scenario: Scenario = "cache-opens".parse().expect("it is one");
        let found = predict(&exchanges, &RoundTrips::new(), &scenario).expect("no round trip is needed");
        // The second open with its read and close; the third is opened from the cache and then writes; what follows a write
        // is opened anew.
        assert_eq!((found.commands, found.saved), (12, 4));
        assert_eq!((found.now, found.then), (Nanos(12 * MS), Nanos(8 * MS)));
    }

    #[test]
    fn a_scenario_is_read_as_it_is_written() {
        let text = "rtt=20ms,server=0.5x,cache-opens,read-ahead";
        assert_eq!(text.parse::<Scenario>().map(|scenario| scenario.to_string()), Ok(text.to_owned()));
        assert_eq!("readahead".parse::<Scenario>(), "read-ahead".parse());
        for wrong in ["", "rtt", "rtt=5", "server=2", "server=-1x", "rtt=-1ms", "speed=2x"] {
            assert!(wrong.parse::<Scenario>().is_err(), "{wrong}");
        }
    }
}

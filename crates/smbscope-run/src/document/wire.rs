//! Matches the commands of a capture with the client's own measurements.

use smbscope_load::engine::result::LoadPointResult;
use smbscope_model::{Command, Exchange, ExchangeOutcome, Nanos, Subcommand, TimeKind, Timestamp};
use smbscope_stats::{CommandRowKey, Summary, SummaryPrecision};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

/// Tolerance when comparing a capture's times with the client's: both come from the system clock, but the client reads
/// it only once and continues with a monotonic one.
const SLACK: Nanos = Nanos(5_000_000);

/// Match key of a command: client endpoint, command, second part of a raw write, message ID. Encrypted commands have
/// only the endpoint, unless the capture is decrypted. SMB1 reuses its message IDs, so times decide between commands with the same key. The two parts of
/// a WRITE_RAW are too close together for that, hence the flag.
type CommandMatchKey = (SocketAddr, Command, bool, u64);

#[derive(Debug)]
pub(crate) struct Wire {
    start: Timestamp,
    end: Timestamp,
    /// Response times of the commands sent in the measured part, by kind.
    pub(crate) commands: BTreeMap<CommandRowKey, Summary>,
    /// Client response time minus wire response time, of matched commands. `None` if the client kept no list of
    /// commands.
    pub(crate) differences: Option<BTreeMap<CommandRowKey, Summary>>,
    waiting: HashMap<CommandMatchKey, VecDeque<Exchange>>,
    decrypted: bool,
}

impl Wire {
    /// Creates an empty table for the measured part of a load point. `client` is the client's list of commands by start
    /// time, if it kept one. With `decrypted`, the capture names its encrypted commands, too.
    pub(crate) fn of_capture(run: &LoadPointResult, client: Option<&[Exchange]>, decrypted: bool) -> Wire {
        let length = Nanos::from(run.duration).0;
        let mut waiting: HashMap<CommandMatchKey, VecDeque<Exchange>> = HashMap::new();
        let complete = client.unwrap_or_default().iter().filter(|exchange| exchange.is_complete());
        for exchange in complete {
            if let Some(name) = name(exchange, decrypted) {
                waiting.entry(name).or_default().push_back(exchange.clone());
            }
        }
        Wire {
            start: run.started,
            end: Timestamp(run.started.0.saturating_add(length)),
            commands: BTreeMap::new(),
            differences: client.map(|_| BTreeMap::new()),
            waiting,
            decrypted,
        }
    }

    /// Adds an exchange of the capture if it matches a client command or started in the measured part. Near the edges
    /// the two clocks may disagree: if the client's list is known, an unmatched command within `SLACK` of an edge is
    /// ignored rather than counted as missed.
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        if exchange.outcome != ExchangeOutcome::Complete {
            return;
        }
        let Some(time) = exchange.time(TimeKind::ResponseTime) else { return };
        let client = self.counterpart(exchange);
        let began = exchange.request.first.map(|stamp| stamp.time);
        if client.is_none() && !began.is_some_and(|began| self.is_measured(began)) {
            return;
        }
        let known = client.as_ref().filter(|_| exchange.command == Command::EncryptedFrame).unwrap_or(exchange);
        let key = (known.command, known.subcommand, known.group);
        self.commands.entry(key).or_insert_with(|| Summary::new(SummaryPrecision::ROW)).record(time);
        let Some(own) = client.and_then(|client| client.time(TimeKind::ResponseTime)) else { return };
        if let Some(differences) = &mut self.differences {
            differences.entry(key).or_insert_with(|| Summary::new(SummaryPrecision::ROW)).record(own - time);
        }
    }

    fn is_measured(&self, began: Timestamp) -> bool {
        let slack = if self.differences.is_some() { SLACK } else { Nanos(0) };
        (began - self.start).0 >= slack.0 && (self.end - began).0 > slack.0
    }

    fn counterpart(&mut self, exchange: &Exchange) -> Option<Exchange> {
        let (begin, end) = (exchange.request.first?.time, exchange.response.last?.time);
        let candidates = self.waiting.get_mut(&name(exchange, self.decrypted)?)?;
        // The capture's commands arrive in order of their end, so a client command that ended well before this one
        // started can't match any later one either.
        while candidates.front().is_some_and(|client| times(client).is_none_or(|(_, last)| (begin - last).0 > SLACK.0))
        {
            candidates.pop_front();
        }
        let (at, _) = candidates
            .iter()
            .enumerate()
            .map_while(|(at, client)| Some((at, times(client)?)))
            .take_while(|(_, (first, _))| (*first - begin).0 <= SLACK.0)
            .filter(|(_, (_, last))| (*last - end).0 >= -SLACK.0)
            .min_by_key(|(_, (first, _))| (*first - begin).0.unsigned_abs())?;
        candidates.remove(at)
    }

    pub(crate) fn count(&self) -> u64 {
        self.commands.values().map(Summary::count).sum()
    }

    /// Number of matched commands. `None` if the client kept no list of commands.
    pub(crate) fn matched(&self) -> Option<u64> {
        self.differences.as_ref().map(|differences| differences.values().map(Summary::count).sum())
    }
}

fn name(exchange: &Exchange, decrypted: bool) -> Option<CommandMatchKey> {
    let client = exchange.endpoints.client;
    if exchange.encrypted && !decrypted || exchange.command == Command::EncryptedFrame {
        return Some((client, Command::EncryptedFrame, false, 0));
    }
    let is_second_part = exchange.subcommand == Some(Subcommand::AsyncPortion);
    Some((client, exchange.command, is_second_part, exchange.message_id?))
}

fn times(exchange: &Exchange) -> Option<(Timestamp, Timestamp)> {
    Some((exchange.request.first?.time, exchange.response.last?.time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::{exchange, run};
    use smbscope_model::CommandGroup;
    use smbscope_wire::smb1;

    impl Wire {
        pub(crate) fn new(run: &LoadPointResult, client: Option<&[Exchange]>) -> Wire {
            Wire::of_capture(run, client, false)
        }
    }

    const READ: Command = crate::document::tests::READ;

    #[test]
    fn commands_are_matched_by_connection_and_message_id() {
        let run = run(1);
        let begin = run.started.0 + 1_000_000_000;
        // Client: 900 µs starting at 1 ms. Wire: 850 µs starting at 1.02 ms.
        let client = [exchange(1, READ, 7, begin + 1_000_000, 900_000)];
        let mut wire = Wire::new(&run, Some(&client));
        wire.record(&exchange(1, READ, 7, begin + 1_020_000, 850_000));
        wire.record(&exchange(2, READ, 7, begin + 1_020_000, 850_000));
        assert_eq!((wire.count(), wire.matched()), (2, Some(1)));
        let key = (READ, None, CommandGroup::Read);
        assert_eq!(wire.differences.unwrap()[&key].figures().p50, Some(Nanos(50_000)));
    }

    #[test]
    fn an_id_that_is_used_again_is_matched_by_its_time() {
        let run = run(1);
        let begin = run.started.0;
        let client = [1, 2].map(|n| exchange(1, READ, 7, begin + n * 1_000_000_000, n * 100_000));
        let mut wire = Wire::new(&run, Some(&client));
        wire.record(&exchange(1, READ, 7, begin + 2_000_010_000, 180_000));
        let key = (READ, None, CommandGroup::Read);
        assert_eq!(wire.differences.unwrap()[&key].figures().p50, Some(Nanos(20_000)));
    }

    #[test]
    fn encrypted_commands_are_known_by_their_times_and_named_by_the_client() {
        let run = run(1);
        let begin = run.started.0;
        let sealed =
            |n, length| Exchange { encrypted: true, ..exchange(1, READ, n, begin + n as i64 * 1_000_000, length) };
        let mut wire = Wire::new(&run, Some(&[sealed(1, 900_000), sealed(2, 500_000)]));
        for (start, length) in [(1_010_000, 880_000), (2_010_000, 470_000)] {
            let hidden = exchange(1, Command::EncryptedFrame, 0, begin + start, length);
            wire.record(&Exchange { encrypted: true, message_id: None, group: CommandGroup::Encrypted, ..hidden });
        }
        assert_eq!((wire.count(), wire.matched()), (2, Some(2)));
        let found = wire.differences.unwrap()[&(READ, None, CommandGroup::Read)].figures();
        assert_eq!((found.min, found.max), (Some(Nanos(20_000)), Some(Nanos(30_000))));
    }

    #[test]
    fn decrypted_commands_are_matched_by_message_id() {
        let run = run(1);
        let begin = run.started.0;
        let sealed = |n, start, length| Exchange { encrypted: true, ..exchange(1, READ, n, begin + start, length) };
        // By time alone, each would be nearest to the other.
        let client = [sealed(1, 1_000_000, 900_000), sealed(2, 1_200_000, 500_000)];
        let mut wire = Wire::of_capture(&run, Some(&client), true);
        wire.record(&sealed(2, 1_050_000, 480_000));
        wire.record(&sealed(1, 1_210_000, 850_000));
        let found = wire.differences.unwrap()[&(READ, None, CommandGroup::Read)].figures();
        assert_eq!((found.min, found.max), (Some(Nanos(20_000)), Some(Nanos(50_000))));
    }

    #[test]
    fn many_commands_of_one_name_are_each_found_once() {
        let run = run(1);
        let begin = run.started.0;
        // Two per millisecond, well within the tolerance between the clocks.
        let all: Vec<Exchange> = (0..2_000).map(|n| exchange(1, READ, 7, begin + n * 500_000, 400_000)).collect();
        let mut wire = Wire::new(&run, Some(&all));
        all.iter().for_each(|exchange| wire.record(exchange));
        assert_eq!(wire.matched(), Some(2_000));
        let found = wire.differences.unwrap()[&(READ, None, CommandGroup::Read)].figures();
        assert_eq!((found.min, found.max), (Some(Nanos(0)), Some(Nanos(0))));
    }

    /// The client's clock is 100 µs late: by time alone, the first part on the wire is nearest to the client's second.
    #[test]
    fn each_part_of_a_raw_write_is_matched_with_itself() {
        const WRITE_RAW: Command = Command::Smb1(smb1::Smb1Command::WRITE_RAW);
        let run = run(1);
        let begin = run.started.0 + 1_000_000_000;
        let data = |start, length| Exchange {
            subcommand: Some(Subcommand::AsyncPortion),
            ..exchange(1, WRITE_RAW, 7, start, length)
        };
        let client = [exchange(1, WRITE_RAW, 7, begin - 100_000, 80_000), data(begin - 10_000, 500_000)];
        let mut wire = Wire::new(&run, Some(&client));
        wire.record(&exchange(1, WRITE_RAW, 7, begin, 70_000));
        wire.record(&data(begin + 90_000, 480_000));
        let found = wire.differences.unwrap();
        let differences: Vec<_> = found.values().map(|summary| summary.figures().max).collect();
        assert_eq!(differences, [Some(Nanos(10_000)), Some(Nanos(20_000))]);
    }

    #[test]
    fn what_began_outside_of_the_measured_part_does_not_count() {
        let run = run(1);
        let mut wire = Wire::new(&run, None);
        for start in [-1, 0, 9_999_999_999, 10_000_000_000] {
            wire.record(&exchange(1, READ, 7, run.started.0 + start, 1_000));
        }
        assert_eq!((wire.count(), wire.matched()), (2, None));
        // By the client's clock these started outside the measured part, so it has none of them except the one in the
        // middle.
        let mut wire = Wire::new(&run, Some(&[]));
        for start in [-1, 0, 4_999_999, 5_000_000_000, 9_995_000_001, 10_000_000_000] {
            wire.record(&exchange(1, READ, 7, run.started.0 + start, 1_000));
        }
        assert_eq!((wire.count(), wire.matched()), (1, Some(0)));
    }
}

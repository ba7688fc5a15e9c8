//! What a capture of a load point shows, put beside what the client measured of the same commands.

use smbscope_load::engine::result::LoadPointResult;
use smbscope_model::{Command, Exchange, ExchangeOutcome, Nanos, Subcommand, TimeKind, Timestamp};
use smbscope_stats::{CommandRowKey, Summary, SummaryPrecision};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

/// By how much a command's times in a capture may lie outside of those in the client: both clocks are the system's, but
/// the client's was read once and went on by itself.
const SLACK: Nanos = Nanos(5_000_000);

/// A command by what both sides know of it: the client's end of the connection, the command and its message id; for
/// encrypted ones the connection alone. SMB1 uses its ids again, so times decide between commands of one name; those of
/// both parts of a WRITE_RAW lie too close together for that, where the clocks differ by more than the first one took.
type CommandMatchKey = (SocketAddr, Command, bool, u64);

/// The commands of a load point on the wire.
#[derive(Debug)]
pub(crate) struct Wire {
    start: Timestamp,
    end: Timestamp,
    /// Response times by kind, of what began in the measured part.
    pub(crate) commands: BTreeMap<CommandRowKey, Summary>,
    /// The client's response time less the wire's, of commands seen from both places; absent where the client's
    /// commands are not known one by one.
    pub(crate) differences: Option<BTreeMap<CommandRowKey, Summary>>,
    /// The client's commands that wait for their counterpart, of each name in the order of time.
    waiting: HashMap<CommandMatchKey, VecDeque<Exchange>>,
}

impl Wire {
    /// For the measured part of a load point, of which the client may have kept its commands, in the order in which they
    /// began.
    pub(crate) fn new(run: &LoadPointResult, client: Option<&[Exchange]>) -> Wire {
        let length = Nanos::from(run.duration).0;
        let mut waiting: HashMap<CommandMatchKey, VecDeque<Exchange>> = HashMap::new();
        let complete = client.unwrap_or_default().iter().filter(|exchange| exchange.is_complete());
        for exchange in complete {
            if let Some(name) = name(exchange) {
                waiting.entry(name).or_default().push_back(exchange.clone());
            }
        }
        Wire {
            start: run.started,
            end: Timestamp(run.started.0.saturating_add(length)),
            commands: BTreeMap::new(),
            differences: client.map(|_| BTreeMap::new()),
            waiting,
        }
    }

    /// Adds an exchange of the capture: where it is one of the client's, or began in the measured part. A command that began
    /// just before an edge by the one clock may have begun after it by the other: where the client's are known one by
    /// one, what began within the slack of an edge is none that the client missed.
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
        // What is encrypted is known by its kind from the client alone.
        let known = client.as_ref().filter(|_| exchange.command == Command::EncryptedFrame).unwrap_or(exchange);
        let key = (known.command, known.subcommand, known.group);
        self.commands.entry(key).or_insert_with(|| Summary::new(SummaryPrecision::ROW)).record(time);
        let Some(own) = client.and_then(|client| client.time(TimeKind::ResponseTime)) else { return };
        if let Some(differences) = &mut self.differences {
            differences.entry(key).or_insert_with(|| Summary::new(SummaryPrecision::ROW)).record(own - time);
        }
    }

    /// Whether the client would have counted what began then, for sure.
    fn is_measured(&self, began: Timestamp) -> bool {
        let slack = if self.differences.is_some() { SLACK } else { Nanos(0) };
        (began - self.start).0 >= slack.0 && (self.end - began).0 > slack.0
    }

    /// The same command in the client; each is given out once.
    fn counterpart(&mut self, exchange: &Exchange) -> Option<Exchange> {
        let (begin, end) = (exchange.request.first?.time, exchange.response.last?.time);
        let candidates = self.waiting.get_mut(&name(exchange)?)?;
        // The capture's commands come in the order of their ends, so whatever ended well before this one began is not to
        // be found any more.
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
            // Of those whose times may be these, the one that began nearest.
            .min_by_key(|(_, (first, _))| (*first - begin).0.unsigned_abs())?;
        candidates.remove(at)
    }

    /// Commands that were timed on the wire.
    pub(crate) fn count(&self) -> u64 {
        self.commands.values().map(Summary::count).sum()
    }

    /// Commands that were seen from both places; absent where the client's are not known one by one.
    pub(crate) fn matched(&self) -> Option<u64> {
        self.differences.as_ref().map(|differences| differences.values().map(Summary::count).sum())
    }
}

/// What both sides know a command by.
fn name(exchange: &Exchange) -> Option<CommandMatchKey> {
    let client = exchange.endpoints.client;
    if exchange.encrypted || exchange.command == Command::EncryptedFrame {
        return Some((client, Command::EncryptedFrame, false, 0));
    }
    let is_second_part = exchange.subcommand == Some(Subcommand::AsyncPortion);
    Some((client, exchange.command, is_second_part, exchange.message_id?))
}

/// First and last.
fn times(exchange: &Exchange) -> Option<(Timestamp, Timestamp)> {
    Some((exchange.request.first?.time, exchange.response.last?.time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::{exchange, run};
    use smbscope_model::CommandGroup;
    use smbscope_wire::smb1;

    const READ: Command = crate::document::tests::READ;

    #[test]
    fn commands_are_matched_by_connection_and_message_id() {
        let run = run(1);
        let begin = run.started.0 + 1_000_000_000;
        // In the client 900 µs from 1 ms on, on the wire 850 µs from 1.02 ms on.
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
    fn many_commands_of_one_name_are_each_found_once() {
        let run = run(1);
        let begin = run.started.0;
        // Two a millisecond: as close as the slack of the clocks.
        let all: Vec<Exchange> = (0..2_000).map(|n| exchange(1, READ, 7, begin + n * 500_000, 400_000)).collect();
        let mut wire = Wire::new(&run, Some(&all));
        all.iter().for_each(|exchange| wire.record(exchange));
        assert_eq!(wire.matched(), Some(2_000));
        let found = wire.differences.unwrap()[&(READ, None, CommandGroup::Read)].figures();
        assert_eq!((found.min, found.max), (Some(Nanos(0)), Some(Nanos(0))));
    }

    /// The client's clock is 100 µs behind: by time alone, the first part on the wire is nearest to the client's second.
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
        // The run takes ten seconds.
        for start in [-1, 0, 9_999_999_999, 10_000_000_000] {
            wire.record(&exchange(1, READ, 7, run.started.0 + start, 1_000));
        }
        assert_eq!((wire.count(), wire.matched()), (2, None));
        // By its own clock the client began them outside, so it has none of these but the one in the middle.
        let mut wire = Wire::new(&run, Some(&[]));
        for start in [-1, 0, 4_999_999, 5_000_000_000, 9_995_000_001, 10_000_000_000] {
            wire.record(&exchange(1, READ, 7, run.started.0 + start, 1_000));
        }
        assert_eq!((wire.count(), wire.matched()), (1, Some(0)));
    }
}

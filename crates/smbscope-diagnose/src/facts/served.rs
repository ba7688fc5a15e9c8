//! Server time by command class, which is judged by comparison with other classes of the same client and server.

use serde::{Deserialize, Serialize};
use smbscope_model::{Command, CommandGroup, Exchange, Nanos, Subcommand, TimeKind};
use smbscope_wire::names::Trans2;
use smbscope_wire::{smb1, smb2};

/// Half octaves from 16 µs to 16 s, plus one open bucket at each end.
const BUCKETS: usize = 42;
const FIRST_EDGE: u64 = 16_000;
const ENCRYPTED_DATA: u64 = 4 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandClass {
    Open,
    Close,
    Read,
    Write,
    Flush,
    Query,
    List,
    Lock,
    Session,
    TreeConnect,
    Other,
    EncryptedRead,
    EncryptedWrite,
    EncryptedOther,
}

impl CommandClass {
    pub(crate) const COUNT: usize = CommandClass::EncryptedOther as usize + 1;

    pub(crate) const ALL: [CommandClass; CommandClass::COUNT] = [
        CommandClass::Open,
        CommandClass::Close,
        CommandClass::Read,
        CommandClass::Write,
        CommandClass::Flush,
        CommandClass::Query,
        CommandClass::List,
        CommandClass::Lock,
        CommandClass::Session,
        CommandClass::TreeConnect,
        CommandClass::Other,
        CommandClass::EncryptedRead,
        CommandClass::EncryptedWrite,
        CommandClass::EncryptedOther,
    ];

    /// Classes that need no storage access on a healthy server: the baseline for those that do.
    pub(crate) const LIGHT: [CommandClass; 3] = [CommandClass::Close, CommandClass::Query, CommandClass::Lock];

    pub(crate) fn from_exchange(exchange: &Exchange) -> Option<CommandClass> {
        let is = |one: smb1::Smb1Command, two: smb2::Smb2Command| {
            exchange.command == Command::Smb1(one) || exchange.command == Command::Smb2(two)
        };
        Some(match exchange.group {
            CommandGroup::Waiting => return None,
            CommandGroup::Encrypted if exchange.response.bytes > ENCRYPTED_DATA => CommandClass::EncryptedRead,
            CommandGroup::Encrypted if exchange.request.bytes > ENCRYPTED_DATA => CommandClass::EncryptedWrite,
            CommandGroup::Encrypted => CommandClass::EncryptedOther,
            CommandGroup::Read => CommandClass::Read,
            CommandGroup::Write if is(smb1::Smb1Command::FLUSH, smb2::Smb2Command::FLUSH) => CommandClass::Flush,
            CommandGroup::Write => CommandClass::Write,
            CommandGroup::OpenClose if is(smb1::Smb1Command::CLOSE, smb2::Smb2Command::CLOSE) => CommandClass::Close,
            // Failed opens are excluded: a scanner only inspects files that exist.
            CommandGroup::OpenClose if exchange.status.is_some_and(|status| status.is_error()) => CommandClass::Other,
            CommandGroup::OpenClose => CommandClass::Open,
            CommandGroup::Attributes => CommandClass::Query,
            CommandGroup::Directory => match (exchange.command, exchange.subcommand) {
                (Command::Smb2(smb2::Smb2Command::QUERY_DIRECTORY), _)
                | (_, Some(Subcommand::Trans2(Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2))) => CommandClass::List,
                _ => CommandClass::Other,
            },
            CommandGroup::Locking => CommandClass::Lock,
            CommandGroup::Session if is(smb1::Smb1Command::TREE_CONNECT_ANDX, smb2::Smb2Command::TREE_CONNECT) => {
                CommandClass::TreeConnect
            }
            CommandGroup::Session
                if is(smb1::Smb1Command::SESSION_SETUP_ANDX, smb2::Smb2Command::SESSION_SETUP)
                    || is(smb1::Smb1Command::NEGOTIATE, smb2::Smb2Command::NEGOTIATE) =>
            {
                CommandClass::Session
            }
            CommandGroup::Session | CommandGroup::Control => CommandClass::Other,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ServerTimeHistogram {
    pub(crate) count: u64,
    /// Sum in ns. Service time is used if the round trip is unknown.
    server: i64,
    pub(crate) longest: i64,
    buckets: Vec<u32>,
}

impl ServerTimeHistogram {
    #[inline]
    pub(crate) fn record(&mut self, time: Nanos) {
        let time = time.0.max(0);
        self.count += 1;
        self.server = self.server.saturating_add(time);
        self.longest = self.longest.max(time);
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        let count = &mut self.buckets[bucket(time)];
        *count = count.saturating_add(1);
    }

    pub(crate) fn merge(&mut self, other: &ServerTimeHistogram) {
        self.count += other.count;
        self.server = self.server.saturating_add(other.server);
        self.longest = self.longest.max(other.longest);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    pub(crate) fn sum(&self) -> Nanos {
        Nanos(self.server)
    }

    pub(crate) fn mean(&self) -> Nanos {
        Nanos(if self.count > 0 { self.server / self.count as i64 } else { 0 })
    }

    /// Returns a quantile, accurate to a quarter of an octave. Zero without samples.
    pub(crate) fn quantile(&self, fraction: f64) -> Nanos {
        let total: u64 = self.buckets.iter().map(|count| u64::from(*count)).sum();
        let rank = total.saturating_sub(1) as f64 * fraction;
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen as f64 > rank {
                return Nanos((middle(at) as i64).min(self.longest));
            }
        }
        Nanos(0)
    }

    pub(crate) fn median(&self) -> Nanos {
        self.quantile(0.5)
    }
}

fn bucket(time: i64) -> usize {
    let scaled = time as u64 / (FIRST_EDGE / 16);
    if scaled < 16 {
        return 0;
    }
    let octave = scaled.ilog2() as usize - 4;
    let upper_half = (scaled >> (octave + 3)) & 1;
    (1 + 2 * octave + upper_half as usize).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> f64 {
    match bucket {
        0 => FIRST_EDGE as f64 / 2.0,
        _ => {
            let low = FIRST_EDGE as f64 * 2f64.powi(((bucket - 1) / 2) as i32);
            low * if (bucket - 1).is_multiple_of(2) { 1.25 } else { 1.75 }
        }
    }
}

pub(crate) fn server_time(exchange: &Exchange) -> Option<Nanos> {
    exchange.time(TimeKind::ServerTime).or_else(|| exchange.time(TimeKind::ServiceTime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_the_half_octave_around_its_middle() {
        for time in [16_000, 23_999, 24_000, 31_999, 32_000, 1_000_000, 80_000_000, 2_000_000_000] {
            let middle = middle(bucket(time));
            assert!((time as f64 / middle - 1.0).abs() <= 0.21, "{time}: {middle}");
        }
        assert_eq!((bucket(0), bucket(15_999), bucket(i64::MAX)), (0, 0, BUCKETS - 1));
    }

    #[test]
    fn the_median_ignores_an_outlier_and_the_mean_does_not() {
        let mut served = ServerTimeHistogram::default();
        (0..9).for_each(|_| served.record(Nanos(1_000_000)));
        served.record(Nanos(91_000_000));
        assert!((700_000..1_300_000).contains(&served.median().0), "{:?}", served.median());
        assert_eq!(served.mean(), Nanos(10_000_000));
    }
}

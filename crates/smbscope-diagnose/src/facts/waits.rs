//! Waits of a client for a server: single long requests, answered or not; refused requests with their retries; and the
//! server time by command class, which is judged by comparison with other classes of the same client and server.

use serde::{Deserialize, Serialize};
use smbscope_model::{
    Command, CommandGroup, Exchange, ExchangeOutcome, FlowId, Nanos, ResponseStatus, Stamp, Subcommand, TimeKind,
    Timestamp,
};
use smbscope_wire::names::Trans2;
use smbscope_wire::status::NtStatus;
use smbscope_wire::{smb1, smb2};
use std::collections::VecDeque;
use std::sync::Arc;

/// Longest waits per client and server.
pub(crate) const WAITS_MAX: usize = 64;
pub(crate) const WAIT_LEAST: Nanos = Nanos(100_000_000);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) flow: FlowId,
    pub(crate) command: Command,
    pub(crate) group: CommandGroup,
    pub(crate) share: Option<Arc<str>>,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) from: Stamp,
    pub(crate) sent: Timestamp,
    pub(crate) answered: Option<Timestamp>,
    pub(crate) to: Option<Stamp>,
    /// True if the server's TCP acknowledged the request. Unknown if the capture does not show it.
    pub(crate) acknowledged: Option<bool>,
    pub(crate) retransmitted: u32,
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) status: Option<ResponseStatus>,
}

impl Wait {
    pub(crate) fn from_exchange(exchange: &Exchange) -> Option<Wait> {
        if exchange.is_subscription() {
            return None;
        }
        let from = exchange.request.first?;
        let to = match exchange.outcome {
            ExchangeOutcome::Complete => Some(exchange.response.last?),
            ExchangeOutcome::Unanswered => None,
            _ => return None,
        };
        if to.is_some_and(|to| to.time - from.time < WAIT_LEAST) {
            return None;
        }
        Some(Wait {
            flow: exchange.flow,
            command: exchange.command,
            group: exchange.group,
            share: exchange.share.clone(),
            path: exchange.path.clone(),
            from,
            sent: exchange.request.last.map_or(from.time, |stamp| stamp.time),
            answered: exchange.response.first.map(|stamp| stamp.time),
            to,
            acknowledged: exchange.acknowledged,
            retransmitted: exchange.retransmitted,
            range: exchange.offset.zip(exchange.length),
            status: exchange.status,
        })
    }

    pub(crate) fn failed(&self) -> bool {
        self.status.is_some_and(|status| status.is_error())
    }

    pub(crate) fn is_conflict(&self) -> bool {
        RefusalReason::from_status(self.status) == Some(RefusalReason::Conflict)
    }

    fn length(&self) -> i64 {
        self.to.map_or(i64::MAX, |to| (to.time - self.from.time).0)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Waits(Vec<Wait>);

impl Waits {
    pub(crate) fn add(&mut self, wait: Wait) {
        let rank = |wait: &Wait| (std::cmp::Reverse(wait.length()), wait.from.time, wait.from.packet, wait.flow);
        if self.0.len() == WAITS_MAX && self.0.last().is_some_and(|last| rank(last) <= rank(&wait)) {
            return;
        }
        let at = self.0.partition_point(|known| rank(known) <= rank(&wait));
        self.0.insert(at, wait);
        self.0.truncate(WAITS_MAX);
    }

    pub(crate) fn merge(&mut self, other: &Waits) {
        other.0.iter().for_each(|wait| self.add(wait.clone()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Wait> {
        self.0.iter()
    }
}

/// Files of a connection with refused opens.
const OPEN_MAX: usize = 16;
/// Pauses longer than this mean that the client abandoned the request.
const GIVE_UP: Nanos = Nanos(10_000_000_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RefusalReason {
    Conflict,
    Full,
    Session,
}

impl RefusalReason {
    pub(crate) const COUNT: usize = 3;

    pub(crate) fn from_status(status: Option<ResponseStatus>) -> Option<RefusalReason> {
        let Some(ResponseStatus::Nt(status)) = status else { return None };
        Some(match status {
            NtStatus::SHARING_VIOLATION | NtStatus::LOCK_NOT_GRANTED | NtStatus::FILE_LOCK_CONFLICT => {
                RefusalReason::Conflict
            }
            NtStatus::DISK_FULL | NtStatus::QUOTA_EXCEEDED | NtStatus::DISK_QUOTA_EXCEEDED => RefusalReason::Full,
            NtStatus::NETWORK_SESSION_EXPIRED => RefusalReason::Session,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    /// Files refused until they succeeded or the client stopped retrying.
    pub(crate) files: u64,
    /// Time from the first refusal to success or the last attempt, summed over files.
    pub(crate) waited: Nanos,
    pub(crate) longest: Option<FileRetries>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileRetries {
    pub(crate) share: Option<Arc<str>>,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) status: NtStatus,
    pub(crate) first: Stamp,
    pub(crate) last: Timestamp,
    pub(crate) count: u64,
    pub(crate) succeeded: bool,
}

impl FileRetries {
    pub(crate) fn length(&self) -> Nanos {
        (self.last - self.first.time).max(Nanos(0))
    }
}

impl Refused {
    fn add(&mut self, attempts: FileRetries) {
        self.files += 1;
        self.waited = Nanos(self.waited.0.saturating_add(attempts.length().0));
        self.keep(attempts);
    }

    fn keep(&mut self, attempts: FileRetries) {
        let rank = |known: &FileRetries| (known.length(), std::cmp::Reverse((known.first.time, known.first.packet)));
        if self.longest.as_ref().is_none_or(|longest| rank(longest) < rank(&attempts)) {
            self.longest = Some(attempts);
        }
    }

    pub(crate) fn merge(&mut self, other: &Refused) {
        self.count += other.count;
        self.files += other.files;
        self.waited = Nanos(self.waited.0.saturating_add(other.waited.0));
        other.longest.iter().for_each(|longest| self.keep(longest.clone()));
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Attempted(VecDeque<(RefusalReason, CommandGroup, FileRetries)>);

impl Attempted {
    pub(crate) fn record(&mut self, exchange: &Exchange, refused: &mut [Refused; RefusalReason::COUNT]) {
        let refusal = RefusalReason::from_status(exchange.status);
        if refusal.is_none() && self.0.is_empty() {
            return;
        }
        let (Some(first), Some(last)) = (exchange.request.first, exchange.response.last) else { return };
        let is_same = |(_, group, known): &(RefusalReason, CommandGroup, FileRetries)| {
            *group == exchange.group && known.path == exchange.path && known.share == exchange.share
        };
        let at = self.0.iter().position(is_same);
        let Some(refusal) = refusal else {
            let succeeded = exchange.status.is_some_and(|status| !status.is_error());
            if let Some((reason, _, mut attempts)) = at.filter(|_| succeeded).and_then(|at| self.0.remove(at)) {
                if first.time - attempts.last <= GIVE_UP {
                    attempts.last = attempts.last.max(last.time);
                    attempts.succeeded = true;
                }
                refused[reason as usize].add(attempts);
            }
            return;
        };
        refused[refusal as usize].count += 1;
        if let Some(at) = at {
            let (_, _, known) = &mut self.0[at];
            if first.time - known.last <= GIVE_UP {
                known.last = known.last.max(last.time);
                known.count += 1;
                return;
            }
            if let Some((reason, _, over)) = self.0.remove(at) {
                refused[reason as usize].add(over);
            }
        }
        if self.0.len() == OPEN_MAX
            && let Some((reason, _, over)) = self.0.pop_front()
        {
            refused[reason as usize].add(over);
        }
        let Some(ResponseStatus::Nt(status)) = exchange.status else { return };
        let attempts = FileRetries {
            share: exchange.share.clone(),
            path: exchange.path.clone(),
            status,
            first,
            last: last.time,
            count: 1,
            succeeded: false,
        };
        self.0.push_back((refusal, exchange.group, attempts));
    }

    pub(crate) fn finish(self, refused: &mut [Refused; RefusalReason::COUNT]) {
        self.0.into_iter().for_each(|(reason, _, attempts)| refused[reason as usize].add(attempts));
    }
}

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

//! Long waits of a client: single requests, answered or not, and refused requests with their retries.

use serde::{Deserialize, Serialize};
use smbscope_model::{
    Command, CommandGroup, Exchange, ExchangeOutcome, FlowId, Nanos, ResponseStatus, Stamp, Timestamp,
};
use smbscope_wire::status::NtStatus;
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

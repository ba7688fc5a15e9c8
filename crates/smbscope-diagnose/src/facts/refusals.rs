//! Refused requests and their retries. A refusal costs the time from the first attempt to success, or to the last
//! attempt.

use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Exchange, Nanos, ResponseStatus, Stamp, Timestamp};
use smbscope_wire::status::NtStatus;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of refused files followed per connection.
const OPEN_MAX: usize = 16;
/// Pauses longer than this mean that the client abandoned the request.
const GIVE_UP: Nanos = Nanos(10_000_000_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RefusalReason {
    /// Another open or lock conflicts.
    Conflict,
    /// Disk full or quota exceeded.
    Full,
    /// Session expired.
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

/// Refusals for one reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    /// Files refused until they succeeded or the client stopped retrying.
    pub(crate) files: u64,
    /// Time from the first refusal to success or the last attempt, summed over files.
    pub(crate) waited: Nanos,
    pub(crate) longest: Option<FileRetries>,
}

/// Attempts at one file.
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

/// Files of a connection that are currently refused, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempted(VecDeque<(RefusalReason, CommandGroup, FileRetries)>);

impl Attempted {
    /// Adds a finished exchange. Completed retries go to `refused`.
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

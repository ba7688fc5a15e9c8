//! What a client puts up with from a server: a hostile one sends without end, or answers with sizes that nobody can work
//! with. Each bound is far above what servers do. `docs/limits.md` lists them.

use super::ClientError;
use std::time::{Duration, Instant};

/// Messages that nobody asked for (breaks of oplocks and leases) between two answers: a user of a workload has some
/// dozens of files open.
pub(super) const BREAKS_MAX: u32 = 4_096;
/// Requests without an answer at which no further break is acknowledged.
pub(super) const UNANSWERED_MAX: usize = 8_192;
/// Interim responses to one request; MS-SMB2 3.3.4.2 has one.
pub(super) const INTERIMS_MAX: u32 = 64;
/// NetBIOS keep-alives between two messages: a day of one every minute and a half.
pub(super) const KEEP_ALIVES_MAX: u32 = 1_024;
/// Entries of a listing, and bytes of names that are kept of it.
pub(super) const LISTED_ENTRIES_MAX: usize = 1 << 20;
pub(super) const LISTED_NAMES_MAX: usize = 64 << 20;
/// SMB2: the smallest MaxTransactSize, MaxReadSize and MaxWriteSize to work with. Servers have 64 KiB and more.
pub(super) const TRANSFER_MIN: u32 = 4_096;
/// SMB1: the smallest MaxBufferSize (MS-CIFS 2.2.4.52.2).
pub(super) const SMB1_BUFFER_MIN: u32 = 1_024;
/// All commands of a connect take at most so many times the timeout of one.
pub(super) const CONNECT_TIMEOUTS: u32 = 4;
/// All commands of one operation (a listing, a large read or write) take at most so many times the timeout of one.
pub(super) const OPERATION_TIMEOUTS: u32 = 10;

/// The time that an operation of several commands may take as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    what: &'static str,
    limit: Duration,
    until: Option<Instant>,
}

impl Allowance {
    /// For one operation, which begins now; `timeout` is that of a command.
    pub(super) fn of_operation(what: &'static str, timeout: Duration) -> Allowance {
        let limit = timeout.saturating_mul(OPERATION_TIMEOUTS);
        Allowance { what, limit, until: Instant::now().checked_add(limit) }
    }

    /// An error where it is used up.
    pub(super) fn check(&self) -> Result<(), ClientError> {
        match self.until {
            Some(until) if Instant::now() >= until => Err(ClientError::TooLong { what: self.what, limit: self.limit }),
            _ => Ok(()),
        }
    }
}

/// Counts what a listing brings: without end, or in a circle, it is abandoned.
#[derive(Debug)]
pub(super) struct ListingGuard {
    entries: usize,
    name_bytes: usize,
    first: Option<u64>,
    allowance: Allowance,
}

impl ListingGuard {
    /// A listing that begins now.
    pub(super) fn new(timeout: Duration) -> ListingGuard {
        let allowance = Allowance::of_operation("a listing", timeout);
        ListingGuard { entries: 0, name_bytes: 0, first: None, allowance }
    }

    /// An answer came whose first entry has this name: the entry that the whole listing began with cannot begin another
    /// answer.
    pub(super) fn answer(&mut self, first_name: &[u8]) -> Result<(), ClientError> {
        let hash = ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(first_name);
        if self.first.is_some_and(|first| first == hash) {
            return Err(ClientError::Protocol("a listing that begins again and again".to_owned()));
        }
        self.first.get_or_insert(hash);
        self.allowance.check()
    }

    /// An entry; `kept_bytes` of its name are kept.
    pub(super) fn entry(&mut self, kept_bytes: usize) -> Result<(), ClientError> {
        self.entries += 1;
        self.name_bytes += kept_bytes;
        if self.entries > LISTED_ENTRIES_MAX || self.name_bytes > LISTED_NAMES_MAX {
            let text = format!("a listing of more than {} entries, or too long names", LISTED_ENTRIES_MAX);
            return Err(ClientError::Protocol(text));
        }
        Ok(())
    }
}

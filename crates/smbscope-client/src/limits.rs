//! Limits that protect the client from a hostile server. Each is far above what real servers do.

use super::ClientError;
use std::time::{Duration, Instant};

/// Oplock breaks between two responses; more: protocol violation. They include other unsolicited messages. A user of a
/// workload has some dozens of files open.
pub(super) const BREAKS_MAX: u32 = 4_096;
/// Outstanding requests at which a break ends the session.
pub(super) const UNANSWERED_MAX: usize = 8_192;
/// Interim responses per request; more: protocol violation. MS-SMB2 3.3.4.2 allows one.
pub(super) const INTERIMS_MAX: u32 = 64;
/// NetBIOS keep-alives between messages; more: protocol violation. It is one every minute and a half for a day.
pub(super) const KEEP_ALIVES_MAX: u32 = 1_024;
/// Entries of a listing; more: protocol violation.
pub(super) const LISTED_ENTRIES_MAX: usize = 1 << 20;
/// Bytes of their names.
pub(super) const LISTED_NAMES_MAX: usize = 64 << 20;
/// Bytes per command that an SMB2 server must allow. MaxTransactSize, MaxReadSize and MaxWriteSize; servers offer 64
/// KiB or more.
pub(super) const TRANSFER_MIN: u32 = 4_096;
/// Bytes per message that an SMB1 server must allow. MaxBufferSize (MS-CIFS 2.2.4.52.2).
pub(super) const SMB1_BUFFER_MIN: u32 = 1_024;
/// Command timeouts that a connect may take.
pub(super) const CONNECT_TIMEOUTS: u32 = 4;
/// Command timeouts that an operation may take. An operation is a listing, or a large read or write.
pub(super) const OPERATION_TIMEOUTS: u32 = 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    what: &'static str,
    limit: Duration,
    until: Option<Instant>,
}

impl Allowance {
    /// `timeout` is the limit for a single command.
    pub(super) fn of_operation(what: &'static str, timeout: Duration) -> Allowance {
        let limit = timeout.saturating_mul(OPERATION_TIMEOUTS);
        Allowance { what, limit, until: Instant::now().checked_add(limit) }
    }

    pub(super) fn check(&self) -> Result<(), ClientError> {
        match self.until {
            Some(until) if Instant::now() >= until => Err(ClientError::TooLong { what: self.what, limit: self.limit }),
            _ => Ok(()),
        }
    }
}

/// Limits a listing, so that an endless or circular one is aborted.
#[derive(Debug)]
pub(super) struct ListingGuard {
    entries: usize,
    name_bytes: usize,
    first: Option<u64>,
    allowance: Allowance,
}

impl ListingGuard {
    pub(super) fn new(timeout: Duration) -> ListingGuard {
        let allowance = Allowance::of_operation("a listing", timeout);
        ListingGuard { entries: 0, name_bytes: 0, first: None, allowance }
    }

    /// Checks the first name of a response: the listing's first entry must not start another response.
    pub(super) fn answer(&mut self, first_name: &[u8]) -> Result<(), ClientError> {
        let hash = ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(first_name);
        if self.first.is_some_and(|first| first == hash) {
            return Err(ClientError::Protocol("a listing that keeps restarting".to_owned()));
        }
        self.first.get_or_insert(hash);
        self.allowance.check()
    }

    pub(super) fn entry(&mut self, kept_bytes: usize) -> Result<(), ClientError> {
        self.entries += 1;
        self.name_bytes += kept_bytes;
        if self.entries > LISTED_ENTRIES_MAX || self.name_bytes > LISTED_NAMES_MAX {
            let text = format!("a listing of more than {} entries, or names that are too long", LISTED_ENTRIES_MAX);
            return Err(ClientError::Protocol(text));
        }
        Ok(())
    }
}

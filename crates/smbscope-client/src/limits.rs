//! Limits that protect the client from a hostile server. Each is far above what real servers do.

use super::{ClientError, ListingEntry};
use smbscope_wire::fscc::DirectoryEntry;
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

/// A listing, which is aborted if it is endless or circular.
#[derive(Debug)]
pub(super) struct Listing<'e> {
    /// Number of entries still wanted.
    pub(super) wanted: usize,
    pub(super) found: usize,
    entries: Option<&'e mut Vec<ListingEntry>>,
    name_bytes: usize,
    first: Option<u64>,
    allowance: Allowance,
}

impl<'e> Listing<'e> {
    /// Starts a listing of at most `most` entries, or of all if it is 0, into `entries`.
    pub(super) fn new(most: usize, mut entries: Option<&'e mut Vec<ListingEntry>>, timeout: Duration) -> Listing<'e> {
        if let Some(entries) = &mut entries {
            entries.clear();
        }
        let wanted = if most == 0 { usize::MAX } else { most };
        let allowance = Allowance::of_operation("a listing", timeout);
        Listing { wanted, found: 0, entries, name_bytes: 0, first: None, allowance }
    }

    /// Takes the wanted entries of a response. Returns their number.
    pub(super) fn take<'a>(
        &mut self,
        response: impl Iterator<Item = DirectoryEntry<'a>>,
    ) -> Result<usize, ClientError> {
        let before = self.found;
        for entry in response.take(self.wanted) {
            if self.found == before {
                self.start_response(entry.name)?;
            }
            self.entry(if self.entries.is_some() { entry.name.len() } else { 0 })?;
            if let Some(entries) = &mut self.entries {
                entries.push(ListingEntry {
                    name: entry.name_text(),
                    size: entry.end_of_file,
                    attributes: entry.file_attributes,
                });
            }
        }
        self.wanted -= self.found - before;
        Ok(self.found - before)
    }

    /// Checks the first name of a response, which must not be the first name of the listing again.
    fn start_response(&mut self, first_name: &[u8]) -> Result<(), ClientError> {
        let hash = ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(first_name);
        if self.first.is_some_and(|first| first == hash) {
            return Err(ClientError::Protocol("a listing that keeps restarting".to_owned()));
        }
        self.first.get_or_insert(hash);
        self.allowance.check()
    }

    /// Counts an entry and the bytes that are kept of its name.
    pub(super) fn entry(&mut self, kept_bytes: usize) -> Result<(), ClientError> {
        self.found += 1;
        self.name_bytes += kept_bytes;
        if self.found > LISTED_ENTRIES_MAX || self.name_bytes > LISTED_NAMES_MAX {
            let text = format!("a listing of more than {LISTED_ENTRIES_MAX} entries, or names that are too long");
            return Err(ClientError::Protocol(text));
        }
        Ok(())
    }
}

//! Grants of the server: credits, which limit the number of outstanding requests, and message IDs (MS-SMB2 3.2.4.1.2,
//! 3.2.4.1.5, 3.2.4.1.6); oplocks and leases (3.2.4.3.8, 3.2.5.19). This client caches nothing, so it acknowledges
//! breaks at once.

use ahash::{HashMap, RandomState};
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::create::oplock;
use smbscope_wire::smb2::messages::create_context::{self, CreateContext};
use smbscope_wire::smb2::messages::oplock_break::{Acknowledgement, Lease, Notification};
use std::collections::VecDeque;

/// Bytes that one credit pays for (3.1.5.2).
pub(super) const BYTES_PER_CREDIT: usize = 65_536;

/// SMB2 credits requested. It is the default limit of Windows and Samba.
const CREDITS_MAX: u32 = 8_192;

#[derive(Debug)]
pub(super) struct ClientCredits {
    /// Message ID of the next request. Each credit spent uses one.
    next_id: u64,
    available: u32,
    asked: u32,
    target: u32,
    /// True if large requests cost more than one credit (dialect 2.1 and later, if the server supports it).
    pub(super) multi: bool,
}

impl ClientCredits {
    pub(super) fn new(target: u16) -> ClientCredits {
        ClientCredits { next_id: 0, available: 1, asked: 0, target: u32::from(target.max(1)), multi: false }
    }

    pub(super) fn charge(&self, bytes: usize) -> u16 {
        if !self.multi {
            return 1;
        }
        u16::try_from(bytes.div_ceil(BYTES_PER_CREDIT).max(1)).unwrap_or(u16::MAX)
    }

    pub(super) fn affords(&self, charge: u32) -> bool {
        self.available >= charge
    }

    pub(super) fn largest(&self) -> usize {
        if self.multi { self.available.max(1) as usize * BYTES_PER_CREDIT } else { BYTES_PER_CREDIT }
    }

    pub(super) fn want(&mut self, credits: u32) {
        self.target = self.target.max(credits.min(CREDITS_MAX));
    }

    /// Pays for a request. Returns its message ID and the number of credits to request with it.
    pub(super) fn spend(&mut self, charge: u16) -> (u64, u16) {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(charge.into());
        self.available = self.available.saturating_sub(charge.into());
        // At least one, so that a server that granted too few can make up for it.
        let missing = self.target.saturating_sub(self.available + self.asked).max(1);
        let ask = u16::try_from(missing).unwrap_or(u16::MAX);
        self.asked += u32::from(ask);
        (id, ask)
    }

    pub(super) fn granted(&mut self, credits: u16, asked: u16) {
        self.asked = self.asked.saturating_sub(asked.into());
        self.available = self.available.saturating_add(credits.into());
    }
}

const READ_HANDLE_WRITE: u32 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RequestedCaching {
    #[default]
    None,
    Oplock,
    LeaseV1,
    LeaseV2,
}

impl RequestedCaching {
    pub(super) fn oplock_level(self) -> u8 {
        match self {
            RequestedCaching::None => oplock::NONE,
            RequestedCaching::Oplock => oplock::BATCH,
            RequestedCaching::LeaseV1 | RequestedCaching::LeaseV2 => oplock::LEASE,
        }
    }

    pub(super) fn context(self, path: &str) -> Option<CreateContext> {
        let (key, state) = (lease_key(path), READ_HANDLE_WRITE);
        let lease = || create_context::Lease { key, state, ..Default::default() };
        match self {
            RequestedCaching::None | RequestedCaching::Oplock => None,
            RequestedCaching::LeaseV1 => Some(CreateContext::LeaseV1(lease())),
            RequestedCaching::LeaseV2 => Some(CreateContext::LeaseV2(lease())),
        }
    }
}

/// All opens of a file share its lease, so its key follows from the path. The client GUID distinguishes clients.
fn lease_key(path: &str) -> [u8; 16] {
    let half = |seed| RandomState::with_seeds(seed, 2, 3, 4).hash_one(path).to_le_bytes();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&half(1));
    key[8..].copy_from_slice(&half(5));
    key
}

#[derive(Debug, Default)]
pub(super) struct Breaks {
    /// Exclusive and batch oplocks, the only ones whose break is acknowledged.
    held: HashMap<FileReference, u8>,
    due: VecDeque<Acknowledgement>,
}

impl Breaks {
    pub(super) fn opened(&mut self, file: FileReference, oplock_level: u8) {
        if matches!(oplock_level, oplock::EXCLUSIVE | oplock::BATCH) {
            self.held.insert(file, oplock_level);
        }
    }

    pub(super) fn closed(&mut self, file: FileReference) {
        if !self.held.is_empty() {
            self.held.remove(&file);
        }
    }

    pub(super) fn take(&mut self, notification: Notification) {
        match notification {
            Notification::Oplock(oplock) => {
                if self.held.remove(&oplock.file).is_some() {
                    self.due.push_back(Acknowledgement::Oplock(oplock));
                }
            }
            Notification::Lease(lease) if lease.waits() => {
                self.due.push_back(Acknowledgement::Lease(Lease { key: lease.key, state: lease.new_state }));
            }
            Notification::Lease(_) => {}
        }
    }

    pub(super) fn due(&mut self) -> Option<Acknowledgement> {
        self.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::messages::oplock_break::{LeaseBreak, Oplock};

    #[test]
    fn the_first_request_asks_for_all_and_later_ones_for_what_they_cost() {
        let mut credits = ClientCredits::new(64);
        assert_eq!(credits.spend(1), (0, 64));
        credits.granted(64, 64);
        assert_eq!(credits.spend(1), (1, 1));
        credits.granted(1, 1);
        credits.multi = true;
        // MS-SMB2 3.1.5.2: (1 MiB - 1) / 65536 + 1
        assert_eq!(credits.charge(1 << 20), 16);
        assert_eq!(credits.spend(16), (2, 16));
        assert_eq!(credits.spend(1), (18, 1), "a request takes as many ids as it costs");
    }

    #[test]
    fn a_server_that_gives_little_is_asked_again() {
        let mut credits = ClientCredits::new(8);
        let (_, ask) = credits.spend(1);
        credits.granted(2, ask);
        assert_eq!(credits.spend(1), (1, 7));
        assert!(credits.affords(1) && !credits.affords(2));
    }

    #[test]
    fn without_multi_credit_requests_64_kib_is_the_most() {
        let credits = ClientCredits::new(64);
        assert_eq!((credits.charge(1 << 20), credits.largest()), (1, 65_536));
    }

    const FILE: FileReference = FileReference { persistent: 1, volatile: 2 };

    #[test]
    fn only_a_break_that_the_server_waits_for_is_acknowledged() {
        let mut breaks = Breaks::default();
        breaks.opened(FILE, oplock::BATCH);
        let oplock = |oplock_level| Oplock { oplock_level, file: FILE };
        breaks.take(Notification::Oplock(oplock(oplock::LEVEL_II)));
        assert_eq!(breaks.due(), Some(Acknowledgement::Oplock(oplock(oplock::LEVEL_II))));
        // 3.2.5.19.1: a break from level II to none is not acknowledged.
        breaks.take(Notification::Oplock(oplock(oplock::NONE)));
        let broken = LeaseBreak { key: [1; 16], current_state: 7, new_state: 3, ..LeaseBreak::default() };
        breaks.take(Notification::Lease(broken));
        assert_eq!(breaks.due(), None);
        breaks.take(Notification::Lease(LeaseBreak { flags: LeaseBreak::ACK_REQUIRED, ..broken }));
        assert_eq!(breaks.due(), Some(Acknowledgement::Lease(Lease { key: [1; 16], state: 3 })));
    }

    #[test]
    fn opens_of_a_path_share_a_lease_key() {
        assert_eq!(lease_key(r"a\b"), lease_key(r"a\b"));
        assert_ne!(lease_key(r"a\b"), lease_key(r"a\c"));
        assert_ne!(lease_key("a")[..8], lease_key("a")[8..]);
    }
}

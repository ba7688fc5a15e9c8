//! Oplocks and leases (MS-SMB2 3.2.4.3.8, 3.2.5.19). This client caches nothing, so it acknowledges breaks at once.

use ahash::{HashMap, RandomState};
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::create::oplock;
use smbscope_wire::smb2::messages::create_context::{self, CreateContext};
use smbscope_wire::smb2::messages::oplock_break::{Acknowledgement, Lease, Notification};
use std::collections::VecDeque;

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

//! OPLOCK_BREAK (MS-SMB2 2.2.23 to 2.2.25): the server revokes an oplock or lease, and the client acknowledges.

use super::message::message;
use super::{Smb2Message, Smb2RequestMessage};
use crate::smb2::{FileReference, Smb2Command};

message! {
    /// Oplock break, acknowledgment and response (2.2.23.1, 2.2.24.1, 2.2.25.1).
    response Oplock: OPLOCK_BREAK, 24 {
        /// Remaining level.
        oplock_level: u8 = 2,
        file: FileReference = 8,
    }
}

message! {
    /// Lease break notification (2.2.23.2).
    response LeaseBreak: OPLOCK_BREAK, 44 {
        /// NewEpoch, from SMB 3.0.
        epoch: u16 = 2,
        flags: u32 = 4,
        /// Client-chosen key of the file.
        key: [u8; 16] = 8,
        current_state: u32 = 24,
        new_state: u32 = 28,
    }
}

impl LeaseBreak {
    /// SMB2_NOTIFY_BREAK_LEASE_FLAG_ACK_REQUIRED: the server waits for an acknowledgment.
    pub const ACK_REQUIRED: u32 = 0x01;

    /// Returns true if the server waits for an acknowledgment.
    pub fn waits(&self) -> bool {
        self.flags & LeaseBreak::ACK_REQUIRED != 0
    }
}

message! {
    /// Lease break acknowledgment and response (2.2.24.2, 2.2.25.2).
    request Lease: OPLOCK_BREAK, 36 {
        /// Client-chosen key of the file.
        key: [u8; 16] = 8,
        /// Remaining state.
        state: u32 = 24,
    }
}

/// Break sent by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    Oplock(Oplock),
    Lease(LeaseBreak),
}

impl Notification {
    /// Parses a message from its header on.
    pub fn parse(message: &[u8]) -> Option<Notification> {
        let oplock = Oplock::parse(message).map(Notification::Oplock);
        oplock.or_else(|| LeaseBreak::parse(message).map(Notification::Lease))
    }
}

/// Acknowledgment from the client. The server's response has the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgement {
    Oplock(Oplock),
    Lease(Lease),
}

impl Acknowledgement {
    /// Parses a message from its header on.
    pub fn parse(message: &[u8]) -> Option<Acknowledgement> {
        let oplock = Oplock::parse(message).map(Acknowledgement::Oplock);
        oplock.or_else(|| Lease::parse(message).map(Acknowledgement::Lease))
    }
}

impl Smb2Message for Acknowledgement {
    const COMMAND: Smb2Command = Smb2Command::OPLOCK_BREAK;

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Acknowledgement::Oplock(oplock) => oplock.emit(out),
            Acknowledgement::Lease(lease) => lease.emit(out),
        }
    }
}

impl Smb2RequestMessage for Acknowledgement {}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;

    #[test]
    fn a_broken_oplock_names_the_open_and_what_is_left() {
        let file = FileReference { persistent: 5, volatile: 6 };
        let acknowledgement = request(&Acknowledgement::Oplock(Oplock { oplock_level: 1, file }));
        // 2.2.23.1 and 2.2.24.1 have the same fields.
        assert_eq!(Notification::parse(&acknowledgement), Some(Notification::Oplock(Oplock { oplock_level: 1, file })));
        assert_eq!(acknowledgement.len(), 64 + 24);
        assert_eq!(Notification::parse(&acknowledgement[..87]), None);
    }

    #[test]
    fn a_broken_lease_says_whether_it_waits() {
        let mut message = response(Smb2Command::OPLOCK_BREAK);
        message.extend([44, 0, 2, 0, 1, 0, 0, 0]);
        message.extend([3; 16]);
        message.extend([7, 0, 0, 0, 3, 0, 0, 0]);
        message.extend([0; 12]);
        let lease = LeaseBreak { epoch: 2, flags: 1, key: [3; 16], current_state: 7, new_state: 3 };
        assert_eq!(Notification::parse(&message), Some(Notification::Lease(lease)));
        let acknowledgement = request(&Acknowledgement::Lease(Lease { key: [3; 16], state: 3 }));
        assert_eq!(acknowledgement[64..72], [36, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(acknowledgement[88..], [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

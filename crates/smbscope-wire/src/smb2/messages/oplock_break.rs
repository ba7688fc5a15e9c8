//! OPLOCK_BREAK (MS-SMB2 2.2.23 to 2.2.25): the server takes an oplock or a lease back, and the client agrees.

use super::Body;
use super::put::Put;
use crate::bytes::{array_at, u8_at, u16_at, u32_at, u64_at};
use crate::smb2::{Command, FileReference};

/// What the server sends of its own accord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// 2.2.23.1
    Oplock {
        /// The open.
        file: FileReference,
        /// The level that is left.
        oplock_level: u8,
    },
    /// 2.2.23.2
    Lease {
        /// The client's name of the file.
        key: [u8; 16],
        /// Whether the server waits for an acknowledgement.
        acknowledge: bool,
        /// What there was.
        current_state: u32,
        /// What is left.
        new_state: u32,
    },
}

impl Notification {
    /// Reads the message from its header on.
    pub fn parse(message: &[u8]) -> Option<Notification> {
        match u16_at(message, 64)? {
            24 => Some(Notification::Oplock {
                file: FileReference { persistent: u64_at(message, 72)?, volatile: u64_at(message, 80)? },
                oplock_level: u8_at(message, 66)?,
            }),
            44 => Some(Notification::Lease {
                key: array_at(message, 72)?,
                acknowledge: u32_at(message, 68)? & 1 != 0,
                current_state: u32_at(message, 88)?,
                new_state: u32_at(message, 92)?,
            }),
            _ => None,
        }
    }
}

/// The client's acknowledgement, which the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgement {
    /// 2.2.24.1
    Oplock {
        /// The open.
        file: FileReference,
        /// The level that is left.
        oplock_level: u8,
    },
    /// 2.2.24.2
    Lease {
        /// The client's name of the file.
        key: [u8; 16],
        /// What is left.
        state: u32,
    },
}

impl Body for Acknowledgement {
    const COMMAND: Command = Command::OPLOCK_BREAK;

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Acknowledgement::Oplock { file, oplock_level } => {
                out.put_u16(24);
                out.put_u8(*oplock_level);
                out.put_u8(0);
                out.put_u32(0);
                out.put_file(*file);
            }
            Acknowledgement::Lease { key, state } => {
                out.put_u16(36);
                out.put_u16(0);
                out.put_u32(0); // Flags
                out.extend_from_slice(key);
                out.put_u32(*state);
                out.put_u64(0); // LeaseDuration
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;

    #[test]
    fn a_broken_oplock_names_the_open_and_what_is_left() {
        let file = FileReference { persistent: 5, volatile: 6 };
        let acknowledgement = request(&Acknowledgement::Oplock { file, oplock_level: 1 });
        // 2.2.23.1 and 2.2.24.1 have the same fields.
        assert_eq!(Notification::parse(&acknowledgement), Some(Notification::Oplock { file, oplock_level: 1 }));
        assert_eq!(acknowledgement.len(), 64 + 24);
        assert_eq!(Notification::parse(&acknowledgement[..87]), None);
    }

    #[test]
    fn a_broken_lease_says_whether_it_waits() {
        let mut message = response(Command::OPLOCK_BREAK);
        message.extend([44, 0, 2, 0, 1, 0, 0, 0]);
        message.extend([3; 16]);
        message.extend([7, 0, 0, 0, 3, 0, 0, 0]);
        message.extend([0; 12]);
        let expected = Notification::Lease { key: [3; 16], acknowledge: true, current_state: 7, new_state: 3 };
        assert_eq!(Notification::parse(&message), Some(expected));
        let acknowledgement = request(&Acknowledgement::Lease { key: [3; 16], state: 3 });
        assert_eq!(acknowledgement[64..72], [36, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(acknowledgement[88..], [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

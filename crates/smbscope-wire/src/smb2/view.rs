//! Operation described by a possibly truncated SMB2 message: file, path, offset, length, subcommand.
//!
//! Offsets are relative to the message's header, like the specification's own offset fields.

use super::messages::network_interface::NetworkInterfaceInfo;
use super::messages::oplock_break;
use super::{FileReference, LockElement, Smb2ClientOffer, Smb2Header, Smb2ServerOffer};
use crate::bytes::CapturedName;
use crate::names::{Fsctl, InfoLevel};
use crate::security::SecurityToken;

/// Result of a CREATE: the open and the caching granted to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    pub file: FileReference,
    pub oplock_level: u8,
    pub lease: Option<GrantedLease>,
    pub create_action: u32,
    pub file_attributes: u32,
    /// LastWriteTime as FILETIME.
    pub last_write: u64,
    pub end_of_file: u64,
}

/// Granted lease (2.2.14.2.10, 2.2.14.2.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedLease {
    pub key: [u8; 16],
    pub state: u32,
}

/// Fields of a request that identify its target (MS-SMB2 2.2.3 to 2.2.39).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb2Request {
    Negotiate(Box<Smb2ClientOffer>),
    SessionSetup {
        /// SMB2_SESSION_FLAG_BINDING: joins an existing session.
        binding: bool,
        identity: Option<SecurityToken>,
    },
    /// 2.2.9: `\\server\share`.
    TreeConnect(CapturedName),
    Create {
        name: CapturedName,
        /// Absent if truncated.
        oplock_level: Option<u8>,
    },
    ReadWrite {
        file: FileReference,
        offset: u64,
        length: u32,
    },
    Lock {
        file: FileReference,
        element: Option<LockElement>,
    },
    Ioctl {
        /// All ones for control codes without a file.
        file: FileReference,
        code: Fsctl,
    },
    Info {
        file: FileReference,
        level: InfoLevel,
        /// Target of FileRenameInformation.
        new_name: Option<CapturedName>,
    },
    File(FileReference),
    /// Anything else, or truncated.
    Other,
}

/// Fields of a response that later messages refer to (MS-SMB2 2.2.4 to 2.2.32).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb2Response {
    Negotiate(Box<Smb2ServerOffer>),
    /// 2.2.6: SessionFlags (1 guest, 2 anonymous, 4 encrypt).
    SessionSetup(u16),
    /// 2.2.10: ShareType (1 disk, 2 pipe, 3 printer).
    TreeConnect(u8),
    Create(Created),
    /// 2.2.23: oplock or lease break.
    Break(oplock_break::Notification),
    /// 2.2.32.5: response to FSCTL_QUERY_NETWORK_INTERFACE_INFO.
    Interfaces(Vec<NetworkInterfaceInfo>),
    /// Anything else, or truncated.
    Other,
}

/// End of the bytes that are parsed of commands unknown or with large requests: the file id at any usual offset.
pub(super) const HEAD: usize = Smb2Header::LENGTH + 32;

/// End of StructureSize and the fields next to it.
pub(super) const RESPONSE_HEAD: usize = Smb2Header::LENGTH + 8;

/// Returns the end of a buffer, but at least the end of the fields.
pub(super) fn reach(place: Option<(usize, usize)>, fields: usize) -> usize {
    place.map_or(0, |(start, length)| start.saturating_add(length)).max(fields)
}

pub(super) fn text(message: &[u8], (start, length): (usize, usize)) -> CapturedName {
    CapturedName::in_range(message, start..start + length, true)
}

#[cfg(test)]
mod tests {
    use super::super::Smb2Command;
    use super::super::header::tests::header;
    use super::super::messages::create;
    use super::*;

    fn with_body(command: u16, flags: u32, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut message = header(command, flags);
        message.resize(at, 0);
        message.extend(bytes);
        message
    }

    #[test]
    fn create_request_names_its_file() {
        let mut message = with_body(5, 0, 108, &[120, 0, 6, 0]);
        message[67] = create::oplock::BATCH;
        message.resize(120, 0);
        let oplock_level = Some(create::oplock::BATCH);
        assert_eq!(Smb2Request::needed(Smb2Command::CREATE, &message), 126);
        message.extend(b"a\0\\\0b\0");
        assert_eq!(
            Smb2Request::parse(Smb2Command::CREATE, &message),
            Smb2Request::Create { name: "a\\b".into(), oplock_level }
        );
        let cut = |length: usize| Smb2Request::parse(Smb2Command::CREATE, &message[..length]);
        let named = |text: &str, missing| Smb2Request::Create {
            name: CapturedName { text: text.into(), missing },
            oplock_level,
        };
        assert_eq!([cut(124), cut(115)], [named("a\\", 2), named("", 11)]);
        assert_eq!(cut(111), Smb2Request::Other, "not even its place is known");
    }

    #[test]
    fn read_request_gives_file_offset_and_length() {
        let mut message = with_body(8, 0, 68, &4096u32.to_le_bytes());
        message.extend(0x1_0000_0000u64.to_le_bytes());
        message.extend(1u64.to_le_bytes());
        message.extend(2u64.to_le_bytes());
        let file = FileReference { persistent: 1, volatile: 2 };
        let expected = Smb2Request::ReadWrite { file, offset: 0x1_0000_0000, length: 4096 };
        assert_eq!(Smb2Request::parse(Smb2Command::READ, &message), expected);
    }

    #[test]
    fn rename_gives_the_new_name() {
        let mut message = with_body(0x11, 0, 66, &[1, 10, 24, 0, 0, 0, 96, 0]);
        message.resize(96 + 16, 0);
        message.extend([4, 0, 0, 0, b'x', 0, b'y', 0]);
        let Smb2Request::Info { new_name, .. } = Smb2Request::parse(Smb2Command::SET_INFO, &message) else { panic!() };
        assert_eq!(new_name, Some("xy".into()));
    }

    #[test]
    fn a_new_name_must_lie_within_the_buffer() {
        // As above, with the buffer 8 bytes further on, and then with a buffer of 4 bytes, too short for a name (found
        // by fuzzing).
        let mut message = with_body(0x11, 0, 66, &[1, 10, 24, 0, 0, 0, 104, 0]);
        message.resize(104 + 16, 0);
        message.extend([4, 0, 0, 0, b'x', 0, b'y', 0]);
        assert_eq!(Smb2Request::needed(Smb2Command::SET_INFO, &message), 104 + 24);
        let new_name = |message: &[u8]| match Smb2Request::parse(Smb2Command::SET_INFO, message) {
            Smb2Request::Info { new_name, .. } => new_name,
            _ => None,
        };
        assert_eq!(new_name(&message), Some("xy".into()));
        assert_eq!(new_name(&message[..message.len() - 2]), Some(CapturedName { text: "x".into(), missing: 2 }));
        message[68] = 4;
        assert_eq!(new_name(&message), None);
    }

    #[test]
    fn error_responses_have_no_file() {
        let message = with_body(5, 1, 64, &[9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message), Smb2Response::Other);
    }

    /// A CREATE response that grants a lease of version 1 (2.2.14, 2.2.14.2.10).
    fn leased(state: u8) -> Vec<u8> {
        let mut message = with_body(5, 1, 64, &[89, 0, create::oplock::LEASE]);
        message.resize(64 + 24, 0);
        message.extend(0x01d9_0000_0000_0001u64.to_le_bytes());
        message.resize(64 + 48, 0);
        message.extend(1234u64.to_le_bytes());
        message.resize(64 + 64, 0);
        message.extend([7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        // 56 bytes of contexts after the fields: Next, name at 16 with 4 bytes, data at 24 with 32.
        message.extend([152, 0, 0, 0, 56, 0, 0, 0]);
        message.extend([0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 24, 0, 32, 0, 0, 0]);
        message.extend(b"RqLs\0\0\0\0");
        message.extend([0xab; 16]);
        message.extend([state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message
    }

    #[test]
    fn a_create_response_has_the_granted_caching() {
        let message = leased(7);
        assert_eq!(Smb2Response::needed(Smb2Command::CREATE, &message[..64]), 144);
        assert_eq!(Smb2Response::needed(Smb2Command::CREATE, &message[..152]), 152 + 56);
        let file = FileReference { persistent: 7, volatile: 8 };
        let (last_write, end_of_file) = (0x01d9_0000_0000_0001, 1234);
        let created = |lease| {
            let oplock_level = create::oplock::LEASE;
            let (create_action, file_attributes) = (0, 0);
            let created =
                Created { file, oplock_level, lease, create_action, file_attributes, last_write, end_of_file };
            Smb2Response::Create(created)
        };
        let lease = GrantedLease { key: [0xab; 16], state: 7 };
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message), created(Some(lease)));
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message[..200]), created(None), "the lease is cut off");
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message[..143]), Smb2Response::Other);
    }
}

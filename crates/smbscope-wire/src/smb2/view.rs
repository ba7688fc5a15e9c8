//! What the bodies of SMB2 messages say about the operation: file, path, offset, length, subcommand; of messages that may
//! be cut.
//!
//! Offsets count from the message's header, as the specification's own offset fields do.

use super::messages::create_context::{CreateContext, CreateContextList};
use super::messages::network_interface::{NetworkInterfaceInfo, interfaces};
use super::messages::*;
use super::offers::{MAX_NEGOTIATE, Smb2ClientOffer, Smb2ServerOffer};
use super::{FileReference, LockElement, Smb2Command, Smb2Header};
use crate::codec::{Buffer, FixedSizeField};
use crate::name::CapturedName;
use crate::names::{Fsctl, InfoLevel};
use crate::security::{SecurityToken, identify};

/// What was opened, and what its client may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// The open.
    pub file: FileReference,
    /// See [`oplock`](create::oplock).
    pub oplock_level: u8,
    /// The lease, where that is what was granted and it is not cut off.
    pub lease: Option<GrantedLease>,
    /// 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub create_action: u32,
    /// MS-FSCC 2.6.
    pub file_attributes: u32,
    /// When the file was written last.
    pub last_write: u64,
    /// Bytes of the file.
    pub end_of_file: u64,
}

/// A lease that was granted (2.2.14.2.10, 2.2.14.2.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedLease {
    /// The client's name for the file.
    pub key: [u8; 16],
    /// 1 read caching, 2 handle caching, 4 write caching.
    pub state: u32,
}

/// The part of a request's body that says what it works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb2Request {
    /// 2.2.3
    Negotiate(Box<Smb2ClientOffer>),
    /// 2.2.5: whether it binds the connection to a session, and what the security token says.
    SessionSetup {
        /// SMB2_SESSION_FLAG_BINDING.
        binding: bool,
        /// Who logs on.
        identity: Option<SecurityToken>,
    },
    /// 2.2.9: `\\server\share`.
    TreeConnect(CapturedName),
    /// 2.2.13
    Create {
        /// Below the share.
        name: CapturedName,
        /// See [`oplock`](create::oplock); absent where it is cut off.
        oplock_level: Option<u8>,
    },
    /// 2.2.19, 2.2.21
    ReadWrite {
        /// The open.
        file: FileReference,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// 2.2.26: the first lock element.
    Lock {
        /// The open.
        file: FileReference,
        /// The first of the ranges.
        element: Option<LockElement>,
    },
    /// 2.2.31
    Ioctl {
        /// The open; all ones for control codes that need none.
        file: FileReference,
        /// The control code.
        code: Fsctl,
    },
    /// 2.2.33, 2.2.37, 2.2.39
    Info {
        /// The open.
        file: FileReference,
        /// What is asked or set.
        level: InfoLevel,
        /// The new name of FileRenameInformation.
        new_name: Option<CapturedName>,
    },
    /// CLOSE, FLUSH, CHANGE_NOTIFY, OPLOCK_BREAK: only the open.
    File(FileReference),
    /// Nothing that is needed, or cut off.
    Other,
}

/// The part of a response's body that later messages refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb2Response {
    /// 2.2.4
    Negotiate(Box<Smb2ServerOffer>),
    /// 2.2.6: SessionFlags: 1 guest, 2 anonymous, 4 encrypt.
    SessionSetup(u16),
    /// 2.2.10: share type (1 disk, 2 pipe, 3 printer).
    TreeConnect(u8),
    /// 2.2.14
    Create(Created),
    /// 2.2.23: the server takes an oplock or a lease back.
    Break(oplock_break::Notification),
    /// 2.2.32.5: the answer to FSCTL_QUERY_NETWORK_INTERFACE_INFO.
    Interfaces(Vec<NetworkInterfaceInfo>),
    /// Nothing that is needed, or cut off.
    Other,
}

impl Smb2Request {
    /// Reads the body of a request; `message` begins with the header.
    pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Request {
        Self::parse_body(command, message).unwrap_or(Smb2Request::Other)
    }

    fn parse_body(command: Smb2Command, m: &[u8]) -> Option<Smb2Request> {
        Some(match command {
            Smb2Command::NEGOTIATE => Smb2Request::Negotiate(Box::new(Smb2ClientOffer::parse(m)?)),
            Smb2Command::SESSION_SETUP => {
                let (start, length) = session_setup::Request::token(m)?;
                let token = &m[start.min(m.len())..(start + length).min(m.len())];
                let binding = session_setup::Request::flags(m)? & session_setup::Request::BINDING != 0;
                Smb2Request::SessionSetup { binding, identity: identify(token) }
            }
            Smb2Command::TREE_CONNECT => Smb2Request::TreeConnect(text(m, tree_connect::Request::path(m)?)),
            Smb2Command::CREATE => Smb2Request::Create {
                name: text(m, create::Request::name(m)?),
                oplock_level: create::Request::oplock_level(m),
            },
            Smb2Command::READ => Smb2Request::ReadWrite {
                file: read::Request::file(m)?,
                offset: read::Request::offset(m)?,
                length: read::Request::length(m)?,
            },
            Smb2Command::WRITE => Smb2Request::ReadWrite {
                file: write::Request::file(m)?,
                offset: write::Request::offset(m)?,
                length: write::Request::length(m)?,
            },
            Smb2Command::LOCK => {
                Smb2Request::Lock { file: lock::Request::file(m)?, element: LockElement::at(m, lock::Request::END) }
            }
            Smb2Command::IOCTL => Smb2Request::Ioctl { file: ioctl::Request::file(m)?, code: ioctl::Request::code(m)? },
            Smb2Command::QUERY_DIRECTORY => {
                let level = InfoLevel::File(query_directory::Request::class(m)?);
                Smb2Request::Info { file: query_directory::Request::file(m)?, level, new_name: None }
            }
            Smb2Command::QUERY_INFO => {
                let level = query_info::Request::level(m)?;
                Smb2Request::Info { file: query_info::Request::file(m)?, level, new_name: None }
            }
            Smb2Command::SET_INFO => {
                let level = set_info::Request::level(m)?;
                Smb2Request::Info { file: set_info::Request::file(m)?, level, new_name: new_name(m, level) }
            }
            Smb2Command::CLOSE => Smb2Request::File(close::Request::file(m)?),
            Smb2Command::FLUSH => Smb2Request::File(flush::Request::file(m)?),
            Smb2Command::CHANGE_NOTIFY => Smb2Request::File(change_notify::Request::file(m)?),
            Smb2Command::OPLOCK_BREAK => Smb2Request::File(oplock_break::Oplock::file(m)?),
            _ => Smb2Request::Other,
        })
    }

    /// How many bytes of a request must be at hand to read what [`Request::parse`] wants; `prefix` holds at least
    /// the header. The answer may grow once more bytes are there.
    pub fn needed(command: Smb2Command, prefix: &[u8]) -> usize {
        match command {
            Smb2Command::SESSION_SETUP => reach(session_setup::Request::token(prefix), session_setup::Request::END),
            Smb2Command::TREE_CONNECT => reach(tree_connect::Request::path(prefix), tree_connect::Request::END),
            Smb2Command::CREATE => reach(create::Request::name(prefix), create::Request::END),
            Smb2Command::SET_INFO => match set_info::Request::level(prefix) {
                Some(InfoLevel::FILE_RENAME_INFORMATION) => reach(rename_buffer(prefix), set_info::Request::END),
                _ => set_info::Request::END,
            },
            Smb2Command::LOCK => lock::Request::END + LockElement::LENGTH,
            Smb2Command::READ => read::Request::END,
            Smb2Command::WRITE => write::Request::END,
            Smb2Command::QUERY_INFO => query_info::Request::END,
            Smb2Command::NEGOTIATE => MAX_NEGOTIATE,
            Smb2Command::LOGOFF | Smb2Command::TREE_DISCONNECT | Smb2Command::ECHO | Smb2Command::CANCEL => {
                Smb2Header::LENGTH
            }
            _ => query_directory::Request::END,
        }
    }
}

impl Smb2Response {
    /// Reads the body of a response; `message` begins with the header.
    pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Response {
        Self::parse_body(command, message).unwrap_or(Smb2Response::Other)
    }

    fn parse_body(command: Smb2Command, m: &[u8]) -> Option<Smb2Response> {
        // An error response has nothing that is needed, and the size of an answer to SESSION_SETUP (2.2.2).
        if error::Smb2ErrorResponse::is_one(m)? && command != Smb2Command::SESSION_SETUP {
            return Some(Smb2Response::Other);
        }
        Some(match command {
            Smb2Command::NEGOTIATE => Smb2Response::Negotiate(Box::new(Smb2ServerOffer::parse(m)?)),
            Smb2Command::SESSION_SETUP => Smb2Response::SessionSetup(session_setup::Response::session_flags(m)?),
            Smb2Command::TREE_CONNECT => Smb2Response::TreeConnect(tree_connect::Response::share_type(m)?),
            Smb2Command::CREATE => Smb2Response::Create(Created::parse(m)?),
            Smb2Command::OPLOCK_BREAK => Smb2Response::Break(oplock_break::Notification::parse(m)?),
            Smb2Command::IOCTL => {
                let (start, length) = listed_interfaces(m)?;
                let output = &m[start.min(m.len())..start.saturating_add(length).min(m.len())];
                Smb2Response::Interfaces(interfaces(output).collect())
            }
            _ => Smb2Response::Other,
        })
    }

    /// How many bytes of a response must be at hand to read what [`Response::parse`] wants; `prefix` holds at least the
    /// header. The answer may grow once more bytes are there.
    pub fn needed(command: Smb2Command, prefix: &[u8]) -> usize {
        match command {
            Smb2Command::NEGOTIATE => MAX_NEGOTIATE,
            Smb2Command::CREATE => match create::Response::oplock_level(prefix) {
                Some(create::oplock::LEASE) => reach(granted_contexts(prefix), create::Response::END),
                _ => create::Response::END - 8,
            },
            Smb2Command::OPLOCK_BREAK => oplock_break::LeaseBreak::END,
            Smb2Command::IOCTL => reach(listed_interfaces(prefix), ioctl::Response::END),
            _ => Smb2Header::LENGTH + 8,
        }
    }
}

/// What a buffer reaches to, and at least the fields.
fn reach(place: Option<(usize, usize)>, fields: usize) -> usize {
    place.map_or(0, |(start, length)| start + length).max(fields)
}

/// Bytes of a CREATE response that are looked at: its contexts follow the fields at once, and have less than a hundred
/// each.
const MAX_CREATE_RESPONSE: usize = 4 * 1024;

/// Where the contexts of a CREATE response are.
pub(super) fn granted_contexts(message: &[u8]) -> Option<(usize, usize)> {
    let (start, length) = create::Response::contexts(message)?;
    (start.saturating_add(length) <= MAX_CREATE_RESPONSE).then_some((start, length))
}

/// Bytes of the answer that are looked at: of 64 interfaces with 152 bytes each (2.2.32.5.1).
const MAX_INTERFACE_LIST: usize = 10 * 1024;

/// Where the interfaces are in the answer to an IOCTL that asks for them.
pub(super) fn listed_interfaces(message: &[u8]) -> Option<(usize, usize)> {
    if ioctl::Response::code(message)? != Fsctl::QUERY_NETWORK_INTERFACE_INFO {
        return None;
    }
    let (start, length) = ioctl::Response::output(message)?;
    (start.saturating_add(length) <= MAX_INTERFACE_LIST).then_some((start, length))
}

impl Created {
    /// Reads the message from its header on; its contexts may be cut off.
    fn parse(m: &[u8]) -> Option<Created> {
        use create::Response;
        let contexts = || granted_contexts(m).and_then(|(start, length)| CreateContextList::parse(m, start, length));
        let oplock_level = Response::oplock_level(m)?;
        let lease = match oplock_level {
            create::oplock::LEASE => contexts().and_then(CreateContextList::lease).and_then(|context| match context {
                CreateContext::LeaseV1(lease) | CreateContext::LeaseV2(lease) => {
                    Some(GrantedLease { key: lease.key, state: lease.state })
                }
                _ => None,
            }),
            _ => None,
        };
        let [_, _, last_write, _] = Response::times(m)?;
        let (file, end_of_file) = (Response::file(m)?, Response::end_of_file(m)?);
        let (create_action, file_attributes) = (Response::create_action(m)?, Response::file_attributes(m)?);
        Some(Created { file, oplock_level, lease, create_action, file_attributes, last_write, end_of_file })
    }
}

/// Bytes of FileRenameInformation that are looked at; no name is longer.
const MAX_RENAME_INFORMATION: usize = 64 * 1024;

/// Where FileRenameInformation begins, and its length.
fn rename_buffer(message: &[u8]) -> Option<(usize, usize)> {
    let (start, length) = set_info::Request::information(message)?;
    Some((start, length.min(MAX_RENAME_INFORMATION)))
}

fn new_name(message: &[u8], level: InfoLevel) -> Option<CapturedName> {
    if level != InfoLevel::FILE_RENAME_INFORMATION {
        return None;
    }
    let (start, length) = rename_buffer(message)?;
    crate::fscc::Data::new_name(message, start..start + length)
        .map(|range| CapturedName::in_range(message, range, true))
}

/// UTF-16 text at an offset.
fn text(message: &[u8], (start, length): (usize, usize)) -> CapturedName {
    CapturedName::in_range(message, start..start + length, true)
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::header;
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
    fn a_new_name_is_looked_for_where_the_buffer_is_and_nowhere_else() {
        // As above, with the buffer 8 bytes further on; then one of 4 bytes, too short for any name (found by fuzzing).
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

    /// A CREATE response that grants a lease of version 1, as 2.2.14 and 2.2.14.2.10 lay it out.
    fn leased(state: u8) -> Vec<u8> {
        let mut message = with_body(5, 1, 64, &[89, 0, create::oplock::LEASE]);
        message.resize(64 + 24, 0);
        message.extend(0x01d9_0000_0000_0001u64.to_le_bytes());
        message.resize(64 + 48, 0);
        message.extend(1234u64.to_le_bytes());
        message.resize(64 + 64, 0);
        message.extend([7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        // The contexts: 56 bytes behind the fields. Next, the name at 16 with 4 bytes, the data at 24 with 32.
        message.extend([152, 0, 0, 0, 56, 0, 0, 0]);
        message.extend([0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 24, 0, 32, 0, 0, 0]);
        message.extend(b"RqLs\0\0\0\0");
        message.extend([0xab; 16]);
        message.extend([state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message
    }

    #[test]
    fn a_create_response_says_what_its_client_may_keep() {
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

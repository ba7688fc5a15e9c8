//! Operation described by a possibly truncated SMB2 message: file, path, offset, length, subcommand.
//!
//! Offsets are relative to the message's header, like the specification's own offset fields.

use super::messages::create_context::{CreateContext, CreateContextList};
use super::messages::network_interface::{NetworkInterfaceInfo, interfaces};
use super::messages::*;
use super::offers::{MAX_NEGOTIATE, Smb2ClientOffer, Smb2ServerOffer};
use super::{FileReference, LockElement, Smb2Command, Smb2Header};
use crate::RequestDetail;
use crate::bytes::{CapturedName, utf16_text};
use crate::codec::{Buffer, FixedSizeField};
use crate::fscc::Data;
use crate::names::{Fsctl, InfoLevel};
use crate::security::{SecurityToken, identify};

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

impl Smb2Request {
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

    /// Returns the number of bytes that [`Smb2Request::parse`] needs. `prefix` holds at least the header; the result
    /// may grow with it.
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
    pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Response {
        Self::parse_body(command, message).unwrap_or(Smb2Response::Other)
    }

    fn parse_body(command: Smb2Command, m: &[u8]) -> Option<Smb2Response> {
        // An error response is of no interest. It is recognised by a StructureSize that SESSION_SETUP responses have,
        // too (2.2.2).
        if error::Smb2ErrorResponse::is_error_response(m)? && command != Smb2Command::SESSION_SETUP {
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

    /// Returns the number of bytes that [`Smb2Response::parse`] needs. `prefix` holds at least the header; the result
    /// may grow with it.
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

/// Returns the end of a buffer, but at least the end of the fields.
fn reach(place: Option<(usize, usize)>, fields: usize) -> usize {
    place.map_or(0, |(start, length)| start + length).max(fields)
}

/// Bytes parsed of a CREATE response. Its contexts directly follow the fields and have less than 100 bytes each.
const MAX_CREATE_RESPONSE: usize = 4 * 1024;

/// Returns offset and length of the contexts in a CREATE response.
pub(super) fn granted_contexts(message: &[u8]) -> Option<(usize, usize)> {
    let (start, length) = create::Response::contexts(message)?;
    (start.saturating_add(length) <= MAX_CREATE_RESPONSE).then_some((start, length))
}

/// Bytes parsed of a server's interface list: 64 of 152 (2.2.32.5.1).
const MAX_INTERFACE_LIST: usize = 10 * 1024;

/// Returns offset and length of the interface list in an IOCTL response.
pub(super) fn listed_interfaces(message: &[u8]) -> Option<(usize, usize)> {
    if ioctl::Response::code(message)? != Fsctl::QUERY_NETWORK_INTERFACE_INFO {
        return None;
    }
    let (start, length) = ioctl::Response::output(message)?;
    (start.saturating_add(length) <= MAX_INTERFACE_LIST).then_some((start, length))
}

impl Created {
    /// Parses a response from its header on; its contexts may be truncated.
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

/// Bytes parsed of a FileRenameInformation. No name is longer.
const MAX_RENAME_INFORMATION: usize = 64 * 1024;

fn rename_buffer(message: &[u8]) -> Option<(usize, usize)> {
    let (start, length) = set_info::Request::information(message)?;
    Some((start, length.min(MAX_RENAME_INFORMATION)))
}

fn new_name(message: &[u8], level: InfoLevel) -> Option<CapturedName> {
    if level != InfoLevel::FILE_RENAME_INFORMATION {
        return None;
    }
    let (start, length) = rename_buffer(message)?;
    Data::new_name(message, start..start + length).map(|range| CapturedName::in_range(message, range, true))
}

fn text(message: &[u8], (start, length): (usize, usize)) -> CapturedName {
    CapturedName::in_range(message, start..start + length, true)
}

/// Parses a request from its header on. Returns `None` if the command has no parameters or they are truncated.
pub fn detail(command: Smb2Command, m: &[u8]) -> Option<RequestDetail> {
    Some(match command {
        Smb2Command::CREATE => RequestDetail::Create {
            desired_access: create::Request::desired_access(m)?,
            share_access: create::Request::share_access(m)?,
            create_disposition: create::Request::create_disposition(m)?,
            create_options: create::Request::create_options(m)?,
            file_attributes: create::Request::file_attributes(m)?,
        },
        Smb2Command::QUERY_DIRECTORY => {
            let (start, length) = query_directory::Request::pattern(m)?;
            let pattern = utf16_text(m.get(start..start.checked_add(length)?)?);
            RequestDetail::QueryDirectory { pattern, flags: query_directory::Request::flags(m)? }
        }
        Smb2Command::SET_INFO => {
            let (start, length) = set_info::Request::information(m)?;
            match set_info::Request::level(m)? {
                InfoLevel::FILE_END_OF_FILE_INFORMATION => RequestDetail::EndOfFile(u64::at(m, start)?),
                InfoLevel::FILE_DISPOSITION_INFORMATION => RequestDetail::Delete(u8::at(m, start)? != 0),
                InfoLevel::FILE_RENAME_INFORMATION => {
                    let name = Data::new_name(m, start..start.checked_add(length)?)?;
                    RequestDetail::Rename { path: utf16_text(m.get(name)?), replace: u8::at(m, start)? != 0 }
                }
                _ => return None,
            }
        }
        Smb2Command::LOCK => {
            let count = u16::at(m, Smb2Header::LENGTH + 2)?;
            RequestDetail::Lock { count, flags: LockElement::at(m, lock::Request::END)?.flags }
        }
        Smb2Command::QUERY_INFO => {
            RequestDetail::QueryInfo { additional_information: query_info::Request::additional_information(m)? }
        }
        _ => return None,
    })
}

/// Returns the number of bytes that [`detail`] needs. `prefix` holds at least the fixed fields.
pub fn detail_needed(command: Smb2Command, prefix: &[u8]) -> usize {
    let reach = |place: Option<(usize, usize)>| place.map_or(0, |(start, length)| start.saturating_add(length));
    match command {
        Smb2Command::QUERY_DIRECTORY => reach(query_directory::Request::pattern(prefix)),
        Smb2Command::SET_INFO => reach(set_info::Request::information(prefix)),
        Smb2Command::QUERY_INFO => query_info::Request::END,
        _ => 0,
    }
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

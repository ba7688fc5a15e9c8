//! What the bodies of SMB2 messages say about the operation: file, path, offset, length, subcommand; of messages that may
//! be cut.
//!
//! Offsets count from the message's header, as the specification's own offset fields do.

use super::messages::*;
use super::{Command, FileReference, Header, LockElement};
use crate::codec::Value;
use crate::name::Name;
use crate::names::{Fsctl, InfoLevel};
use crate::security::{Identity, identify};

/// What the server chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiateResponse {
    /// The dialect revision; 0x02ff asks for another NEGOTIATE.
    pub dialect: u16,
    /// Signing is required.
    pub signing_required: bool,
}

/// The part of a request's body that says what it works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// 2.2.5: whether it binds the connection to a session, and what the security token says.
    SessionSetup {
        /// SMB2_SESSION_FLAG_BINDING.
        binding: bool,
        /// Who logs on.
        identity: Option<Identity>,
    },
    /// 2.2.9: `\\server\share`.
    TreeConnect(Name),
    /// 2.2.13: the name below the share.
    Create(Name),
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
        new_name: Option<Name>,
    },
    /// CLOSE, FLUSH, CHANGE_NOTIFY, OPLOCK_BREAK: only the open.
    File(FileReference),
    /// Nothing that is needed, or cut off.
    Other,
}

/// The part of a response's body that later messages refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// 2.2.4
    Negotiate(NegotiateResponse),
    /// 2.2.6: SessionFlags: 1 guest, 2 anonymous, 4 encrypt.
    SessionSetup(u16),
    /// 2.2.10: share type (1 disk, 2 pipe, 3 printer).
    TreeConnect(u8),
    /// 2.2.14
    Create(FileReference),
    /// Nothing that is needed, or cut off.
    Other,
}

impl Request {
    /// Reads the body of a request; `message` begins with the header.
    pub fn parse(command: Command, message: &[u8]) -> Request {
        Self::parse_body(command, message).unwrap_or(Request::Other)
    }

    fn parse_body(command: Command, m: &[u8]) -> Option<Request> {
        Some(match command {
            Command::SESSION_SETUP => {
                let (start, length) = session_setup::Request::token(m)?;
                let token = &m[start.min(m.len())..(start + length).min(m.len())];
                let binding = session_setup::Request::flags(m)? & session_setup::Request::BINDING != 0;
                Request::SessionSetup { binding, identity: identify(token) }
            }
            Command::TREE_CONNECT => Request::TreeConnect(text(m, tree_connect::Request::path(m)?)),
            Command::CREATE => Request::Create(text(m, create::Request::name(m)?)),
            Command::READ => Request::ReadWrite {
                file: read::Request::file(m)?,
                offset: read::Request::offset(m)?,
                length: read::Request::length(m)?,
            },
            Command::WRITE => Request::ReadWrite {
                file: write::Request::file(m)?,
                offset: write::Request::offset(m)?,
                length: write::Request::length(m)?,
            },
            Command::LOCK => {
                Request::Lock { file: lock::Request::file(m)?, element: LockElement::at(m, lock::Request::END) }
            }
            Command::IOCTL => Request::Ioctl { file: ioctl::Request::file(m)?, code: ioctl::Request::code(m)? },
            Command::QUERY_DIRECTORY => {
                let level = InfoLevel::File(query_directory::Request::class(m)?);
                Request::Info { file: query_directory::Request::file(m)?, level, new_name: None }
            }
            Command::QUERY_INFO => {
                let level = query_info::Request::level(m)?;
                Request::Info { file: query_info::Request::file(m)?, level, new_name: None }
            }
            Command::SET_INFO => {
                let level = set_info::Request::level(m)?;
                Request::Info { file: set_info::Request::file(m)?, level, new_name: new_name(m, level) }
            }
            Command::CLOSE => Request::File(close::Request::file(m)?),
            Command::FLUSH => Request::File(flush::Request::file(m)?),
            Command::CHANGE_NOTIFY => Request::File(change_notify::Request::file(m)?),
            Command::OPLOCK_BREAK => Request::File(oplock_break::Oplock::file(m)?),
            _ => Request::Other,
        })
    }

    /// How many bytes of a request must be at hand to read what [`Request::parse`] wants; `prefix` holds at least
    /// the header. The answer may grow once more bytes are there.
    pub fn needed(command: Command, prefix: &[u8]) -> usize {
        let reach =
            |place: Option<(usize, usize)>, fields| place.map_or(0, |(start, length)| start + length).max(fields);
        match command {
            Command::SESSION_SETUP => reach(session_setup::Request::token(prefix), session_setup::Request::END),
            Command::TREE_CONNECT => reach(tree_connect::Request::path(prefix), tree_connect::Request::END),
            Command::CREATE => reach(create::Request::name(prefix), create::Request::END),
            Command::SET_INFO => match set_info::Request::level(prefix) {
                Some(InfoLevel::FILE_RENAME_INFORMATION) => reach(rename_buffer(prefix), set_info::Request::END),
                _ => set_info::Request::END,
            },
            Command::LOCK => lock::Request::END + LockElement::LENGTH,
            Command::READ => read::Request::END,
            Command::WRITE => write::Request::END,
            Command::QUERY_INFO => query_info::Request::END,
            Command::NEGOTIATE | Command::LOGOFF | Command::TREE_DISCONNECT | Command::ECHO | Command::CANCEL => {
                Header::LENGTH
            }
            _ => query_directory::Request::END,
        }
    }
}

impl Response {
    /// Reads the body of a response; `message` begins with the header.
    pub fn parse(command: Command, message: &[u8]) -> Response {
        Self::parse_body(command, message).unwrap_or(Response::Other)
    }

    fn parse_body(command: Command, m: &[u8]) -> Option<Response> {
        // An error response has nothing that is needed, and the size of an answer to SESSION_SETUP (2.2.2).
        if error::Error::is_one(m)? && command != Command::SESSION_SETUP {
            return Some(Response::Other);
        }
        Some(match command {
            Command::NEGOTIATE => Response::Negotiate(NegotiateResponse::parse(m)?),
            Command::SESSION_SETUP => Response::SessionSetup(session_setup::Response::session_flags(m)?),
            Command::TREE_CONNECT => Response::TreeConnect(tree_connect::Response::share_type(m)?),
            Command::CREATE => Response::Create(create::Response::file(m)?),
            _ => Response::Other,
        })
    }

    /// How many bytes of a response must be at hand to read what [`Response::parse`] wants.
    pub fn needed(command: Command) -> usize {
        match command {
            Command::CREATE => create::Response::END - 8,
            _ => Header::LENGTH + 8,
        }
    }
}

impl NegotiateResponse {
    /// Reads the message from its header on.
    fn parse(m: &[u8]) -> Option<NegotiateResponse> {
        use negotiate::{Response, security_mode::SIGNING_REQUIRED};
        let signing_required = Response::security_mode(m)? & SIGNING_REQUIRED != 0;
        Some(NegotiateResponse { dialect: Response::dialect(m)?, signing_required })
    }
}

/// Bytes of FileRenameInformation that are looked at; no name is longer.
const MAX_RENAME_INFORMATION: usize = 64 * 1024;

/// Where FileRenameInformation begins, and its length.
fn rename_buffer(message: &[u8]) -> Option<(usize, usize)> {
    let (start, length) = set_info::Request::information(message)?;
    Some((start, length.min(MAX_RENAME_INFORMATION)))
}

fn new_name(message: &[u8], level: InfoLevel) -> Option<Name> {
    if level != InfoLevel::FILE_RENAME_INFORMATION {
        return None;
    }
    let (start, length) = rename_buffer(message)?;
    crate::fscc::Data::new_name(message, start..start + length).map(|range| Name::in_range(message, range, true))
}

/// UTF-16 text at an offset.
fn text(message: &[u8], (start, length): (usize, usize)) -> Name {
    Name::in_range(message, start..start + length, true)
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
        message.resize(120, 0);
        assert_eq!(Request::needed(Command::CREATE, &message), 126);
        message.extend(b"a\0\\\0b\0");
        assert_eq!(Request::parse(Command::CREATE, &message), Request::Create("a\\b".into()));
        let cut = |length: usize| Request::parse(Command::CREATE, &message[..length]);
        assert_eq!(cut(124), Request::Create(Name { text: "a\\".into(), missing: 2 }));
        assert_eq!(cut(115), Request::Create(Name { text: String::new(), missing: 11 }));
        assert_eq!(cut(111), Request::Other, "not even its place is known");
    }

    #[test]
    fn read_request_gives_file_offset_and_length() {
        let mut message = with_body(8, 0, 68, &4096u32.to_le_bytes());
        message.extend(0x1_0000_0000u64.to_le_bytes());
        message.extend(1u64.to_le_bytes());
        message.extend(2u64.to_le_bytes());
        let file = FileReference { persistent: 1, volatile: 2 };
        let expected = Request::ReadWrite { file, offset: 0x1_0000_0000, length: 4096 };
        assert_eq!(Request::parse(Command::READ, &message), expected);
    }

    #[test]
    fn rename_gives_the_new_name() {
        let mut message = with_body(0x11, 0, 66, &[1, 10, 24, 0, 0, 0, 96, 0]);
        message.resize(96 + 16, 0);
        message.extend([4, 0, 0, 0, b'x', 0, b'y', 0]);
        let Request::Info { new_name, .. } = Request::parse(Command::SET_INFO, &message) else { panic!() };
        assert_eq!(new_name, Some("xy".into()));
    }

    #[test]
    fn a_new_name_is_looked_for_where_the_buffer_is_and_nowhere_else() {
        // As above, with the buffer 8 bytes further on; then one of 4 bytes, too short for any name (found by fuzzing).
        let mut message = with_body(0x11, 0, 66, &[1, 10, 24, 0, 0, 0, 104, 0]);
        message.resize(104 + 16, 0);
        message.extend([4, 0, 0, 0, b'x', 0, b'y', 0]);
        assert_eq!(Request::needed(Command::SET_INFO, &message), 104 + 24);
        let new_name = |message: &[u8]| match Request::parse(Command::SET_INFO, message) {
            Request::Info { new_name, .. } => new_name,
            _ => None,
        };
        assert_eq!(new_name(&message), Some("xy".into()));
        assert_eq!(new_name(&message[..message.len() - 2]), Some(Name { text: "x".into(), missing: 2 }));
        message[68] = 4;
        assert_eq!(new_name(&message), None);
    }

    #[test]
    fn error_responses_have_no_file() {
        let message = with_body(5, 1, 64, &[9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Response::parse(Command::CREATE, &message), Response::Other);
    }
}

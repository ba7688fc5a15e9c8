//! What the bodies of SMB2 messages say about the operation: file, path, offset, length, subcommand.
//!
//! Offsets count from the message's header, as the specification's own offset fields do.

use super::{Command, Header, NegotiateRequest, NegotiateResponse};
use crate::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::name::Name;
use crate::names::{Fsctl, InfoLevel};

/// SMB2_FILEID (MS-SMB2 2.2.14.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileReference {
    /// Survives a reconnect.
    pub persistent: u64,
    /// Unique on the connection.
    pub volatile: u64,
}

impl FileReference {
    /// In a related compound operation: the file of the operation before (MS-SMB2 3.2.4.1.4).
    pub const RELATED: FileReference = FileReference { persistent: u64::MAX, volatile: u64::MAX };
    /// For control codes that need no file (MS-SMB2 2.2.31): the same bits, which are no file.
    pub const NONE: FileReference = FileReference::RELATED;

    fn at(message: &[u8], offset: usize) -> Option<FileReference> {
        Some(FileReference { persistent: u64_at(message, offset)?, volatile: u64_at(message, offset + 8)? })
    }
}

/// SMB2_LOCK_ELEMENT (MS-SMB2 2.2.26.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockElement {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// 1 shared, 2 exclusive, 4 unlock, 0x10 fail immediately.
    pub flags: u32,
}

impl LockElement {
    /// Whether the request waits until the range is free.
    pub fn waits(&self) -> bool {
        self.flags & 0x14 == 0
    }
}

/// The part of a request's body that says what it works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// 2.2.3
    Negotiate(NegotiateRequest),
    /// 2.2.5: whether it binds the connection to a session, and the security token.
    SessionSetup {
        /// SMB2_SESSION_FLAG_BINDING.
        binding: bool,
        /// GSS token.
        token: &'a [u8],
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
    /// 2.2.20, 2.2.22: bytes read or written.
    Count(u32),
    /// Nothing that is needed, or cut off.
    Other,
}

impl<'a> Request<'a> {
    /// Reads the body of a request; `message` begins with the header.
    pub fn parse(command: Command, message: &'a [u8]) -> Request<'a> {
        Self::parse_body(command, message).unwrap_or(Request::Other)
    }

    fn parse_body(command: Command, m: &'a [u8]) -> Option<Request<'a>> {
        Some(match command {
            Command::NEGOTIATE => Request::Negotiate(NegotiateRequest::parse(m)?),
            Command::SESSION_SETUP => {
                let token = buffer(m, u16_at(m, 76)?, u16_at(m, 78)?);
                Request::SessionSetup { binding: u8_at(m, 66)? & 1 != 0, token }
            }
            Command::TREE_CONNECT => Request::TreeConnect(text(m, u16_at(m, 68)?, u16_at(m, 70)?)),
            Command::CREATE => Request::Create(text(m, u16_at(m, 108)?, u16_at(m, 110)?)),
            Command::READ | Command::WRITE => {
                Request::ReadWrite { file: FileReference::at(m, 80)?, offset: u64_at(m, 72)?, length: u32_at(m, 68)? }
            }
            Command::LOCK => Request::Lock { file: FileReference::at(m, 72)?, element: lock_element(m) },
            Command::IOCTL => Request::Ioctl { file: FileReference::at(m, 72)?, code: Fsctl(u32_at(m, 68)?) },
            Command::QUERY_DIRECTORY => {
                Request::Info { file: FileReference::at(m, 72)?, level: InfoLevel::File(u8_at(m, 66)?), new_name: None }
            }
            Command::QUERY_INFO => {
                Request::Info { file: FileReference::at(m, 88)?, level: info_level(m)?, new_name: None }
            }
            Command::SET_INFO => {
                let level = info_level(m)?;
                Request::Info { file: FileReference::at(m, 80)?, level, new_name: new_name(m, level) }
            }
            Command::CLOSE | Command::FLUSH | Command::CHANGE_NOTIFY | Command::OPLOCK_BREAK => {
                Request::File(FileReference::at(m, 72)?)
            }
            _ => Request::Other,
        })
    }

    /// How many bytes of a request must be at hand to read what [`Request::parse`] wants; `prefix` holds at least
    /// the header. The answer may grow once more bytes are there.
    pub fn needed(command: Command, prefix: &[u8]) -> usize {
        let end_of = |offset: usize| match (u16_at(prefix, offset), u16_at(prefix, offset + 2)) {
            (Some(start), Some(length)) => usize::from(start) + usize::from(length),
            _ => 0,
        };
        match command {
            Command::NEGOTIATE => 100 + 2 * usize::from(u16_at(prefix, 66).unwrap_or(0)).min(64),
            Command::SESSION_SETUP => end_of(76).max(80),
            Command::TREE_CONNECT => end_of(68).max(72),
            Command::CREATE => end_of(108).max(112),
            Command::SET_INFO => match info_level(prefix) {
                Some(InfoLevel::File(RENAME_INFORMATION)) => {
                    rename_buffer(prefix).map_or(96, |range| range.end.max(96))
                }
                _ => 96,
            },
            Command::LOCK => 108,
            Command::READ | Command::WRITE => 96,
            Command::QUERY_INFO => 104,
            Command::LOGOFF | Command::TREE_DISCONNECT | Command::ECHO | Command::CANCEL => Header::LENGTH,
            _ => 92,
        }
    }
}

impl Response {
    /// Reads the body of a response; `message` begins with the header.
    pub fn parse(command: Command, message: &[u8]) -> Response {
        Self::parse_body(command, message).unwrap_or(Response::Other)
    }

    fn parse_body(command: Command, m: &[u8]) -> Option<Response> {
        // An error response has a structure size of 9 and nothing that is needed (2.2.2).
        if u16_at(m, 64)? == 9 && !matches!(command, Command::SESSION_SETUP) {
            return Some(Response::Other);
        }
        Some(match command {
            Command::NEGOTIATE => Response::Negotiate(NegotiateResponse::parse(m)?),
            Command::SESSION_SETUP => Response::SessionSetup(u16_at(m, 66)?),
            Command::TREE_CONNECT => Response::TreeConnect(u8_at(m, 66)?),
            Command::CREATE => Response::Create(FileReference::at(m, 128)?),
            Command::READ | Command::WRITE => Response::Count(u32_at(m, 68)?),
            _ => Response::Other,
        })
    }

    /// How many bytes of a response must be at hand to read what [`Response::parse`] wants.
    pub fn needed(command: Command) -> usize {
        match command {
            // The contexts of 3.1.1 follow the security token.
            Command::NEGOTIATE => 1024,
            Command::CREATE => 144,
            _ => 72,
        }
    }
}

/// FileRenameInformation (MS-FSCC 2.4).
const RENAME_INFORMATION: u8 = 10;
/// Bytes of it that are looked at; no name is longer.
const MAX_RENAME_INFORMATION: u32 = 64 * 1024;

/// Where a SET_INFO request has its buffer (MS-SMB2 2.2.39).
fn rename_buffer(message: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = usize::from(u16_at(message, 72)?);
    Some(start..start + u32_at(message, 68)?.min(MAX_RENAME_INFORMATION) as usize)
}

fn info_level(message: &[u8]) -> Option<InfoLevel> {
    let class = u8_at(message, 67)?;
    Some(match u8_at(message, 66)? {
        1 => InfoLevel::File(class),
        2 => InfoLevel::FileSystem(class),
        3 => InfoLevel::Security,
        4 => InfoLevel::Quota,
        kind => InfoLevel::Other { kind, class },
    })
}

fn lock_element(message: &[u8]) -> Option<LockElement> {
    Some(LockElement { offset: u64_at(message, 88)?, length: u64_at(message, 96)?, flags: u32_at(message, 104)? })
}

/// FILE_RENAME_INFORMATION_TYPE_2 (MS-FSCC 2.4.42.2): the name follows 20 bytes of other fields.
fn new_name(message: &[u8], level: InfoLevel) -> Option<Name> {
    if level != InfoLevel::File(RENAME_INFORMATION) {
        return None;
    }
    let range = rename_buffer(message)?;
    let length = u32_at(message.get(..range.end.min(message.len()))?, range.start + 16)? as usize;
    let start = range.start + 20;
    let end = start.checked_add(length).filter(|end| *end <= range.end)?;
    Some(Name::utf16(message, start..end))
}

fn buffer(message: &[u8], offset: u16, length: u16) -> &[u8] {
    let start = usize::from(offset).min(message.len());
    let end = (start + usize::from(length)).min(message.len());
    &message[start..end]
}

/// UTF-16 text at an offset.
fn text(message: &[u8], offset: u16, length: u16) -> Name {
    let start = usize::from(offset);
    Name::utf16(message, start..start + usize::from(length))
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

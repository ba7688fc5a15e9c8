//! SMB2 messages as tests need them (MS-SMB2 2.2): the fields that an analysis reads, zeros elsewhere.

use smbscope_wire::smb2::{Command, FileReference, PROTOCOL_ID, TRANSFORM_ID, TransformHeader, flags};

/// STATUS_PENDING.
pub const STATUS_PENDING: u32 = 0x0000_0103;
/// STATUS_CANCELLED.
pub const STATUS_CANCELLED: u32 = 0xc000_0120;
/// STATUS_MORE_PROCESSING_REQUIRED.
pub const STATUS_MORE_PROCESSING: u32 = 0xc000_0016;
/// STATUS_OBJECT_NAME_NOT_FOUND.
pub const STATUS_NOT_FOUND: u32 = 0xc000_0034;

/// A message, or a member of a compound.
#[derive(Debug, Clone)]
pub struct Message {
    command: Command,
    message_id: u64,
    flags: u32,
    status: u32,
    credits: u16,
    tree_id: u32,
    session_id: u64,
    async_id: Option<u64>,
    body: Vec<u8>,
}

impl Message {
    fn new(command: Command, message_id: u64, flags: u32, body: Vec<u8>) -> Message {
        Message {
            command,
            message_id,
            flags,
            status: 0,
            credits: 1,
            tree_id: 1,
            session_id: 0x11,
            async_id: None,
            body,
        }
    }

    /// In this session; 0x11 otherwise.
    pub fn session(mut self, session_id: u64) -> Message {
        self.session_id = session_id;
        self
    }

    /// In this tree; 1 otherwise.
    pub fn tree(mut self, tree_id: u32) -> Message {
        self.tree_id = tree_id;
        self
    }

    /// With this status.
    pub fn status(mut self, status: u32) -> Message {
        self.status = status;
        self
    }

    /// An asynchronous message: it carries an async id instead of a tree.
    pub fn asynchronous(mut self, async_id: u64) -> Message {
        self.flags |= flags::ASYNC_COMMAND;
        self.async_id = Some(async_id);
        self
    }

    /// Related to the member before it.
    pub fn related(mut self) -> Message {
        self.flags |= flags::RELATED_OPERATIONS;
        self
    }

    /// With the flag of a signed message.
    pub fn signed(mut self) -> Message {
        self.flags |= flags::SIGNED;
        self
    }

    fn encode(&self, next_command: u32) -> Vec<u8> {
        let mut bytes = PROTOCOL_ID.to_vec();
        bytes.extend(64u16.to_le_bytes());
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(self.status.to_le_bytes());
        bytes.extend(self.command.0.to_le_bytes());
        bytes.extend(self.credits.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(next_command.to_le_bytes());
        bytes.extend(self.message_id.to_le_bytes());
        match self.async_id {
            Some(async_id) => bytes.extend(async_id.to_le_bytes()),
            None => {
                bytes.extend(0xfeffu32.to_le_bytes());
                bytes.extend(self.tree_id.to_le_bytes());
            }
        }
        bytes.extend(self.session_id.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(&self.body);
        bytes
    }
}

impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Vec<u8> {
        message.encode(0)
    }
}

/// Several messages in one frame.
pub fn compound(members: &[Message]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let is_last = index + 1 == members.len();
        let padded = (64 + member.body.len()).next_multiple_of(8);
        let start = bytes.len();
        bytes.extend(member.encode(if is_last { 0 } else { padded as u32 }));
        if !is_last {
            bytes.resize(start + padded, 0);
        }
    }
    bytes
}

/// A frame in a TRANSFORM_HEADER, around a message of this length that nobody can read.
pub fn encrypted(session_id: u64, plain_length: usize) -> Vec<u8> {
    let mut bytes = TRANSFORM_ID.to_vec();
    bytes.resize(36, 0x5a);
    bytes.extend((plain_length as u32).to_le_bytes());
    bytes.extend([0, 0, 1, 0]);
    bytes.extend(session_id.to_le_bytes());
    bytes.resize(TransformHeader::LENGTH + plain_length, 0xa5);
    bytes
}

fn request(command: Command, message_id: u64, body: Vec<u8>) -> Message {
    Message::new(command, message_id, 0, body)
}

fn answer(command: Command, message_id: u64, body: Vec<u8>) -> Message {
    Message::new(command, message_id, flags::SERVER_TO_REDIR, body)
}

/// A body built field by field.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn u8(mut self, value: u8) -> Body {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Body {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Body {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Body {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn file(self, volatile: u64) -> Body {
        let file = file(volatile);
        self.u64(file.persistent).u64(file.volatile)
    }

    /// Zeros up to an offset from the header.
    fn up_to(mut self, offset: usize) -> Body {
        self.0.resize(offset - 64, 0);
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Body {
        self.0.extend(bytes);
        self
    }
}

/// The FileId that tests call by a number; all ones is that of a related operation.
pub fn file(number: u64) -> FileReference {
    if number == u64::MAX { FileReference::RELATED } else { FileReference { persistent: 0x100, volatile: number } }
}

/// The file of the operation before, in a related compound.
pub const RELATED: u64 = u64::MAX;

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// 2.2.3
pub fn negotiate(message_id: u64, dialects: &[u16]) -> Message {
    let body = Body::default().u16(36).u16(dialects.len() as u16).u16(1).up_to(100);
    let body = dialects.iter().fold(body, |body, dialect| body.u16(*dialect));
    request(Command::NEGOTIATE, message_id, body.0).session(0).tree(0)
}

/// 2.2.4
pub fn negotiate_response(message_id: u64, dialect: u16) -> Message {
    let body = Body::default().u16(65).u16(1).u16(dialect).up_to(64 + 64);
    answer(Command::NEGOTIATE, message_id, body.0).session(0).tree(0)
}

/// 2.2.5, with an NTLMSSP AUTHENTICATE_MESSAGE.
pub fn session_setup(message_id: u64, domain: &str, user: &str) -> Message {
    let token = ntlm_authenticate(domain, user);
    let body = Body::default().u16(25).up_to(76).u16(88).u16(token.len() as u16).up_to(88).bytes(&token);
    request(Command::SESSION_SETUP, message_id, body.0).session(0).tree(0)
}

/// 2.2.5, with an NTLMSSP NEGOTIATE_MESSAGE.
pub fn session_setup_begin(message_id: u64) -> Message {
    let token = b"NTLMSSP\0\x01\0\0\0\x07\x82\x08\xa2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let body = Body::default().u16(25).up_to(76).u16(88).u16(token.len() as u16).up_to(88).bytes(token);
    request(Command::SESSION_SETUP, message_id, body.0).session(0).tree(0)
}

/// 2.2.6
pub fn session_setup_response(message_id: u64, session_id: u64) -> Message {
    let body = Body::default().u16(9).u16(0).u16(72).u16(0);
    answer(Command::SESSION_SETUP, message_id, body.0).session(session_id).tree(0)
}

/// An NTLM AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3) that names a user.
pub fn ntlm_authenticate(domain: &str, user: &str) -> Vec<u8> {
    let (domain, user) = (utf16(domain), utf16(user));
    let mut bytes = b"NTLMSSP\0\x03\0\0\0".to_vec();
    let mut payload = Vec::new();
    let response = [7u8; 24];
    for text in [&[][..], &response, &domain, &user, &[], &[]] {
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend((64 + payload.len() as u32).to_le_bytes());
        payload.extend_from_slice(text);
    }
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// 2.2.7
pub fn logoff(message_id: u64) -> Message {
    request(Command::LOGOFF, message_id, Body::default().u16(4).u16(0).0)
}

/// 2.2.9: `\\server\share`.
pub fn tree_connect(message_id: u64, path: &str) -> Message {
    let path = utf16(path);
    let body = Body::default().u16(9).u16(0).u16(72).u16(path.len() as u16).bytes(&path);
    request(Command::TREE_CONNECT, message_id, body.0).tree(0)
}

/// 2.2.10
pub fn tree_connect_response(message_id: u64, tree_id: u32) -> Message {
    answer(Command::TREE_CONNECT, message_id, Body::default().u16(16).u8(1).up_to(80).0).tree(tree_id)
}

/// 2.2.13
pub fn create(message_id: u64, name: &str) -> Message {
    let name = utf16(name);
    let body = Body::default().u16(57).up_to(108).u16(120).u16(name.len() as u16).up_to(120).bytes(&name);
    // The name's buffer has one byte at least.
    let body = if name.is_empty() { body.u8(0) } else { body };
    request(Command::CREATE, message_id, body.0)
}

/// 2.2.14
pub fn create_response(message_id: u64, file: u64) -> Message {
    answer(Command::CREATE, message_id, Body::default().u16(89).up_to(128).file(file).up_to(152).0)
}

/// 2.2.15
pub fn close(message_id: u64, file: u64) -> Message {
    request(Command::CLOSE, message_id, Body::default().u16(24).up_to(72).file(file).0)
}

/// 2.2.16
pub fn close_response(message_id: u64) -> Message {
    answer(Command::CLOSE, message_id, Body::default().u16(60).up_to(124).0)
}

/// 2.2.19
pub fn read(message_id: u64, file: u64, offset: u64, length: u32) -> Message {
    let body = Body::default().u16(49).up_to(68).u32(length).u64(offset).file(file).up_to(113);
    request(Command::READ, message_id, body.0)
}

/// 2.2.20
pub fn read_response(message_id: u64, data: &[u8]) -> Message {
    let body = Body::default().u16(17).u16(80).u32(data.len() as u32).up_to(80).bytes(data);
    answer(Command::READ, message_id, body.0)
}

/// 2.2.21
pub fn write(message_id: u64, file: u64, offset: u64, data: &[u8]) -> Message {
    let body = Body::default().u16(49).u16(112).u32(data.len() as u32).u64(offset).file(file).up_to(112).bytes(data);
    request(Command::WRITE, message_id, body.0)
}

/// 2.2.22
pub fn write_response(message_id: u64, count: u32) -> Message {
    answer(Command::WRITE, message_id, Body::default().u16(17).u16(0).u32(count).up_to(80).0)
}

/// 2.2.26, with one range. Flags: 1 shared, 2 exclusive, 4 unlock, 0x10 fail immediately.
pub fn lock(message_id: u64, file: u64, offset: u64, length: u64, lock_flags: u32) -> Message {
    let body = Body::default().u16(48).u16(1).u32(0).file(file).u64(offset).u64(length).u32(lock_flags).u32(0);
    request(Command::LOCK, message_id, body.0)
}

/// 2.2.27
pub fn lock_response(message_id: u64) -> Message {
    answer(Command::LOCK, message_id, Body::default().u16(4).u16(0).0)
}

/// 2.2.28
pub fn echo(message_id: u64) -> Message {
    request(Command::ECHO, message_id, Body::default().u16(4).u16(0).0)
}

/// 2.2.29
pub fn echo_response(message_id: u64) -> Message {
    answer(Command::ECHO, message_id, Body::default().u16(4).u16(0).0)
}

/// 2.2.30: the message that it carries the id of is to be given up.
pub fn cancel(message_id: u64) -> Message {
    request(Command::CANCEL, message_id, Body::default().u16(4).u16(0).0)
}

/// 2.2.33: FileIdBothDirectoryInformation of what matches a pattern.
pub fn query_directory(message_id: u64, file: u64, pattern: &str) -> Message {
    let pattern = utf16(pattern);
    let body = Body::default().u16(33).u8(37).u8(0).u32(0).file(file).u16(96).u16(pattern.len() as u16).u32(65_536);
    request(Command::QUERY_DIRECTORY, message_id, body.bytes(&pattern).0)
}

/// 2.2.34
pub fn query_directory_response(message_id: u64, entries: &[u8]) -> Message {
    let body = Body::default().u16(9).u16(72).u32(entries.len() as u32).bytes(entries);
    answer(Command::QUERY_DIRECTORY, message_id, body.0)
}

/// FileIdBothDirectoryInformation (MS-FSCC 2.4.17) of `number` files with names of twelve characters.
pub fn directory_entries(number: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(number * 128);
    for index in 0..number {
        let next = if index + 1 == number { 0 } else { 128u32 };
        let body = Body(bytes).u32(next).u32(0);
        // Times, size, allocation; attributes; length of the name; the short name is empty.
        let body = (0..6).fold(body, |body, _| body.u64(0)).u32(0x20).u32(24);
        bytes = body.0;
        bytes.resize(index * 128 + 104, 0);
        bytes.extend(utf16(&format!("note{index:04}.txt")));
    }
    bytes
}

/// 2.2.37: FileNetworkOpenInformation.
pub fn query_info(message_id: u64, file: u64) -> Message {
    let body = Body::default().u16(41).u8(1).u8(34).u32(4096).up_to(88).file(file).u8(0);
    request(Command::QUERY_INFO, message_id, body.0)
}

/// 2.2.38
pub fn query_info_response(message_id: u64, information: &[u8]) -> Message {
    let body = Body::default().u16(9).u16(72).u32(information.len() as u32).bytes(information);
    answer(Command::QUERY_INFO, message_id, body.0)
}

/// 2.2.35
pub fn notify(message_id: u64, file: u64) -> Message {
    request(Command::CHANGE_NOTIFY, message_id, Body::default().u16(32).u16(0).u32(4096).file(file).u32(1).u32(0).0)
}

/// 2.2.36, without changes.
pub fn notify_response(message_id: u64) -> Message {
    answer(Command::CHANGE_NOTIFY, message_id, Body::default().u16(9).u16(0).u32(0).0)
}

/// 2.2.39: FileRenameInformation.
pub fn rename(message_id: u64, file: u64, new_name: &str) -> Message {
    let name = utf16(new_name);
    let body = Body::default().u16(33).u8(1).u8(10).u32(20 + name.len() as u32).u16(96).up_to(80).file(file);
    let body = body.up_to(96 + 16).u32(name.len() as u32).bytes(&name);
    request(Command::SET_INFO, message_id, body.0)
}

/// 2.2.40
pub fn set_info_response(message_id: u64) -> Message {
    answer(Command::SET_INFO, message_id, Body::default().u16(2).0)
}

/// 2.2.23.1: the server breaks an oplock.
pub fn oplock_break(file: u64) -> Message {
    let body = Body::default().u16(24).u8(1).up_to(72).file(file);
    answer(Command::OPLOCK_BREAK, u64::MAX, body.0).session(0).tree(0)
}

/// 2.2.2: an interim response.
pub fn pending(command: Command, message_id: u64, async_id: u64) -> Message {
    error(command, message_id, STATUS_PENDING).asynchronous(async_id)
}

/// 2.2.2: an ERROR response.
pub fn error(command: Command, message_id: u64, status: u32) -> Message {
    answer(command, message_id, Body::default().u16(9).u16(0).u32(0).u8(0).0).status(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::{Header, Request, Response};

    #[test]
    fn the_wire_crate_reads_back_what_was_written() {
        let bytes: Vec<u8> = read(9, 7, 4096, 100).session(3).tree(2).into();
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.message_id, header.session_id, header.tree_id), (9, Some(3), Some(2)));
        let expected = Request::ReadWrite { file: file(7), offset: 4096, length: 100 };
        assert_eq!(Request::parse(Command::READ, &bytes), expected);
        let bytes: Vec<u8> = create(1, "dir\\a").into();
        assert_eq!(Request::parse(Command::CREATE, &bytes), Request::Create("dir\\a".into()));
        let bytes: Vec<u8> = create_response(1, 7).into();
        assert_eq!(Response::parse(Command::CREATE, &bytes), Response::Create(file(7)));
    }
}

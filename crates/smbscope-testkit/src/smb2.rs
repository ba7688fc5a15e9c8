//! SMB2 messages for tests (MS-SMB2 2.2): the fields that the analysis reads, and zeros elsewhere. Comments on
//! functions name the section of MS-SMB2.

use smbscope_wire::codec::{FixedSizeField, List, Put};
use smbscope_wire::names::{Fsctl, InfoLevel};
use smbscope_wire::smb2::messages::{self as wire, *};
use smbscope_wire::smb2::{FileReference, LockElement, Smb2Command, Smb2Header, TRANSFORM_ID, TransformHeader, flags};
use smbscope_wire::status::NtStatus;

pub const STATUS_PENDING: u32 = 0x0000_0103;
pub const STATUS_CANCELLED: u32 = 0xc000_0120;
pub const STATUS_MORE_PROCESSING: u32 = 0xc000_0016;
pub const STATUS_NOT_FOUND: u32 = 0xc000_0034;

/// Value that Windows puts in the reserved field of synchronous messages.
const PROCESS_ID: u32 = 0xfeff;

/// A message or a compound member.
#[derive(Debug, Clone)]
pub struct Message {
    header: Smb2Header,
    /// Starts with space for the header.
    bytes: Vec<u8>,
}

impl Message {
    fn new(command: Smb2Command, message_id: u64, flags: u32, emit: impl FnOnce(&mut Vec<u8>)) -> Message {
        let mut bytes = vec![0; Smb2Header::LENGTH];
        emit(&mut bytes);
        let header = Smb2Header { credit_charge: 1, credits: 1, flags, message_id, ..Smb2Header::new(command) };
        Message { header, bytes }.session(0x11).tree(1)
    }

    /// Sets the session id. Default: 0x11.
    pub fn session(mut self, session_id: u64) -> Message {
        self.header.session_id = Some(session_id);
        self
    }

    /// Sets the tree id. Default: 1.
    pub fn tree(mut self, tree_id: u32) -> Message {
        self.header.tree_id = Some(tree_id);
        self
    }

    pub fn status(mut self, status: u32) -> Message {
        self.header.status = NtStatus(status);
        self
    }

    /// Makes the message asynchronous: it has an async id instead of a tree id.
    pub fn asynchronous(mut self, async_id: u64) -> Message {
        self.header.flags |= flags::ASYNC_COMMAND;
        self.header.async_id = Some(async_id);
        self
    }

    /// Marks the message as related to the previous compound member.
    pub fn related(mut self) -> Message {
        self.header.flags |= flags::RELATED_OPERATIONS;
        self
    }

    /// Sets the flag of a signed message.
    pub fn signed(mut self) -> Message {
        self.header.flags |= flags::SIGNED;
        self
    }

    /// Sets the credit charge, and the credits requested or granted.
    pub fn credits(mut self, charge: u16, credits: u16) -> Message {
        (self.header.credit_charge, self.header.credits) = (charge, credits);
        self
    }

    /// Clears session and tree id.
    fn outside(self) -> Message {
        self.session(0).tree(0)
    }

    fn encode(&self, next_command: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        Smb2Header { next_command, ..self.header }.emit(&mut bytes);
        if self.header.async_id.is_none() {
            PROCESS_ID.set(&mut bytes, Smb2Header::RESERVED);
        }
        bytes.extend(&self.bytes[Smb2Header::LENGTH..]);
        bytes
    }
}

impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Vec<u8> {
        message.encode(0)
    }
}

/// Combines several messages in one frame.
pub fn compound(members: &[Message]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let is_last = index + 1 == members.len();
        let padded = member.bytes.len().next_multiple_of(8);
        let start = bytes.len();
        bytes.extend(member.encode(if is_last { 0 } else { padded as u32 }));
        if !is_last {
            bytes.resize(start + padded, 0);
        }
    }
    bytes
}

/// Builds a TRANSFORM_HEADER frame around an undecipherable message of this length.
pub fn encrypted(session_id: u64, plain_length: usize) -> Vec<u8> {
    let mut bytes = TRANSFORM_ID.to_vec();
    bytes.resize(36, 0x5a);
    bytes.extend((plain_length as u32).to_le_bytes());
    bytes.extend([0, 0, 1, 0]);
    bytes.extend(session_id.to_le_bytes());
    bytes.resize(TransformHeader::LENGTH + plain_length, 0xa5);
    bytes
}

fn request<M: wire::Smb2Message>(message_id: u64, body: M) -> Message {
    Message::new(M::COMMAND, message_id, 0, |out| body.emit(out))
}

fn answer<M: wire::Smb2Message>(message_id: u64, body: M) -> Message {
    Message::new(M::COMMAND, message_id, flags::SERVER_TO_REDIR, |out| body.emit(out))
}

/// Returns the FileId for a test's file number; all ones refers to the related operation.
pub fn file(number: u64) -> FileReference {
    if number == u64::MAX { FileReference::RELATED } else { FileReference { persistent: 0x100, volatile: number } }
}

/// The file of the previous operation in a related compound.
pub const RELATED: u64 = u64::MAX;

/// 2.2.3
pub fn negotiate(message_id: u64, dialects: &[u16]) -> Message {
    let dialects = List::Values(dialects);
    request(message_id, negotiate::Request { security_mode: 1, dialects, ..Default::default() }).outside()
}

/// 2.2.4
pub fn negotiate_response(message_id: u64, dialect: u16) -> Message {
    answer(message_id, negotiate::Response { security_mode: 1, dialect, ..Default::default() }).outside()
}

/// 2.2.3 and 2.2.4, with these capabilities on both sides.
pub fn negotiation(message_id: u64, dialect: u16, capabilities: u32) -> (Message, Message) {
    let dialects = &[dialect];
    let offer =
        negotiate::Request { security_mode: 1, capabilities, dialects: List::Values(dialects), ..Default::default() };
    let choice = negotiate::Response { security_mode: 1, dialect, capabilities, ..Default::default() };
    (request(message_id, offer).outside(), answer(message_id, choice).outside())
}

/// 2.2.5, with an NTLMSSP AUTHENTICATE_MESSAGE.
pub fn session_setup(message_id: u64, domain: &str, user: &str) -> Message {
    let token = &ntlm_authenticate(domain, user);
    request(message_id, session_setup::Request { token, ..Default::default() }).outside()
}

/// 2.2.5, with an NTLMSSP NEGOTIATE_MESSAGE.
pub fn session_setup_begin(message_id: u64) -> Message {
    let token = b"NTLMSSP\0\x01\0\0\0\x07\x82\x08\xa2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    request(message_id, session_setup::Request { token, ..Default::default() }).outside()
}

/// 2.2.5, binding the connection to a session.
pub fn session_bind(message_id: u64, domain: &str, user: &str, session_id: u64) -> Message {
    let token = &ntlm_authenticate(domain, user);
    let flags = session_setup::Request::BINDING;
    request(message_id, session_setup::Request { flags, token, ..Default::default() }).session(session_id).tree(0)
}

/// 2.2.6
pub fn session_setup_response(message_id: u64, session_id: u64) -> Message {
    answer(message_id, session_setup::Response::default()).session(session_id).tree(0)
}

/// Builds an NTLM AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3) that names a user.
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

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// 2.2.7
pub fn logoff(message_id: u64) -> Message {
    request(message_id, plain::Logoff {})
}

/// 2.2.9, with the path as `\\server\share`.
pub fn tree_connect(message_id: u64, path: &str) -> Message {
    request(message_id, tree_connect::Request { path: path.into() }).tree(0)
}

/// 2.2.10
pub fn tree_connect_response(message_id: u64, tree_id: u32) -> Message {
    answer(message_id, tree_connect::Response { share_type: 1, ..Default::default() }).tree(tree_id)
}

/// 2.2.13
pub fn create(message_id: u64, name: &str) -> Message {
    request(message_id, create::Request { name: name.into(), ..Default::default() })
}

/// 2.2.14
pub fn create_response(message_id: u64, number: u64) -> Message {
    answer(message_id, create::Response { file: file(number), ..Default::default() })
}

/// 2.2.13, requesting an oplock of this level (0xff for a lease).
pub fn create_asking(message_id: u64, name: &str, oplock_level: u8) -> Message {
    request(message_id, create::Request { name: name.into(), oplock_level, ..Default::default() })
}

/// 2.2.14, granting an oplock of this level; `last_write` is the file's LastWriteTime.
pub fn create_granting(message_id: u64, number: u64, oplock_level: u8, last_write: u64) -> Message {
    let times = [0, 0, last_write, 0];
    answer(message_id, create::Response { file: file(number), oplock_level, times, ..Default::default() })
}

/// 2.2.14, granting a lease with these states: 1 read, 2 handle, 4 write.
pub fn create_leasing(message_id: u64, number: u64, state: u32, last_write: u64) -> Message {
    let lease = create_context::Lease { key: [number as u8; 16], state, ..Default::default() };
    let list = [create_context::CreateContext::LeaseV1(lease)];
    let contexts = create_context::CreateContextList::List(&list);
    let (oplock_level, times) = (create::oplock::LEASE, [0, 0, last_write, 0]);
    answer(message_id, create::Response { file: file(number), oplock_level, times, contexts, ..Default::default() })
}

/// 2.2.23.2: the server breaks the lease granted by [`create_leasing`].
pub fn lease_break(number: u64, new_state: u32) -> Message {
    let key = [number as u8; 16];
    let lease = oplock_break::LeaseBreak { key, current_state: 7, new_state, ..Default::default() };
    answer(u64::MAX, lease).outside()
}

/// 2.2.15
pub fn close(message_id: u64, number: u64) -> Message {
    request(message_id, close::Request { flags: 0, file: file(number) })
}

/// 2.2.16
pub fn close_response(message_id: u64) -> Message {
    answer(message_id, close::Response::default())
}

/// 2.2.19
pub fn read(message_id: u64, number: u64, offset: u64, length: u32) -> Message {
    request(message_id, read::Request { padding: 0, length, offset, file: file(number) })
}

/// 2.2.20
pub fn read_response(message_id: u64, data: &[u8]) -> Message {
    answer(message_id, read::Response { data })
}

/// 2.2.21. Without data, the mandatory one-byte buffer is omitted so that the caller can append its own data.
pub fn write(message_id: u64, number: u64, offset: u64, data: &[u8]) -> Message {
    let mut message = request(message_id, write::Request { offset, file: file(number), data });
    message.bytes.truncate(write::Request::END + data.len());
    message
}

/// 2.2.22
pub fn write_response(message_id: u64, count: u32) -> Message {
    answer(message_id, write::Response { count })
}

/// 2.2.26, with one range. Flags: 1 shared, 2 exclusive, 4 unlock, 0x10 fail immediately.
pub fn lock(message_id: u64, number: u64, offset: u64, length: u64, lock_flags: u32) -> Message {
    let element = LockElement { offset, length, flags: lock_flags };
    request(message_id, lock::Request { file: file(number), locks: List::Values(&[element]) })
}

/// 2.2.27
pub fn lock_response(message_id: u64) -> Message {
    answer(message_id, lock::Response {})
}

/// 2.2.28
pub fn echo(message_id: u64) -> Message {
    request(message_id, plain::Echo {})
}

/// 2.2.29
pub fn echo_response(message_id: u64) -> Message {
    answer(message_id, plain::Echo {})
}

/// 2.2.30. Cancels the request with this MessageId.
pub fn cancel(message_id: u64) -> Message {
    request(message_id, plain::Cancel {})
}

/// 2.2.33, for FileIdBothDirectoryInformation.
pub fn query_directory(message_id: u64, number: u64, pattern: &str) -> Message {
    let (file, pattern) = (file(number), pattern.into());
    let list = query_directory::Request { class: 37, flags: 0, file, output_buffer_length: 65_536, pattern };
    request(message_id, list)
}

/// 2.2.34
pub fn query_directory_response(message_id: u64, output: &[u8]) -> Message {
    answer(message_id, query_directory::Response { output })
}

/// Builds FileIdBothDirectoryInformation (MS-FSCC 2.4.17) of `number` files with twelve-character names.
pub fn directory_entries(number: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(number * 128);
    for index in 0..number {
        bytes.put(if index + 1 == number { 0 } else { 128u32 });
        // FileIndex, times, sizes; attributes; name length; empty short name.
        bytes.put_zeros(4 + 6 * 8);
        bytes.put(0x20u32);
        bytes.put(24u32);
        bytes.resize(index * 128 + 104, 0);
        bytes.put_utf16(&format!("note{index:04}.txt"));
    }
    bytes
}

/// 2.2.37, for FileNetworkOpenInformation.
pub fn query_info(message_id: u64, number: u64) -> Message {
    let level = InfoLevel::FILE_NETWORK_OPEN_INFORMATION;
    let query =
        query_info::Request { level, output_buffer_length: 4096, additional_information: 0, file: file(number) };
    request(message_id, query)
}

/// 2.2.38
pub fn query_info_response(message_id: u64, output: &[u8]) -> Message {
    answer(message_id, query_info::Response { output })
}

/// 2.2.31, for the server's network interfaces.
pub fn query_interfaces(message_id: u64) -> Message {
    let code = Fsctl::QUERY_NETWORK_INTERFACE_INFO;
    request(message_id, ioctl::Request::new(code, FileReference::NONE, &[], 65_536))
}

/// 2.2.32.5: interfaces as index, speed in bit/s, and IPv4 address.
pub fn interfaces_response(message_id: u64, interfaces: &[(u32, u64, [u8; 4])]) -> Message {
    let mut output = Vec::new();
    for (at, (index, speed, address)) in interfaces.iter().enumerate() {
        let mut entry = vec![0; 152];
        let next = if at + 1 < interfaces.len() { 152u32 } else { 0 };
        entry[..4].copy_from_slice(&next.to_le_bytes());
        entry[4..8].copy_from_slice(&index.to_le_bytes());
        entry[16..24].copy_from_slice(&speed.to_le_bytes());
        entry[24..26].copy_from_slice(&2u16.to_le_bytes());
        entry[28..32].copy_from_slice(address);
        output.extend(entry);
    }
    let (code, file) = (Fsctl::QUERY_NETWORK_INTERFACE_INFO, FileReference::NONE);
    answer(message_id, ioctl::Response { code, file, input: &[], output: &output })
}

/// 2.2.35
pub fn notify(message_id: u64, number: u64) -> Message {
    let (file, output_buffer_length) = (file(number), 4096);
    let watch = change_notify::Request { flags: 0, output_buffer_length, file, completion_filter: 1 };
    request(message_id, watch)
}

/// 2.2.36, without changes.
pub fn notify_response(message_id: u64) -> Message {
    answer(message_id, change_notify::Response::default())
}

/// 2.2.39, with FileRenameInformation.
pub fn rename(message_id: u64, number: u64, new_name: &str) -> Message {
    let data = set_info::Data::Rename { path: new_name.into(), replace: false };
    request(message_id, set_info::Request::new(file(number), data))
}

/// 2.2.40
pub fn set_info_response(message_id: u64) -> Message {
    answer(message_id, set_info::Response {})
}

/// 2.2.23.1: the server breaks an oplock.
pub fn oplock_break(number: u64) -> Message {
    answer(u64::MAX, oplock_break::Oplock { oplock_level: 1, file: file(number) }).outside()
}

/// 2.2.2, as an interim response.
pub fn pending(command: Smb2Command, message_id: u64, async_id: u64) -> Message {
    error(command, message_id, STATUS_PENDING).asynchronous(async_id)
}

/// 2.2.2
pub fn error(command: Smb2Command, message_id: u64, status: u32) -> Message {
    let emit = |out: &mut Vec<u8>| error::Smb2ErrorResponse::default().emit(out);
    Message::new(command, message_id, flags::SERVER_TO_REDIR, emit).status(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::{Smb2Header, Smb2Request, Smb2Response};

    #[test]
    fn the_wire_crate_reads_back_what_was_written() {
        let bytes: Vec<u8> = read(9, 7, 4096, 100).session(3).tree(2).into();
        let header = Smb2Header::parse(&bytes).unwrap();
        assert_eq!((header.message_id, header.session_id, header.tree_id), (9, Some(3), Some(2)));
        let expected = Smb2Request::ReadWrite { file: file(7), offset: 4096, length: 100 };
        assert_eq!(Smb2Request::parse(Smb2Command::READ, &bytes), expected);
        let bytes: Vec<u8> = create(1, "dir\\a").into();
        let expected = Smb2Request::Create { name: "dir\\a".into(), oplock_level: Some(0) };
        assert_eq!(Smb2Request::parse(Smb2Command::CREATE, &bytes), expected);
        let bytes: Vec<u8> = create_leasing(1, 7, 3, 9).into();
        let Smb2Response::Create(created) = Smb2Response::parse(Smb2Command::CREATE, &bytes) else { panic!() };
        assert_eq!((created.file, created.last_write), (file(7), 9));
        assert_eq!(created.lease.map(|lease| lease.state), Some(3));
    }
}

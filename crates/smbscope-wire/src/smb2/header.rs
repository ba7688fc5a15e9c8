//! Commands (MS-SMB2 2.2.1.2), the packet header (2.2.1), and the TRANSFORM_HEADER of an encrypted message (2.2.41).
//!
//! Commands are one table of their numbers and messages; the messages hold everything else. Only names and numbers are
//! expanded here, below the messages, which use them. `dispatch` expands the rest.

use super::{PROTOCOL_ID, TRANSFORM_ID};
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::names::open_enum;
use crate::status::NtStatus;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Command code, printed as the specification's name without prefix (`QUERY_DIRECTORY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Smb2Command(pub u16);

/// Calls a macro with all commands: name, number, request, response. Responses without content are omitted.
macro_rules! with_commands {
    ($callback:ident) => {
        $callback! {
            NEGOTIATE = 0x0000, negotiate::Request, negotiate::Response;
            SESSION_SETUP = 0x0001, session_setup::Request, session_setup::Response;
            LOGOFF = 0x0002, plain::Logoff;
            TREE_CONNECT = 0x0003, tree_connect::Request, tree_connect::Response;
            TREE_DISCONNECT = 0x0004, plain::TreeDisconnect;
            CREATE = 0x0005, create::Request, create::Response;
            CLOSE = 0x0006, close::Request, close::Response;
            FLUSH = 0x0007, flush::Request, flush::Response;
            READ = 0x0008, read::Request, read::Response;
            WRITE = 0x0009, write::Request, write::Response;
            LOCK = 0x000a, lock::Request, lock::Response;
            IOCTL = 0x000b, ioctl::Request, ioctl::Response;
            CANCEL = 0x000c, plain::Cancel;
            ECHO = 0x000d, plain::Echo;
            QUERY_DIRECTORY = 0x000e, query_directory::Request, query_directory::Response;
            CHANGE_NOTIFY = 0x000f, change_notify::Request, change_notify::Response;
            QUERY_INFO = 0x0010, query_info::Request, query_info::Response;
            SET_INFO = 0x0011, set_info::Request, set_info::Response;
            OPLOCK_BREAK = 0x0012, oplock_break::Acknowledgement, oplock_break::Notification;
            SERVER_TO_CLIENT_NOTIFICATION = 0x0013;
        }
    };
}

pub(super) use with_commands;

macro_rules! numbers {
    ($($name:ident = $value:literal $(, $request:path $(, $response:path)?)?;)*) => {
        open_enum!(Smb2Command, "", "0x{:04x}" { $($name = $value;)* });
    };
}

with_commands!(numbers);

pub mod flags {
    pub const SERVER_TO_REDIR: u32 = 0x0000_0001;
    /// The message carries an AsyncId instead of a TreeId.
    pub const ASYNC_COMMAND: u32 = 0x0000_0002;
    /// The operation uses session, tree and file of the preceding one in the compound.
    pub const RELATED_OPERATIONS: u32 = 0x0000_0004;
    pub const SIGNED: u32 = 0x0000_0008;
    /// Every defined flag, for plausibility checks.
    pub(super) const DEFINED: u32 = 0x3000_007f;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smb2Header {
    pub credit_charge: u16,
    /// Status of a response; channel sequence of a request.
    pub status: NtStatus,
    pub command: Smb2Command,
    pub credits: u16,
    pub flags: u32,
    /// Offset of the next message of a compound; zero in the last one.
    pub next_command: u32,
    /// Message id, valid in the bits of [`Smb2Header::id_mask`].
    pub message_id: u64,
    /// Captured bits of the message id: all of them, unless a snap length truncated it.
    pub id_mask: u64,
    pub async_id: Option<u64>,
    /// Absent in asynchronous messages.
    pub tree_id: Option<u32>,
    pub session_id: Option<u64>,
}

impl Smb2Header {
    pub const LENGTH: usize = 64;
    /// Minimum length that identifies the command and, with 16 bits of the message id, the request among the
    /// outstanding ones. It is also the amount that a snap length of 96 bytes leaves after Ethernet, IPv4 and TCP with
    /// timestamps.
    pub const LEAST: usize = 26;

    pub const NEXT_COMMAND: usize = 20;
    pub const SIGNATURE: Range<usize> = 48..64;
    /// Offset of the reserved field, which Windows uses for a process id. Absent in asynchronous messages.
    pub const RESERVED: usize = 32;

    pub fn parse(message: &[u8]) -> Option<Smb2Header> {
        if !message.starts_with(&PROTOCOL_ID) || u16_at(message, 4)? != 64 {
            return None;
        }
        let flags = u32_at(message, 16)?;
        let (id, id_mask) = message_id(message)?;
        let asynchronous = flags & flags::ASYNC_COMMAND != 0;
        Some(Smb2Header {
            credit_charge: u16_at(message, 6)?,
            status: NtStatus(u32_at(message, 8)?),
            command: Smb2Command(u16_at(message, 12)?),
            credits: u16_at(message, 14)?,
            flags,
            next_command: u32_at(message, 20)?,
            message_id: id & id_mask,
            id_mask,
            async_id: u64_at(message, 32).filter(|_| asynchronous),
            tree_id: u32_at(message, 36).filter(|_| !asynchronous),
            session_id: u64_at(message, 40),
        })
    }

    /// Creates the header for the first message of a connection, with zero ids.
    pub const fn new(command: Smb2Command) -> Smb2Header {
        Smb2Header {
            credit_charge: 0,
            status: NtStatus::SUCCESS,
            command,
            credits: 0,
            flags: 0,
            next_command: 0,
            message_id: 0,
            id_mask: u64::MAX,
            async_id: None,
            tree_id: Some(0),
            session_id: Some(0),
        }
    }

    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// Encodes the header with a zero signature. Truncated fields become zero.
    pub fn to_bytes(&self) -> [u8; Smb2Header::LENGTH] {
        let mut bytes = [0; Smb2Header::LENGTH];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &PROTOCOL_ID);
        put(4, &64u16.to_le_bytes());
        put(6, &self.credit_charge.to_le_bytes());
        put(8, &self.status.0.to_le_bytes());
        put(12, &self.command.0.to_le_bytes());
        put(14, &self.credits.to_le_bytes());
        put(16, &self.flags.to_le_bytes());
        put(20, &self.next_command.to_le_bytes());
        put(24, &self.message_id.to_le_bytes());
        match self.async_id {
            Some(id) => put(32, &id.to_le_bytes()),
            None => put(36, &self.tree_id.unwrap_or(0).to_le_bytes()),
        }
        put(40, &self.session_id.unwrap_or(0).to_le_bytes());
        bytes
    }

    /// Returns true for responses and for breaks sent by the server.
    pub fn is_response(&self) -> bool {
        self.flags & flags::SERVER_TO_REDIR != 0
    }

    pub fn is_signed(&self) -> bool {
        self.flags & flags::SIGNED != 0
    }

    /// Returns true if `message` looks like a header rather than data that happens to contain the protocol id.
    pub fn is_plausible(message: &[u8], length: usize) -> bool {
        let Some(header) = Smb2Header::parse(message) else { return false };
        let next = header.next_command as usize;
        header.command.name().is_some()
            && header.flags & !flags::DEFINED == 0
            && (next == 0 || (next >= Smb2Header::LENGTH && next.is_multiple_of(8) && next < length))
    }
}

/// Returns the message id and the mask of its captured bits: 64, 32 or 16 bits.
fn message_id(message: &[u8]) -> Option<(u64, u64)> {
    u64_at(message, 24)
        .map(|id| (id, u64::MAX))
        .or_else(|| u32_at(message, 24).map(|id| (id.into(), u32::MAX.into())))
        .or_else(|| u16_at(message, 24).map(|id| (id.into(), u16::MAX.into())))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformHeader {
    pub nonce: Option<Nonce>,
    pub original_size: Option<u32>,
    /// Session whose key encrypts the message.
    pub session_id: Option<u64>,
}

/// Nonce, which must be unique for a key. Some senders use a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce {
    /// First half, in which Samba counts the messages encrypted with the key.
    pub count: u64,
    /// Second half, which Samba chooses once per key.
    pub salt: u64,
}

impl TransformHeader {
    pub const LENGTH: usize = 52;
    pub const SIGNATURE: Range<usize> = 4..20;
    pub const NONCE: Range<usize> = 20..36;

    pub fn parse(message: &[u8]) -> Option<TransformHeader> {
        message.starts_with(&TRANSFORM_ID).then(|| TransformHeader {
            nonce: u64_at(message, 20).zip(u64_at(message, 28)).map(|(count, salt)| Nonce { count, salt }),
            original_size: u32_at(message, 36),
            session_id: u64_at(message, 44),
        })
    }
}

/// Signature of messages in a slim copy that were encrypted on the wire. [`TransformHeader::LENGTH`] bytes of padding after
/// the message keep the frame's length. If the capture cuts the header before its signature, the mark follows the last
/// captured byte. In a TRANSFORM_HEADER, it marks a message that the key of its session does not decrypt.
pub const DECRYPTED_MARK: [u8; 16] = *b"\xfdSMB, decrypted\0";

/// Returns true if a header has a [`DECRYPTED_MARK`] in place of its signature.
pub fn is_marked(message: &[u8], signature: Range<usize>) -> bool {
    message.get(signature).is_some_and(|signature| signature == DECRYPTED_MARK)
}

/// Returns the captured part of a message with a [`DECRYPTED_MARK`]. `None` for other messages.
pub fn decrypted_part(message: &[u8]) -> Option<&[u8]> {
    if is_marked(message, Smb2Header::SIGNATURE) {
        return Some(message);
    }
    message.strip_suffix(&DECRYPTED_MARK).filter(|part| part.len() < Smb2Header::LENGTH)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A header with distinct field values, in the order of MS-SMB2 2.2.1.2.
    pub(crate) fn header(command: u16, flags: u32) -> Vec<u8> {
        let mut bytes = PROTOCOL_ID.to_vec();
        bytes.extend(64u16.to_le_bytes());
        bytes.extend(3u16.to_le_bytes());
        bytes.extend(0xc000_0034u32.to_le_bytes());
        bytes.extend(command.to_le_bytes());
        bytes.extend(31u16.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(0x0102_0304_0506_0708u64.to_le_bytes());
        bytes.extend(0xfeffu32.to_le_bytes());
        bytes.extend(7u32.to_le_bytes());
        bytes.extend(0x11_2233u64.to_le_bytes());
        bytes.extend([0; 16]);
        bytes
    }

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let header = Smb2Header::parse(&header(5, 8)).unwrap();
        assert_eq!(header.credit_charge, 3);
        assert_eq!(header.status, NtStatus(0xc000_0034));
        assert_eq!(header.command, Smb2Command(5));
        assert_eq!(header.credits, 31);
        assert_eq!(header.message_id, 0x0102_0304_0506_0708);
        assert_eq!(header.tree_id, Some(7));
        assert_eq!(header.session_id, Some(0x11_2233));
        assert!(header.is_signed() && !header.is_response());
    }

    #[test]
    fn a_short_snap_length_leaves_command_and_message_id() {
        let bytes = header(8, 1);
        let cut = |length: usize| Smb2Header::parse(&bytes[..length]);
        let header = cut(32).unwrap();
        assert_eq!((header.command, header.message_id), (Smb2Command(8), 0x0102_0304_0506_0708));
        assert_eq!((header.tree_id, header.session_id), (None, None));
        let header = cut(Smb2Header::LEAST).unwrap();
        assert_eq!((header.message_id, header.id_mask), (0x0708, 0xffff));
        assert_eq!(cut(Smb2Header::LEAST - 1), None);
    }

    #[test]
    fn the_mark_of_a_decrypted_message_is_in_its_signature_or_behind_its_last_byte() {
        let mut bytes = header(5, 0);
        assert_eq!(decrypted_part(&bytes), None);
        bytes[Smb2Header::SIGNATURE].copy_from_slice(&DECRYPTED_MARK);
        assert_eq!(decrypted_part(&bytes), Some(&bytes[..]));
        for cut in [Smb2Header::LEAST, 47, 63] {
            let message = [&bytes[..cut], &DECRYPTED_MARK].concat();
            assert_eq!(decrypted_part(&message), Some(&bytes[..cut]));
        }
        let data = [&header(5, 0)[..], &[0; 8], &DECRYPTED_MARK].concat();
        assert_eq!(decrypted_part(&data), None, "at the end of data");
    }

    #[test]
    fn data_that_holds_the_protocol_id_is_not_plausible() {
        let mut bytes = header(5, 0);
        assert!(Smb2Header::is_plausible(&bytes, 64));
        bytes[20] = 64;
        assert!(!Smb2Header::is_plausible(&bytes, 64), "next message beyond the end");
        bytes[20] = 0;
        bytes[12] = 0x30;
        assert!(!Smb2Header::is_plausible(&bytes, 64), "no such command");
    }

    #[test]
    fn every_command_of_the_specification_is_known() {
        assert_eq!(Smb2Command::KNOWN.len(), 20);
    }
}

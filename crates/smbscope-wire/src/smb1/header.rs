//! SMB1 message header (MS-CIFS 2.2.3.1), command codes (MS-CIFS 2.2.2.1, MS-SMB 2.2.2.1), and the parameter and
//! data blocks that follow, one for each command of an AndX chain (MS-CIFS 2.2.3.2 to 2.2.3.4).

use super::PROTOCOL_ID;
use crate::bytes::{CapturedName, before_terminator, text, u8_at, u16_at, u32_at};
use crate::names::open_enum;
use crate::status::{DosError, NtStatus};
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub mod flags {
    pub const CASE_INSENSITIVE: u8 = 0x08;
    pub const CANONICALIZED_PATHS: u8 = 0x10;
    pub const REPLY: u8 = 0x80;
}

pub mod flags2 {
    pub const LONG_NAMES: u16 = 0x0001;
    pub const SECURITY_SIGNATURE: u16 = 0x0004;
    pub const SECURITY_SIGNATURE_REQUIRED: u16 = 0x0010;
    pub const IS_LONG_NAME: u16 = 0x0040;
    pub const EXTENDED_SECURITY: u16 = 0x0800;
    pub const NT_STATUS: u16 = 0x4000;
    pub const UNICODE: u16 = 0x8000;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smb1Header {
    pub command: Smb1Command,
    /// Raw field, decoded by [`Smb1Header::nt_status`] and [`Smb1Header::dos_error`].
    pub status: u32,
    pub flags: u8,
    pub flags2: u16,
    pub tid: u16,
    /// Low half of the process id, which servers of every age echo.
    pub pid: u16,
    pub uid: u16,
    pub mid: u16,
}

impl Smb1Header {
    pub const LENGTH: usize = 32;

    pub const STATUS: usize = 5;

    pub const TID: usize = 24;

    pub const UID: usize = 28;

    pub const SIGNATURE: std::ops::Range<usize> = 14..22;

    pub fn parse(message: &[u8]) -> Option<Smb1Header> {
        if !message.starts_with(&PROTOCOL_ID) {
            return None;
        }
        Some(Smb1Header {
            mid: u16_at(message, 30)?,
            command: Smb1Command(u8_at(message, 4)?),
            status: u32_at(message, 5)?,
            flags: u8_at(message, 9)?,
            flags2: u16_at(message, 10)?,
            tid: u16_at(message, 24)?,
            pid: u16_at(message, 26)?,
            uid: u16_at(message, 28)?,
        })
    }

    /// Appends the header with zero PIDHigh and signature.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PROTOCOL_ID);
        out.push(self.command.0);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.push(self.flags);
        out.extend_from_slice(&self.flags2.to_le_bytes());
        out.extend_from_slice(&[0; 12]);
        for id in [self.tid, self.pid, self.uid, self.mid] {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }

    /// Returns the reply bit. Servers forget to set it in the interim response to Write_Raw.
    pub fn is_reply(&self) -> bool {
        self.flags & flags::REPLY != 0
    }

    pub fn is_signed(&self) -> bool {
        self.flags2 & flags2::SECURITY_SIGNATURE != 0
    }

    pub fn is_unicode(&self) -> bool {
        self.flags2 & flags2::UNICODE != 0
    }

    /// Returns the status as NTSTATUS. `None` if the client did not ask for NTSTATUS.
    pub fn nt_status(&self) -> Option<NtStatus> {
        (self.flags2 & flags2::NT_STATUS != 0).then_some(NtStatus(self.status))
    }

    pub fn dos_error(&self) -> DosError {
        let [class, _, low, high] = self.status.to_le_bytes();
        DosError { class, code: u16::from_le_bytes([low, high]) }
    }

    pub fn is_success(&self) -> bool {
        self.status == 0
    }

    /// Returns true if `message` looks like a header rather than data that happens to contain the protocol id.
    pub fn is_plausible(message: &[u8], length: usize) -> bool {
        let Some(header) = Smb1Header::parse(message) else { return false };
        let words = message.get(32).map_or(0, |count| 2 * usize::from(*count));
        header.command.name().is_some() && length >= Smb1Header::LENGTH + 3 && 35 + words <= length
    }
}

/// SMB_COM_* code. [`Smb1Command::short_name`] returns the name in classic response-time reports (`Read+X`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Smb1Command(pub u8);

impl Smb1Command {
    pub fn is_andx(self) -> bool {
        matches!(
            self,
            Smb1Command::LOCKING_ANDX
                | Smb1Command::OPEN_ANDX
                | Smb1Command::READ_ANDX
                | Smb1Command::WRITE_ANDX
                | Smb1Command::SESSION_SETUP_ANDX
                | Smb1Command::LOGOFF_ANDX
                | Smb1Command::TREE_CONNECT_ANDX
                | Smb1Command::NT_CREATE_ANDX
        )
    }
}

open_enum!(Smb1Command, "SMB_COM_", "0x{:02x}" {
    CREATE_DIRECTORY = 0x00, "Create_Directory";
    DELETE_DIRECTORY = 0x01, "Delete_Directory";
    OPEN = 0x02, "Open_File";
    CREATE = 0x03, "Create_File";
    CLOSE = 0x04, "Close_File";
    FLUSH = 0x05, "Flush_File";
    DELETE = 0x06, "Delete_File";
    RENAME = 0x07, "Rename_File";
    QUERY_INFORMATION = 0x08, "Get_File_Attributes";
    SET_INFORMATION = 0x09, "Set_File_Attributes";
    READ = 0x0a, "Read_Bytes";
    WRITE = 0x0b, "Write_Bytes";
    LOCK_BYTE_RANGE = 0x0c, "Lock_Bytes";
    UNLOCK_BYTE_RANGE = 0x0d, "Unlock_Bytes";
    CREATE_TEMPORARY = 0x0e, "Create_Temporary_File";
    CREATE_NEW = 0x0f, "Create_New_File";
    CHECK_DIRECTORY = 0x10, "Check_Directory";
    PROCESS_EXIT = 0x11, "Process_Exit";
    SEEK = 0x12, "Seek_File";
    LOCK_AND_READ = 0x13, "Lock_and_Read";
    WRITE_AND_UNLOCK = 0x14, "Write_and_Unlock";
    READ_RAW = 0x1a, "Read_Raw";
    READ_MPX = 0x1b, "Read_Mpx";
    READ_MPX_SECONDARY = 0x1c, "Read_Mpx_Secondary";
    WRITE_RAW = 0x1d, "Write_Raw";
    WRITE_MPX = 0x1e, "Write_Mpx";
    WRITE_MPX_SECONDARY = 0x1f, "Write_Mpx_Secondary";
    WRITE_COMPLETE = 0x20, "Write_Complete";
    QUERY_SERVER = 0x21, "Query_Server";
    SET_INFORMATION2 = 0x22, "Set_File_Attributes2";
    QUERY_INFORMATION2 = 0x23, "Get_File_Attributes2";
    LOCKING_ANDX = 0x24, "Locking+X";
    TRANSACTION = 0x25, "Transaction";
    TRANSACTION_SECONDARY = 0x26, "Transaction_Secondary";
    IOCTL = 0x27, "IO_Control";
    IOCTL_SECONDARY = 0x28, "IO_Control_Secondary";
    COPY = 0x29, "Copy_File";
    MOVE = 0x2a, "Move_File";
    ECHO = 0x2b, "Echo";
    WRITE_AND_CLOSE = 0x2c, "Write_and_Close";
    OPEN_ANDX = 0x2d, "Open+X";
    READ_ANDX = 0x2e, "Read+X";
    WRITE_ANDX = 0x2f, "Write+X";
    NEW_FILE_SIZE = 0x30, "New_File_Size";
    CLOSE_AND_TREE_DISC = 0x31, "Close_and_Tree_Disconnect";
    TRANSACTION2 = 0x32, "Transaction2";
    TRANSACTION2_SECONDARY = 0x33, "Transaction2_Secondary";
    FIND_CLOSE2 = 0x34, "Find_Close2";
    FIND_NOTIFY_CLOSE = 0x35, "Find_Notify_Close";
    TREE_CONNECT = 0x70, "Tree_Connect";
    TREE_DISCONNECT = 0x71, "Tree_Disconnect";
    NEGOTIATE = 0x72, "Negotiate";
    SESSION_SETUP_ANDX = 0x73, "Session_Setup+X";
    LOGOFF_ANDX = 0x74, "Logoff+X";
    TREE_CONNECT_ANDX = 0x75, "Tree_Connect+X";
    SECURITY_PACKAGE_ANDX = 0x7e, "Security_Package+X";
    QUERY_INFORMATION_DISK = 0x80, "Get_Disk_Attributes";
    SEARCH = 0x81, "Search_Directory";
    FIND = 0x82, "Find";
    FIND_UNIQUE = 0x83, "Find_Unique";
    FIND_CLOSE = 0x84, "Find_Close";
    NT_TRANSACT = 0xa0, "NT_Transaction";
    NT_TRANSACT_SECONDARY = 0xa1, "NT_Transaction_Secondary";
    NT_CREATE_ANDX = 0xa2, "NT_Create+X";
    NT_CANCEL = 0xa4, "NT_Cancel";
    NT_RENAME = 0xa5, "NT_Rename";
    OPEN_PRINT_FILE = 0xc0, "Open_Print_File";
    WRITE_PRINT_FILE = 0xc1, "Write_Print_File";
    CLOSE_PRINT_FILE = 0xc2, "Close_Print_File";
    GET_PRINT_QUEUE = 0xc3, "Get_Print_Queue";
    READ_BULK = 0xd8, "Read_Bulk";
    WRITE_BULK = 0xd9, "Write_Bulk";
    WRITE_BULK_DATA = 0xda, "Write_Bulk_Data";
    INVALID = 0xfe, "Invalid";
    NO_ANDX_COMMAND = 0xff, "No_AndX_Command";
});

impl Smb1Command {
    /// End of an AndX chain.
    pub const NO_ANDX: Smb1Command = Smb1Command::NO_ANDX_COMMAND;
}

/// Parameters and data of one command, either of them possibly truncated by a snap length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// From the header for the first block, from the previous block's AndX fields for the others.
    pub command: Smb1Command,
    pub words: &'a [u8],
    pub data: &'a [u8],
    start: usize,
    /// Offset of `data` from the header, which decides the alignment of UTF-16 strings.
    data_offset: usize,
    data_end: Option<usize>,
    pub(super) unicode: bool,
    next: Option<(Smb1Command, usize)>,
}

/// AndX commands of a message; the rest is ignored.
pub(super) const MAX_CHAIN: usize = 8;

/// Buffer format of a terminated string.
pub(super) const STRING: u8 = 0x04;

/// Iterates over the blocks of a message that begins with `header`. A chain that points backwards ends there.
pub fn blocks<'a>(header: &Smb1Header, message: &'a [u8]) -> impl Iterator<Item = Block<'a>> + use<'a> {
    let unicode = header.is_unicode();
    let mut next = Some((header.command, Smb1Header::LENGTH));
    std::iter::from_fn(move || {
        let block = Block::parse(message, next?, unicode)?;
        next = block.next;
        Some(block)
    })
    .take(MAX_CHAIN)
}

impl<'a> Block<'a> {
    fn parse(message: &'a [u8], (command, offset): (Smb1Command, usize), unicode: bool) -> Option<Block<'a>> {
        let word_count = usize::from(u8_at(message, offset)?);
        let start = offset + 1;
        let end = start + 2 * word_count;
        let words = &message[start.min(message.len())..end.min(message.len())];
        let data_offset = end + 2;
        let data_end = u16_at(message, end).map(|length| data_offset + usize::from(length));
        let data = message.get(data_offset..data_end.unwrap_or(0).min(message.len())).unwrap_or_default();
        let next = next_of(command, words).filter(|(_, next)| *next > offset);
        Some(Block { command, words, data, start: offset, data_offset, data_end, unicode, next })
    }

    pub fn word_count(&self) -> usize {
        self.words.len() / 2
    }

    /// Returns a terminated string at an offset of the data, and the offset after it. `None` if truncated.
    pub fn string(&self, offset: usize) -> Option<(String, usize)> {
        self.terminated(offset, self.unicode)
    }

    /// Returns a terminated name at an offset of the data, possibly truncated by a snap length.
    pub fn name(&self, offset: usize) -> Option<CapturedName> {
        if let Some((text, _)) = self.string(offset) {
            return Some(CapturedName { text, missing: 0 });
        }
        // The terminator is in the truncated part.
        let missing = self.data_missing().filter(|missing| *missing > 0)?;
        let start = self.aligned(offset, self.unicode);
        Some(CapturedName {
            missing,
            ..CapturedName::in_range(self.data, start..self.data.len().max(start), self.unicode)
        })
    }

    /// Returns the name at the beginning of the data, which follows a buffer format byte.
    pub fn formatted_name(&self) -> Option<CapturedName> {
        if self.data.first().is_none_or(|format| *format == STRING) { self.name(1) } else { None }
    }

    pub(super) fn data_offset(&self) -> usize {
        self.data_offset
    }

    /// Returns the range of the word count, the words and ByteCount, relative to the header.
    pub(super) fn fields(&self) -> Range<usize> {
        self.start..self.data_offset
    }

    /// Returns the captured range of a terminated string, relative to the header, and the data offset after it.
    pub(super) fn text_place(&self, offset: usize) -> (Range<usize>, usize) {
        let start = self.aligned(offset, self.unicode);
        let (bytes, _) = before_terminator(self.data.get(start..).unwrap_or_default(), self.unicode);
        let place = self.data_offset + start;
        (place..place + bytes.len(), start + bytes.len() + 1 + usize::from(self.unicode))
    }

    /// Returns true if ByteCount extends to `end`, which is relative to the header, or is truncated.
    pub(super) fn reaches(&self, end: usize) -> bool {
        self.data_end.is_none_or(|data_end| end <= data_end)
    }

    fn data_missing(&self) -> Option<usize> {
        self.data_end.map(|end| end.saturating_sub(self.data_offset + self.data.len()))
    }

    /// Returns a terminated OEM string at an offset of the data, whatever the header says.
    pub fn oem(&self, offset: usize) -> Option<(String, usize)> {
        self.terminated(offset, false)
    }

    fn terminated(&self, offset: usize, unicode: bool) -> Option<(String, usize)> {
        let start = self.aligned(offset, unicode);
        let (bytes, true) = before_terminator(self.data.get(start..)?, unicode) else { return None };
        Some((text(bytes, unicode), start + bytes.len() + 1 + usize::from(unicode)))
    }

    /// Returns the start of a string: UTF-16 is aligned relative to the header.
    fn aligned(&self, offset: usize, unicode: bool) -> usize {
        if unicode { offset + (self.data_offset + offset) % 2 } else { offset }
    }
}

pub(super) fn next_of(command: Smb1Command, words: &[u8]) -> Option<(Smb1Command, usize)> {
    if !command.is_andx() {
        return None;
    }
    let next = Smb1Command(u8_at(words, 0)?);
    (next != Smb1Command::NO_ANDX).then_some((next, usize::from(u16_at(words, 2)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A READ_ANDX response header, in the order of MS-CIFS 2.2.3.1.
    const BYTES: [u8; 32] = [
        0xff, b'S', b'M', b'B', 0x2e, 0x34, 0x00, 0x00, 0xc0, 0x98, 0x05, 0xc8, 0x01, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0,
        0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    ];

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let header = Smb1Header::parse(&BYTES).unwrap();
        assert_eq!((header.command, header.flags2), (Smb1Command(0x2e), 0xc805));
        assert_eq!((header.tid, header.pid, header.uid, header.mid), (0x2211, 0x4433, 0x6655, 0x8877));
        assert_eq!(header.nt_status(), Some(NtStatus(0xc000_0034)));
        assert!(header.is_reply() && header.is_unicode() && header.is_signed());
        assert_eq!(Smb1Header::parse(&BYTES[..31]), None);
    }

    #[test]
    fn emitted_headers_parse_back() {
        let header = Smb1Header::parse(&BYTES).unwrap();
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        let mut expected = BYTES;
        // PIDHigh and the signature are not kept.
        expected[12..22].fill(0);
        assert_eq!(bytes, expected);
        assert_eq!(Smb1Header::parse(&bytes), Some(header));
    }

    #[test]
    fn old_clients_get_class_and_code() {
        let mut bytes = BYTES;
        bytes[5..9].copy_from_slice(&[1, 0, 2, 0]);
        bytes[10..12].copy_from_slice(&[1, 0]);
        let header = Smb1Header::parse(&bytes).unwrap();
        assert_eq!(header.nt_status(), None);
        assert_eq!(header.dos_error(), DosError { class: 1, code: 2 });
    }

    fn message(command: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xff, b'S', b'M', b'B', command];
        bytes.resize(Smb1Header::LENGTH, 0);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn chains_are_followed_forwards_only() {
        // LOCKING_ANDX (8 words) → READ_ANDX at offset 51, which points back to 32.
        let mut rest = vec![8, 0x2e, 0, 51, 0];
        rest.resize(1 + 16, 0);
        rest.extend([0, 0, 2, 0x24, 0, 32, 0, 0, 0]);
        let message = message(0x24, &rest);
        let header = Smb1Header::parse(&message).unwrap();
        let commands: Vec<u8> = blocks(&header, &message).map(|block| block.command.0).collect();
        assert_eq!(commands, [0x24, 0x2e]);
    }

    #[test]
    fn utf16_names_are_aligned_from_the_header() {
        // CHECK_DIRECTORY has no words, so its data starts at 35; after the format byte the name is at 36, which is
        // even.
        let mut bytes = message(0x10, &[0, 7, 0, 4, b'a', 0, b'b', 0, 0, 0]);
        bytes[10..12].copy_from_slice(&0x8000u16.to_le_bytes());
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        assert_eq!(block.formatted_name(), Some("ab".into()));
    }
}

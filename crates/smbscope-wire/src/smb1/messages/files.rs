//! Commands on files: those that open them, SMB_COM_NT_CREATE_ANDX (MS-CIFS 2.2.4.64) and its predecessor
//! SMB_COM_OPEN_ANDX (2.2.4.41); commands with only an identifier, whose responses are empty: SMB_COM_CLOSE,
//! SMB_COM_FLUSH, SMB_COM_FIND_CLOSE2 (2.2.4.5, 2.2.4.6, 2.2.4.48), SMB_COM_TREE_DISCONNECT, SMB_COM_LOGOFF_ANDX,
//! SMB_COM_NT_CANCEL (2.2.4.51, 2.2.4.54, 2.2.4.65); and locks: SMB_COM_LOCKING_ANDX (2.2.4.32) with 32-bit or 64-bit
//! ranges, which the server also sends to break an oplock.
//!
//! Commands of the core dialect are here too. NT clients still delete, rename and make directories with them (2.2.4.1,
//! 2.2.4.2, 2.2.4.7, 2.2.4.8, 2.2.4.17); only older ones send 32-bit reads, writes and locks, opens by name, and
//! queries without levels (2.2.4.3, 2.2.4.9, 2.2.4.11, 2.2.4.13, 2.2.4.23, 2.2.4.26, 2.2.4.57).

use super::super::{Smb1Command, Smb1Header, blocks};
use super::message::{Smb1Message, Smb1MessageWriter, message};
use crate::bytes::{u16_at, u32_at};

pub mod create_flags {
    /// NT_CREATE_REQUEST_OPLOCK: exclusive oplock.
    pub const REQUEST_OPLOCK: u32 = 0x0000_0002;
    /// NT_CREATE_REQUEST_OPBATCH: batch oplock.
    pub const REQUEST_OPBATCH: u32 = 0x0000_0004;
}

/// ImpersonationLevel: SEC_IMPERSONATE.
pub const IMPERSONATE: u32 = 2;

message! {
    NtCreateAndx<'a>: NT_CREATE_ANDX, 24 {
        flags: u32 = 7,
        /// As in MS-SMB2 2.2.13.1.
        desired_access: u32 = 15,
        allocation_size: u64 = 19,
        ext_file_attributes: u32 = 27,
        /// 1 FILE_SHARE_READ, 2 FILE_SHARE_WRITE, 4 FILE_SHARE_DELETE.
        share_access: u32 = 31,
        create_disposition: u32 = 35,
        /// As in MS-SMB2 2.2.13.
        create_options: u32 = 39,
        impersonation_level: u32 = 43,
    } with {
        name: text = 5,
    }
}

message! {
    NtCreateAndxResponse: NT_CREATE_ANDX, 34 {
        /// 0 none, 1 exclusive, 2 batch, 3 level II.
        oplock_level: u8 = 4,
        fid: u16 = 5,
        /// 0 superseded, 1 opened, 2 created, 3 overwritten.
        create_action: u32 = 7,
        times: [u64; 4] = 11,
        ext_file_attributes: u32 = 43,
        allocation_size: u64 = 47,
        end_of_file: u64 = 55,
        /// 0 disk, 1 and 2 pipes.
        resource_type: u16 = 63,
        /// NMPipeStatus of a pipe; for a file, features it lacks: 1 attributes, 2 streams, 4 reparse tag.
        status_flags: u16 = 65,
        /// Nonzero for a directory.
        directory: u8 = 67,
    }
}

message! {
    OpenAndx<'a>: OPEN_ANDX, 15 {
        /// Bit 1 requests an exclusive oplock, bit 2 a batch oplock.
        flags: u16 = 4,
        /// Bits 0 to 2: 0 read, 1 write, 2 both. Bits 4 to 6: sharing mode.
        access_mode: u16 = 6,
        /// Attributes that an existing file may have.
        search_attributes: u16 = 8,
        file_attributes: u16 = 10,
        /// Bits 0 and 1, if the file exists: 0 fail, 1 open, 2 truncate. Bit 4: create it otherwise.
        open_mode: u16 = 16,
        allocation_size: u32 = 18,
    } with {
        name: text,
    }
}

message! {
    OpenAndxResponse: OPEN_ANDX, 15 {
        fid: u16 = 4,
        file_attributes: u16 = 6,
        /// UTIME.
        last_write_time: u32 = 8,
        file_data_size: u32 = 12,
        /// Granted access, encoded like AccessMode.
        access_rights: u16 = 16,
        /// Bits 0 and 1: 1 opened, 2 created, 3 truncated. Bit 15: oplock granted.
        open_results: u16 = 22,
    }
}

message! {
    Close: CLOSE, 3 {
        fid: u16 = 0,
        /// UTIME; all ones leave it to the server.
        last_write_time: u32 = 2,
    }
}

impl Close {
    /// Creates a request that leaves the time of last write to the server.
    pub fn new(fid: u16) -> Close {
        Close { fid, last_write_time: u32::MAX }
    }
}

message! {
    Flush: FLUSH, 1 {
        /// 0xffff flushes all files of the process.
        fid: u16 = 0,
    }
}

message! {
    /// Ends a directory listing early.
    FindClose2: FIND_CLOSE2, 1 {
        sid: u16 = 0,
    }
}

message! {
    TreeDisconnect: TREE_DISCONNECT, 0 {}
}

message! {
    LogoffAndx: LOGOFF_ANDX, 2 {}
}

message! {
    /// Cancels the request with the same TID, PID, UID and MID. Has no response of its own.
    NtCancel: NT_CANCEL, 0 {}
}

pub mod lock_type {
    /// Shared lock; exclusive if clear.
    pub const SHARED_LOCK: u8 = 0x01;
    /// Oplock break (server) or its acknowledgment (client).
    pub const OPLOCK_RELEASE: u8 = 0x02;
    /// Ranges have 64 bits.
    pub const LARGE_FILES: u8 = 0x10;
}

message! {
    LockingAndxFields: LOCKING_ANDX, 8 {
        fid: u16 = 4,
        type_of_lock: u8 = 6,
        /// 0 none, 1 level II.
        new_oplock_level: u8 = 7,
        timeout: u32 = 8,
        unlocks: u16 = 12,
        locks: u16 = 14,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockingAndxRange {
    /// Process that owns the lock: only the same one can unlock the range.
    pub pid: u16,
    pub offset: u64,
    pub length: u64,
}

impl LockingAndxRange {
    /// Parses the first range of the data, which may be truncated.
    pub(in crate::smb1) fn parse(data: &[u8], type_of_lock: u8) -> Option<LockingAndxRange> {
        let pid = u16_at(data, 0)?;
        if type_of_lock & lock_type::LARGE_FILES == 0 {
            return Some(LockingAndxRange { pid, offset: u32_at(data, 2)?.into(), length: u32_at(data, 6)?.into() });
        }
        // Two bytes of padding precede the offset. High halves come first.
        let wide = |at| Some(u64::from(u32_at(data, at)?) << 32 | u64::from(u32_at(data, at + 4)?));
        Some(LockingAndxRange { pid, offset: wide(4)?, length: wide(12)? })
    }

    fn emit(&self, type_of_lock: u8, writer: &mut Smb1MessageWriter<'_>) {
        let is_wide = type_of_lock & lock_type::LARGE_FILES != 0;
        writer.u16(self.pid);
        if is_wide {
            writer.u16(0);
        }
        for value in [self.offset, self.length] {
            if is_wide {
                writer.u32((value >> 32) as u32);
            }
            writer.u32(value as u32);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LockingAndx<'a> {
    pub fid: u16,
    pub type_of_lock: u8,
    /// Acknowledged level of an oplock break: 0 none, 1 level II.
    pub new_oplock_level: u8,
    /// Milliseconds; zero fails immediately, all ones waits forever.
    pub timeout: u32,
    pub unlocks: &'a [LockingAndxRange],
    pub locks: &'a [LockingAndxRange],
}

impl Smb1Message for LockingAndx<'_> {
    const COMMAND: Smb1Command = Smb1Command::LOCKING_ANDX;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let fields = LockingAndxFields {
            fid: self.fid,
            type_of_lock: self.type_of_lock,
            new_oplock_level: self.new_oplock_level,
            timeout: self.timeout,
            unlocks: self.unlocks.len() as u16,
            locks: self.locks.len() as u16,
        };
        fields.body(writer);
        for range in self.unlocks.iter().chain(self.locks) {
            range.emit(self.type_of_lock, writer);
        }
    }
}

message! {
    LockingAndxResponse: LOCKING_ANDX, 2 {}
}

/// Oplock break sent by the server (MS-CIFS 3.3.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockingAndxRequest {
    pub fid: u16,
    pub type_of_lock: u8,
    /// Remaining level: 0 none, 1 level II.
    pub new_oplock_level: u8,
}

impl LockingAndxRequest {
    pub fn parse(message: &[u8]) -> Option<LockingAndxRequest> {
        let header = Smb1Header::parse(message).filter(|header| !header.is_reply())?;
        let block = blocks(&header, message).next()?;
        let break_of = LockingAndxRequest {
            fid: LockingAndxFields::fid(block.words)?,
            type_of_lock: LockingAndxFields::type_of_lock(block.words)?,
            new_oplock_level: LockingAndxFields::new_oplock_level(block.words)?,
        };
        let is_break =
            block.command == Smb1Command::LOCKING_ANDX && break_of.type_of_lock & lock_type::OPLOCK_RELEASE != 0;
        is_break.then_some(break_of)
    }
}

message! {
    /// READ. WRITE, LOCK_AND_READ, WRITE_AND_UNLOCK and WRITE_AND_CLOSE begin with the same fields.
    ReadBytes: READ, 5 {
        fid: u16 = 0,
        count: u16 = 2,
        offset: u32 = 4,
    }
}

message! {
    /// LOCK_BYTE_RANGE and UNLOCK_BYTE_RANGE.
    LockByteRange: LOCK_BYTE_RANGE, 5 {
        fid: u16 = 0,
        count: u32 = 2,
        offset: u32 = 6,
    }
}

message! {
    /// Read whose response consists of several messages.
    ReadMpx: READ_MPX, 8 {
        fid: u16 = 0,
        offset: u32 = 2,
        max_count: u16 = 6,
    }
}

message! {
    ReadMpxResponse: READ_MPX, 8 {
        /// Bytes of the whole response.
        count: u16 = 4,
        data_length: u16 = 12,
    }
}

message! {
    /// Write whose request consists of several messages.
    WriteMpx: WRITE_MPX, 12 {
        fid: u16 = 0,
        total_byte_count: u16 = 2,
        /// Offset in the file of this message's data.
        byte_offset: u32 = 6,
    }
}

message! {
    /// Response to OPEN. Responses to CREATE, CREATE_NEW and CREATE_TEMPORARY begin with the same fields.
    OpenResponse: OPEN, 7 {
        fid: u16 = 0,
        file_attributes: u16 = 2,
        file_size: u32 = 8,
    }
}

message! {
    Delete<'a>: DELETE, 1 {
        search_attributes: u16 = 0,
    } with {
        file_name: formatted,
    }
}

message! {
    Rename<'a>: RENAME, 1 {
        search_attributes: u16 = 0,
    } with {
        old_file_name: formatted,
        new_file_name: formatted,
    }
}

message! {
    CreateDirectory<'a>: CREATE_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    DeleteDirectory<'a>: DELETE_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    CheckDirectory<'a>: CHECK_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    QueryInformationResponse: QUERY_INFORMATION, 10 {
        file_attributes: u16 = 0,
        /// UTIME.
        last_write_time: u32 = 2,
        file_size: u32 = 6,
    }
}

message! {
    QueryInformationDiskResponse: QUERY_INFORMATION_DISK, 5 {
        total_units: u16 = 0,
        blocks_per_unit: u16 = 2,
        block_size: u16 = 4,
        free_units: u16 = 6,
    }
}

#[cfg(test)]
mod tests {
    use super::super::WireText;
    use super::super::testing::{emitted, emitted_oem, response, utf16};
    use super::*;

    const CREATE: NtCreateAndx<'_> = NtCreateAndx {
        flags: 0x16,
        desired_access: 0x0012_019f,
        allocation_size: 0,
        ext_file_attributes: 0x80,
        share_access: 3,
        create_disposition: 5,
        create_options: 0x40,
        impersonation_level: IMPERSONATE,
        name: WireText::Str(r"\a.b"),
    };

    #[test]
    fn the_name_has_a_length_and_is_terminated_all_the_same() {
        let mut expected = vec![24, 0xff, 0, 0, 0, 0, 8, 0, 0x16, 0, 0, 0, 0, 0, 0, 0, 0x9f, 0x01, 0x12, 0];
        expected.extend([0; 8]);
        expected.extend([0x80, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 0x40, 0, 0, 0, 2, 0, 0, 0, 0]);
        // The data begins at 32 + 1 + 48 + 2 = 83: one byte of padding.
        expected.extend([11, 0, 0]);
        expected.extend(utf16("\\a.b\0"));
        assert_eq!(emitted(&CREATE), expected);
    }

    #[test]
    fn oem_names_are_not_aligned() {
        let bytes = emitted_oem(&CREATE);
        assert_eq!(bytes[6..8], [4, 0]);
        assert_eq!(bytes[49..], *b"\x05\x00\\a.b\0");
    }

    #[test]
    fn fields_of_the_answer_are_where_the_specification_puts_them() {
        let mut words = vec![0xff, 0, 0, 0, 2, 0xcd, 0xab, 1, 0, 0, 0];
        for time in 1..=4u64 {
            words.extend(time.to_le_bytes());
        }
        words.extend([0x20, 0, 0, 0]);
        words.extend(4096u64.to_le_bytes());
        words.extend(1234u64.to_le_bytes());
        words.extend([0, 0, 7, 0, 1]);
        assert_eq!(words.len(), 68);
        let answer = NtCreateAndxResponse::parse(&response(Smb1Command::NT_CREATE_ANDX, &words, &[])).unwrap();
        assert_eq!((answer.oplock_level, answer.fid, answer.create_action), (2, 0xabcd, 1));
        assert_eq!((answer.times[2], answer.allocation_size, answer.end_of_file), (3, 4096, 1234));
        assert_eq!((answer.ext_file_attributes, answer.directory), (0x20, 1));
        let short = response(Smb1Command::NT_CREATE_ANDX, &words[..66], &[]);
        assert_eq!(NtCreateAndxResponse::parse(&short).unwrap_err().what, "too few parameters");
    }

    #[test]
    fn fifteen_words_and_the_name() {
        let open = OpenAndx {
            flags: 2,
            access_mode: 0x42,
            search_attributes: 6,
            file_attributes: 0x20,
            open_mode: 0x11,
            allocation_size: 0x0102,
            name: "\\a".into(),
        };
        let mut expected = vec![15, 0xff, 0, 0, 0, 2, 0, 0x42, 0, 6, 0, 0x20, 0, 0, 0, 0, 0, 0x11, 0, 2, 1, 0, 0];
        expected.extend([0; 8]);
        // The data begins at 32 + 1 + 30 + 2 = 65: one byte of padding.
        expected.extend([7, 0, 0, b'\\', 0, b'a', 0, 0, 0]);
        assert_eq!(emitted(&open), expected);
    }

    #[test]
    fn fields_of_the_open_andx_answer_are_where_the_specification_puts_them() {
        let mut words = vec![0xff, 0, 0, 0, 0x34, 0x12, 0x20, 0, 1, 1, 1, 1, 0x10, 0x27, 0, 0, 2, 0];
        words.extend([0, 0, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0]);
        let answer = OpenAndxResponse::parse(&response(Smb1Command::OPEN_ANDX, &words, &[])).unwrap();
        let expected = OpenAndxResponse {
            fid: 0x1234,
            file_attributes: 0x20,
            last_write_time: 0x0101_0101,
            file_data_size: 10_000,
            access_rights: 2,
            open_results: 0x8002,
        };
        assert_eq!(answer, expected);
    }

    #[test]
    fn words_are_where_the_specification_puts_them() {
        assert_eq!(emitted(&Close::new(0x1234)), [3, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        assert_eq!(emitted(&Flush { fid: 0x1234 }), [1, 0x34, 0x12, 0, 0]);
        assert_eq!(emitted(&FindClose2 { sid: 0x1234 }), [1, 0x34, 0x12, 0, 0]);
        assert_eq!(emitted(&TreeDisconnect {}), [0, 0, 0]);
        assert_eq!(emitted(&LogoffAndx {}), [2, 0xff, 0, 0, 0, 0, 0]);
        assert_eq!(emitted(&NtCancel {}), [0, 0, 0]);
    }

    #[test]
    fn wide_ranges_have_their_high_halves_first() {
        let range = LockingAndxRange { pid: 0x1234, offset: 0x1_0000_0002, length: 0x3_0000_0004 };
        let lock = LockingAndx {
            fid: 0x5678,
            type_of_lock: lock_type::LARGE_FILES,
            new_oplock_level: 0,
            timeout: u32::MAX,
            unlocks: &[],
            locks: &[range],
        };
        let mut expected = vec![8, 0xff, 0, 0, 0, 0x78, 0x56, 0x10, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 20, 0];
        expected.extend([0x34, 0x12, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(emitted(&lock), expected);
    }

    #[test]
    fn breaks_are_requests_and_answers_are_not() {
        let words = [0xff, 0, 0, 0, 0x78, 0x56, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut bytes = response(Smb1Command::LOCKING_ANDX, &words, &[]);
        assert_eq!(LockingAndxRequest::parse(&bytes), None);
        bytes[9] = 0;
        let expected = LockingAndxRequest { fid: 0x5678, type_of_lock: 2, new_oplock_level: 1 };
        assert_eq!(LockingAndxRequest::parse(&bytes), Some(expected));
    }

    #[test]
    fn words_of_the_core_dialect_are_where_the_specification_puts_them() {
        let read = ReadBytes { fid: 0x1234, count: 0x0102, offset: 0x0304_0506 };
        assert_eq!(emitted(&read), [5, 0x34, 0x12, 2, 1, 6, 5, 4, 3, 0, 0, 0, 0]);
        let lock = LockByteRange { fid: 0x1234, count: 0x0102_0304, offset: 5 };
        assert_eq!(emitted(&lock), [5, 0x34, 0x12, 4, 3, 2, 1, 5, 0, 0, 0, 0, 0]);
        let read = ReadMpx { fid: 0x1234, offset: 5, max_count: 0x0102 };
        assert_eq!(emitted(&read)[..9], [8, 0x34, 0x12, 5, 0, 0, 0, 2, 1]);
        let write = WriteMpx { fid: 0x1234, total_byte_count: 0x0102, byte_offset: 5 };
        assert_eq!(emitted(&write)[..11], [12, 0x34, 0x12, 2, 1, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn a_multiplexed_response_states_partial_and_total_lengths() {
        let words = [0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 52, 0];
        let answer = ReadMpxResponse::parse(&response(Smb1Command::READ_MPX, &words, b"\0data")).unwrap();
        assert_eq!(answer, ReadMpxResponse { count: 9, data_length: 4 });
    }

    #[test]
    fn the_name_of_a_delete_follows_a_format_byte() {
        let delete = Delete { search_attributes: 6, file_name: "\\f".into() };
        // The data begins at 32 + 1 + 2 + 2 = 37, so the name after the format byte is at the even offset 38.
        assert_eq!(emitted(&delete), [1, 6, 0, 7, 0, 4, b'\\', 0, b'f', 0, 0, 0]);
    }

    #[test]
    fn both_names_are_aligned_behind_their_format_bytes() {
        let rename = Rename { search_attributes: 0x16, old_file_name: "a".into(), new_file_name: "b".into() };
        // The first name is at 38; the second format byte is at 42, so one byte of padding precedes the second name.
        assert_eq!(emitted(&rename), [1, 0x16, 0, 11, 0, 4, b'a', 0, 0, 0, 4, 0, b'b', 0, 0, 0]);
    }

    #[test]
    fn the_name_of_a_directory_follows_a_format_byte() {
        let request = CheckDirectory { directory_name: "\\d".into() };
        // The data begins at 32 + 1 + 2 = 35, so the name after the format byte is at the even offset 36.
        assert_eq!(emitted(&request), [0, 7, 0, 4, b'\\', 0, b'd', 0, 0, 0]);
        assert_eq!(emitted_oem(&request), b"\x00\x04\x00\x04\\d\0");
        assert_eq!(emitted(&CreateDirectory { directory_name: "\\d".into() }), emitted(&request));
        assert_eq!(emitted(&DeleteDirectory { directory_name: "\\d".into() }), emitted(&request));
    }
}

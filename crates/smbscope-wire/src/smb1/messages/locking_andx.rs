//! SMB_COM_LOCKING_ANDX (MS-CIFS 2.2.4.32) with 32-bit or 64-bit ranges. The server also sends it to break an oplock.

use super::super::{Smb1Command, Smb1Header, blocks};
use super::message::{Smb1Message, Smb1MessageWriter, message};
use crate::bytes::{u16_at, u32_at};

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

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

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
}

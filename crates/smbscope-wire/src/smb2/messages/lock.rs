//! LOCK (MS-SMB2 2.2.26, 2.2.27).

use super::Smb2RequestMessage;
use super::message::message;
use crate::bytes::{u32_at, u64_at};
use crate::codec::{FixedSizeField, List};
use crate::smb2::FileReference;

/// Flags of a [`LockElement`].
pub mod flags {
    /// SMB2_LOCKFLAG_SHARED_LOCK
    pub const SHARED: u32 = 0x01;
    /// SMB2_LOCKFLAG_EXCLUSIVE_LOCK
    pub const EXCLUSIVE: u32 = 0x02;
    /// SMB2_LOCKFLAG_UNLOCK
    pub const UNLOCK: u32 = 0x04;
    /// SMB2_LOCKFLAG_FAIL_IMMEDIATELY
    pub const FAIL_IMMEDIATELY: u32 = 0x10;
}

/// SMB2_LOCK_ELEMENT (MS-SMB2 2.2.26.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockElement {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// See [`flags`].
    pub flags: u32,
}

impl LockElement {
    /// Whether the request waits until the range is free.
    pub fn waits(&self) -> bool {
        self.flags & (flags::UNLOCK | flags::FAIL_IMMEDIATELY) == 0
    }
}

impl FixedSizeField for LockElement {
    const LENGTH: usize = 24;

    fn at(bytes: &[u8], at: usize) -> Option<LockElement> {
        Some(LockElement { offset: u64_at(bytes, at)?, length: u64_at(bytes, at + 8)?, flags: u32_at(bytes, at + 16)? })
    }

    fn set(self, bytes: &mut [u8], at: usize) {
        self.offset.set(bytes, at);
        self.length.set(bytes, at + 8);
        self.flags.set(bytes, at + 16);
    }
}

message! {
    /// Locks or unlocks ranges. StructureSize counts the first of them.
    request Request<'a>: LOCK, 48 in 24 {
        /// The open.
        file: FileReference = 8,
    } with {
        /// At least one.
        locks: List<'a, LockElement> = [u16 @ 2],
    }
}

impl Smb2RequestMessage for Request<'_> {}

message! {
    /// They are.
    response Response: LOCK, 4 {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn a_lock_has_24_bytes() {
        let element = LockElement { offset: 1, length: 2, flags: flags::EXCLUSIVE | flags::FAIL_IMMEDIATELY };
        let message =
            request(&Request { file: FileReference { persistent: 8, volatile: 9 }, locks: List::Values(&[element]) });
        assert_eq!(message[64..72], [48, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(message[88..], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0]);
        assert!(!element.waits());
    }
}

//! LOCK (MS-SMB2 2.2.26, 2.2.27).

use super::Smb2RequestMessage;
use super::message::message;
use crate::bytes::{u32_at, u64_at};
use crate::codec::{FixedSizeField, List};
use crate::smb2::FileReference;

/// Flags of a [`LockElement`] (SMB2_LOCKFLAG_*).
pub mod flags {
    pub const SHARED: u32 = 0x01;
    pub const EXCLUSIVE: u32 = 0x02;
    pub const UNLOCK: u32 = 0x04;
    pub const FAIL_IMMEDIATELY: u32 = 0x10;
}

/// SMB2_LOCK_ELEMENT (2.2.26.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockElement {
    pub offset: u64,
    pub length: u64,
    pub flags: u32,
}

impl LockElement {
    /// Returns true if the server may delay the response until the range is free.
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
    /// StructureSize includes the first element.
    request Request<'a>: LOCK, 48 in 24 {
        file: FileReference = 8,
    } with {
        /// At least one.
        locks: List<'a, LockElement> = [u16 @ 2],
    }
}

impl Smb2RequestMessage for Request<'_> {}

message! {
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

//! LOCK (MS-SMB2 2.2.26).

use super::Body;
use super::put::Put;
use crate::smb2::{Command, FileReference, LockElement};

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

/// Locks or unlocks ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The open.
    pub file: FileReference,
    /// At least one.
    pub locks: &'a [LockElement],
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::LOCK;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(48);
        out.put_u16(self.locks.len() as u16);
        out.put_u32(0); // LockSequence
        out.put_file(self.file);
        for lock in self.locks {
            out.put_u64(lock.offset);
            out.put_u64(lock.length);
            out.put_u32(lock.flags);
            out.put_u32(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn a_lock_has_24_bytes() {
        let element = LockElement { offset: 1, length: 2, flags: flags::EXCLUSIVE | flags::FAIL_IMMEDIATELY };
        let message = request(&Request { file: FileReference { persistent: 8, volatile: 9 }, locks: &[element] });
        assert_eq!(message[64..72], [48, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(message[88..], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0]);
        assert!(!element.waits());
    }
}

//! Structures of MS-SMB2 that both the messages and [`Smb2Request`](super::Smb2Request) and
//! [`Smb2Response`](super::Smb2Response) contain.

use crate::bytes::{u32_at, u64_at};
use crate::codec::FixedSizeField;
use std::net::IpAddr;

/// SMB2_FILEID (MS-SMB2 2.2.14.1), the handle of an open: a part that survives a reconnect, and one that is unique on
/// the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileReference {
    pub persistent: u64,
    pub volatile: u64,
}

impl FileReference {
    /// File of the preceding operation in a related compound (MS-SMB2 3.2.4.1.4).
    pub const RELATED: FileReference = FileReference { persistent: u64::MAX, volatile: u64::MAX };
    /// Placeholder for control codes without a file (MS-SMB2 2.2.31).
    pub const NONE: FileReference = FileReference::RELATED;
}

impl FixedSizeField for FileReference {
    const LENGTH: usize = 16;

    #[inline]
    fn at(bytes: &[u8], at: usize) -> Option<FileReference> {
        Some(FileReference { persistent: u64_at(bytes, at)?, volatile: u64_at(bytes, at + 8)? })
    }

    #[inline]
    fn set(self, bytes: &mut [u8], at: usize) {
        self.persistent.set(bytes, at);
        self.volatile.set(bytes, at + 8);
    }
}

/// SMB2_LOCK_ELEMENT (MS-SMB2 2.2.26.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockElement {
    pub offset: u64,
    pub length: u64,
    pub flags: u32,
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

/// NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5): an address at which a server can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkInterfaceInfo {
    pub index: u32,
    /// 1 receive side scaling, 2 RDMA.
    pub capability: u32,
    pub link_speed: u64,
    pub address: IpAddr,
}

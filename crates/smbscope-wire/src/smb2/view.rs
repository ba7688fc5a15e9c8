//! Operation described by a possibly truncated SMB2 message: file, path, offset, length, subcommand; and the structures
//! that such views and the messages share.
//!
//! Offsets are relative to the message's header, like the specification's own offset fields.

use super::Smb2Header;
use crate::bytes::{CapturedName, u32_at, u64_at};
use crate::codec::FixedSizeField;
use crate::names::{Fsctl, InfoLevel};
use crate::security::SecurityToken;
use std::net::IpAddr;

/// Result of a CREATE: the open and the caching granted to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    pub file: FileReference,
    pub oplock_level: u8,
    pub lease: Option<GrantedLease>,
    pub create_action: u32,
    pub file_attributes: u32,
    /// LastWriteTime as FILETIME.
    pub last_write: u64,
    pub end_of_file: u64,
}

/// Granted lease (2.2.14.2.10, 2.2.14.2.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedLease {
    pub key: [u8; 16],
    pub state: u32,
}

/// Offer of a client in NEGOTIATE (2.2.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smb2ClientOffer {
    pub security_mode: u16,
    /// Zero unless the client speaks SMB 3. See [`capabilities`](super::messages::negotiate::capabilities).
    pub capabilities: u32,
    pub dialects: Vec<u16>,
    pub algorithms: Smb2AlgorithmIds,
}

/// Choices of a server in NEGOTIATE (2.2.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smb2ServerOffer {
    pub security_mode: u16,
    /// 0x02ff asks for another NEGOTIATE.
    pub dialect: u16,
    pub capabilities: u32,
    pub max_read_size: u32,
    pub max_write_size: u32,
    pub algorithms: Smb2AlgorithmIds,
}

/// Algorithm ids of one side (2.2.3.1), preferred first. Absent if truncated; empty if the side sent none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smb2AlgorithmIds {
    pub ciphers: Option<Vec<u16>>,
    pub signing: Option<Vec<u16>>,
    pub compression: Option<Vec<u16>>,
}

/// Fields of a request that identify its target (MS-SMB2 2.2.3 to 2.2.39).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb2Request {
    Negotiate(Box<Smb2ClientOffer>),
    SessionSetup {
        /// SMB2_SESSION_FLAG_BINDING: joins an existing session.
        binding: bool,
        identity: Option<SecurityToken>,
    },
    /// 2.2.9: `\\server\share`.
    TreeConnect(CapturedName),
    Create {
        name: CapturedName,
        /// Absent if truncated.
        oplock_level: Option<u8>,
    },
    ReadWrite {
        file: FileReference,
        offset: u64,
        length: u32,
    },
    Lock {
        file: FileReference,
        element: Option<LockElement>,
    },
    Ioctl {
        file: FileReference,
        code: Fsctl,
    },
    Info {
        file: FileReference,
        level: InfoLevel,
        /// Target of FileRenameInformation.
        new_name: Option<CapturedName>,
    },
    File(FileReference),
    /// Anything else, or truncated.
    Other,
}

/// Fields of a response that later messages refer to (MS-SMB2 2.2.4 to 2.2.32).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb2Response {
    Negotiate(Box<Smb2ServerOffer>),
    /// 2.2.6: SessionFlags (1 guest, 2 anonymous, 4 encrypt).
    SessionSetup(u16),
    /// 2.2.10: ShareType (1 disk, 2 pipe, 3 printer).
    TreeConnect(u8),
    Create(Created),
    OplockBreak {
        file: FileReference,
        oplock_level: u8,
    },
    LeaseBreak,
    /// 2.2.32.5: response to FSCTL_QUERY_NETWORK_INTERFACE_INFO.
    Interfaces(Vec<NetworkInterfaceInfo>),
    /// Anything else, or truncated.
    Other,
}

/// End of the bytes that are parsed of commands unknown or with large requests: the file id at any usual offset.
pub(super) const HEAD: usize = Smb2Header::LENGTH + 32;

/// End of StructureSize and the fields next to it.
pub(super) const RESPONSE_HEAD: usize = Smb2Header::LENGTH + 8;

/// Returns the end of a buffer, but at least the end of the fields.
pub(super) fn reach(place: Option<(usize, usize)>, fields: usize) -> usize {
    place.map_or(0, |(start, length)| start.saturating_add(length)).max(fields)
}

pub(super) fn text(message: &[u8], (start, length): (usize, usize)) -> CapturedName {
    CapturedName::in_range(message, start..start + length, true)
}

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

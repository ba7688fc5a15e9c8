//! SMB2_FILEID (MS-SMB2 2.2.14.1).

use crate::bytes::u64_at;
use crate::codec::FixedSizeField;

/// Handle of an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileReference {
    /// Part that survives a reconnect.
    pub persistent: u64,
    /// Part that is unique on the connection.
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

//! Arguments and results of file operations, in SMB2 terms. SMB1 converts them.

use smbscope_model::FileId;
use smbscope_wire::fscc::Data;
use smbscope_wire::names::InfoLevel;

/// DesiredAccess (MS-SMB2 2.2.13.1.1). SMB1 NT_CREATE uses the same bits.
pub mod access {
    pub const READ_DATA: u32 = 0x0000_0001;
    pub const WRITE_DATA: u32 = 0x0000_0002;
    pub const APPEND_DATA: u32 = 0x0000_0004;
    pub const READ_ATTRIBUTES: u32 = 0x0000_0080;
    pub const WRITE_ATTRIBUTES: u32 = 0x0000_0100;
    pub const DELETE: u32 = 0x0001_0000;
    pub const SYNCHRONIZE: u32 = 0x0010_0000;
    pub const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    pub const GENERIC_READ: u32 = 0x8000_0000;
}

/// CreateOptions (MS-SMB2 2.2.13).
pub mod options {
    pub const DIRECTORY: u32 = 0x0000_0001;
    pub const WRITE_THROUGH: u32 = 0x0000_0002;
    pub const SEQUENTIAL_ONLY: u32 = 0x0000_0004;
    /// FILE_NO_INTERMEDIATE_BUFFERING
    pub const NO_BUFFERING: u32 = 0x0000_0008;
    pub const NON_DIRECTORY: u32 = 0x0000_0040;
    pub const RANDOM_ACCESS: u32 = 0x0000_0800;
    pub const DELETE_ON_CLOSE: u32 = 0x0000_1000;
}

/// CreateDisposition (MS-SMB2 2.2.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CreateDisposition {
    Supersede = 0,
    Open = 1,
    Create = 2,
    OpenIf = 3,
    Overwrite = 4,
    OverwriteIf = 5,
}

/// Arguments of an open. Paths are relative to the share, with backslashes and no leading one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenParameters<'a> {
    /// Empty for the root of the share.
    pub path: &'a str,
    pub access: u32,
    /// FILE_SHARE_READ 1, FILE_SHARE_WRITE 2, FILE_SHARE_DELETE 4.
    pub share: u32,
    pub disposition: CreateDisposition,
    pub options: u32,
    /// FileAttributes (MS-FSCC 2.6).
    pub attributes: u32,
}

impl<'a> OpenParameters<'a> {
    /// Opens an existing file or directory, and shares it with everybody.
    pub(super) fn existing(path: &'a str, access: u32, options: u32) -> OpenParameters<'a> {
        OpenParameters { path, access, share: 7, disposition: CreateDisposition::Open, options, attributes: 0 }
    }

    /// Opens a file that is removed when it is closed.
    pub(super) fn deleting(path: &'a str) -> OpenParameters<'a> {
        OpenParameters::existing(path, access::DELETE, options::NON_DIRECTORY | options::DELETE_ON_CLOSE)
    }

    /// Opens an existing file for reading.
    pub(super) fn reading(path: &'a str) -> OpenParameters<'a> {
        OpenParameters::existing(path, access::READ_DATA | access::READ_ATTRIBUTES, options::NON_DIRECTORY)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle(pub FileId);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenResult {
    pub handle: FileHandle,
    pub size: u64,
    pub attributes: u32,
    /// CreateAction: 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub action: u32,
}

/// Class of file (MS-FSCC 2.4) or file system information (2.5). SMB1 uses its own or a pass-through level.
pub type Info = InfoLevel;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetInfo<'a> {
    /// FileBasicInformation. A zero time stays unchanged. Times are FILETIMEs.
    Basic {
        creation: u64,
        last_access: u64,
        last_write: u64,
        change: u64,
        /// FileAttributes (MS-FSCC 2.6). Zero keeps them unchanged.
        attributes: u32,
    },
    /// FileEndOfFileInformation
    EndOfFile(u64),
    /// FileAllocationInformation
    Allocation(u64),
    /// FileDispositionInformation
    Delete(bool),
    /// FileRenameInformation
    Rename { path: &'a str, replace: bool },
}

impl<'a> From<SetInfo<'a>> for Data<'a> {
    fn from(set: SetInfo<'a>) -> Data<'a> {
        match set {
            SetInfo::Basic { creation, last_access, last_write, change, attributes } => {
                Data::Basic { times: [creation, last_access, last_write, change], file_attributes: attributes }
            }
            SetInfo::EndOfFile(size) => Data::EndOfFile(size),
            SetInfo::Allocation(size) => Data::Allocation(size),
            SetInfo::Delete(delete) => Data::Disposition(delete),
            SetInfo::Rename { path, replace } => Data::Rename { path: path.into(), replace },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRangeLock {
    pub offset: u64,
    pub length: u64,
    pub exclusive: bool,
    pub wait: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    pub name: String,
    pub size: u64,
    pub attributes: u32,
}

impl ListingEntry {
    pub fn is_directory(&self) -> bool {
        self.attributes & 0x10 != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRange {
    pub offset: u64,
    pub length: u32,
}

impl FileRange {
    pub(super) fn cut(self, most: u32) -> impl Iterator<Item = FileRange> {
        let most = most.max(1);
        (0..self.length.div_ceil(most)).map(move |piece| FileRange {
            offset: self.offset.saturating_add(u64::from(piece) * u64::from(most)),
            length: most.min(self.length - piece * most),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadRetention {
    All,
    /// The length only: a load generator reads files larger than its memory.
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub enum TransferDirection<'a> {
    Read,
    /// Each range is written with the start of these bytes, in commands no longer than the slice.
    Write(&'a [u8]),
}

impl TransferDirection<'_> {
    /// Returns the largest command, for a server with these limits.
    pub(super) fn largest(&self, max_read: u32, max_write: u32) -> u32 {
        match self {
            TransferDirection::Read => max_read,
            TransferDirection::Write(data) => max_write.min(u32::try_from(data.len()).unwrap_or(u32::MAX)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WholeFile {
    pub path: String,
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    pub bytes: u64,
    pub outstanding: u32,
}

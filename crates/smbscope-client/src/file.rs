//! What operations on files take and give, in the words of SMB2; SMB1 puts them into its own.

use smbscope_model::FileId;
use smbscope_wire::fscc::Data;
use smbscope_wire::names::InfoLevel;

/// DesiredAccess (MS-SMB2 2.2.13.1.1); SMB1 NT_CREATE has the same bits.
pub mod access {
    /// FILE_READ_DATA
    pub const READ_DATA: u32 = 0x0000_0001;
    /// FILE_WRITE_DATA
    pub const WRITE_DATA: u32 = 0x0000_0002;
    /// FILE_APPEND_DATA
    pub const APPEND_DATA: u32 = 0x0000_0004;
    /// FILE_READ_ATTRIBUTES
    pub const READ_ATTRIBUTES: u32 = 0x0000_0080;
    /// FILE_WRITE_ATTRIBUTES
    pub const WRITE_ATTRIBUTES: u32 = 0x0000_0100;
    /// DELETE
    pub const DELETE: u32 = 0x0001_0000;
    /// SYNCHRONIZE
    pub const SYNCHRONIZE: u32 = 0x0010_0000;
    /// MAXIMUM_ALLOWED
    pub const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
    /// GENERIC_WRITE
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    /// GENERIC_READ
    pub const GENERIC_READ: u32 = 0x8000_0000;
}

/// CreateOptions (MS-SMB2 2.2.13).
pub mod options {
    /// FILE_DIRECTORY_FILE
    pub const DIRECTORY: u32 = 0x0000_0001;
    /// FILE_WRITE_THROUGH
    pub const WRITE_THROUGH: u32 = 0x0000_0002;
    /// FILE_SEQUENTIAL_ONLY
    pub const SEQUENTIAL_ONLY: u32 = 0x0000_0004;
    /// FILE_NO_INTERMEDIATE_BUFFERING
    pub const NO_BUFFERING: u32 = 0x0000_0008;
    /// FILE_NON_DIRECTORY_FILE
    pub const NON_DIRECTORY: u32 = 0x0000_0040;
    /// FILE_RANDOM_ACCESS
    pub const RANDOM_ACCESS: u32 = 0x0000_0800;
    /// FILE_DELETE_ON_CLOSE
    pub const DELETE_ON_CLOSE: u32 = 0x0000_1000;
}

/// CreateDisposition (MS-SMB2 2.2.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CreateDisposition {
    /// FILE_SUPERSEDE
    Supersede = 0,
    /// FILE_OPEN
    Open = 1,
    /// FILE_CREATE
    Create = 2,
    /// FILE_OPEN_IF
    OpenIf = 3,
    /// FILE_OVERWRITE
    Overwrite = 4,
    /// FILE_OVERWRITE_IF
    OverwriteIf = 5,
}

/// What to open. Paths are relative to the share, with backslashes, and without one at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenParameters<'a> {
    /// Empty for the root of the share.
    pub path: &'a str,
    /// See [`access`].
    pub access: u32,
    /// FILE_SHARE_READ 1, FILE_SHARE_WRITE 2, FILE_SHARE_DELETE 4.
    pub share: u32,
    /// What to do where the file exists, or does not.
    pub disposition: CreateDisposition,
    /// See [`options`].
    pub options: u32,
    /// MS-FSCC 2.6.
    pub attributes: u32,
}

/// An open file of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle(pub FileId);

/// What an open says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenResult {
    /// For what follows.
    pub handle: FileHandle,
    /// EndOfFile.
    pub size: u64,
    /// MS-FSCC 2.6.
    pub attributes: u32,
    /// CreateAction: 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub action: u32,
}

/// Which information to ask for: a class of MS-FSCC 2.4 (of files) or 2.5 (of file systems). SMB1 asks for its own level
/// of the same meaning where there is one, and passes the class through otherwise.
pub type Info = InfoLevel;

/// What to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetInfo<'a> {
    /// FileBasicInformation; zero leaves a time as it is.
    Basic {
        /// FILETIME
        creation: u64,
        /// FILETIME
        last_access: u64,
        /// FILETIME
        last_write: u64,
        /// FILETIME
        change: u64,
        /// MS-FSCC 2.6; zero leaves them.
        attributes: u32,
    },
    /// FileEndOfFileInformation
    EndOfFile(u64),
    /// FileAllocationInformation
    Allocation(u64),
    /// FileDispositionInformation
    Delete(bool),
    /// FileRenameInformation
    Rename {
        /// The new path.
        path: &'a str,
        /// Whether a file that is there gives way.
        replace: bool,
    },
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

/// A range of bytes to lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRangeLock {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// For oneself alone, not shared.
    pub exclusive: bool,
    /// Wait until it is free.
    pub wait: bool,
}

/// A directory entry, borrowed from the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// The name.
    pub name: String,
    /// EndOfFile.
    pub size: u64,
    /// MS-FSCC 2.6.
    pub attributes: u32,
}

impl ListingEntry {
    /// FILE_ATTRIBUTE_DIRECTORY.
    pub fn is_directory(&self) -> bool {
        self.attributes & 0x10 != 0
    }
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRange {
    /// The first.
    pub offset: u64,
    /// How many.
    pub length: u32,
}

impl FileRange {
    /// In pieces of so many bytes at most.
    pub(super) fn cut(self, most: u32) -> impl Iterator<Item = FileRange> {
        let most = most.max(1);
        (0..self.length.div_ceil(most)).map(move |piece| FileRange {
            offset: self.offset.saturating_add(u64::from(piece) * u64::from(most)),
            length: most.min(self.length - piece * most),
        })
    }
}

/// What a read that takes several commands keeps of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadRetention {
    /// All of it, put together.
    All,
    /// Only its length: a load generator reads files larger than its memory.
    Nothing,
}

/// Which way data goes.
#[derive(Debug, Clone, Copy)]
pub enum TransferDirection<'a> {
    /// From the server.
    Read,
    /// To it: each range gets the beginning of these bytes, in commands that are no longer than they are.
    Write(&'a [u8]),
}

/// A file that is opened, read from beginning to end and closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WholeFile {
    /// Relative to the share.
    pub path: String,
    /// Its bytes, as far as the caller knows.
    pub size: u64,
}

impl WholeFile {
    /// How it is opened.
    pub(super) fn open(&self) -> OpenParameters<'_> {
        OpenParameters {
            path: &self.path,
            access: access::READ_DATA | access::READ_ATTRIBUTES,
            share: 7,
            disposition: CreateDisposition::Open,
            options: options::NON_DIRECTORY,
            attributes: 0,
        }
    }
}

/// What many reads or writes came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes.
    pub bytes: u64,
    /// The most commands that were outstanding.
    pub outstanding: u32,
}

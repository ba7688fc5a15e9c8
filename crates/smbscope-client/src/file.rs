//! Arguments and results of file operations, in SMB2 terms, which SMB1 converts; and the control codes that workloads can
//! send (MS-SMB2 2.2.31, MS-FSCC 2.3), with the input that clients send with them.

use smbscope_model::{Dialect, FileId};
use smbscope_wire::fscc::Data;
use smbscope_wire::names::{Fsctl, InfoLevel};
use smbscope_wire::status::NtStatus;

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
    /// Opens an existing file or directory, with all kinds of sharing.
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

#[derive(Debug, PartialEq, Eq)]
pub struct FsctlProfile {
    pub code: Fsctl,
    /// True if the code applies to an open file, false if it applies to the server.
    pub of_file: bool,
    /// Statuses that refuse the code without being a failure: the answers of a server that lacks the feature.
    pub refusals: &'static [NtStatus],
    pub(super) max_output: u32,
}

/// Answers to a code that the server or its file system doesn't support (MS-SMB2 3.3.5.15).
const UNKNOWN: [NtStatus; 2] = [NtStatus::INVALID_DEVICE_REQUEST, NtStatus::NOT_SUPPORTED];

/// Highest referral version that clients request (MS-DFSC 2.2.2).
const REFERRAL_LEVEL: u16 = 4;
const WHOLE_FILE: u64 = 1 << 40;

impl FsctlProfile {
    pub const ALL: [FsctlProfile; 7] = [
        FsctlProfile { code: Fsctl::CREATE_OR_GET_OBJECT_ID, of_file: true, refusals: &UNKNOWN, max_output: 64 },
        FsctlProfile {
            code: Fsctl::GET_REPARSE_POINT,
            of_file: true,
            refusals: &[NtStatus::NOT_A_REPARSE_POINT, UNKNOWN[0], UNKNOWN[1]],
            max_output: 16 << 10,
        },
        FsctlProfile { code: Fsctl::QUERY_ALLOCATED_RANGES, of_file: true, refusals: &UNKNOWN, max_output: 16 << 10 },
        FsctlProfile { code: Fsctl::SRV_REQUEST_RESUME_KEY, of_file: true, refusals: &UNKNOWN, max_output: 32 },
        FsctlProfile {
            code: Fsctl::DFS_GET_REFERRALS,
            of_file: false,
            // MS-SMB2 3.3.5.15.2 and MS-DFSC 3.2.5.1: no DFS, or no DFS link at this path.
            refusals: &[NtStatus::FS_DRIVER_REQUIRED, NtStatus::NOT_FOUND, UNKNOWN[0], UNKNOWN[1]],
            max_output: 8 << 10,
        },
        FsctlProfile {
            code: Fsctl::QUERY_NETWORK_INTERFACE_INFO,
            of_file: false,
            refusals: &UNKNOWN,
            max_output: 64 << 10,
        },
        FsctlProfile { code: Fsctl::VALIDATE_NEGOTIATE_INFO, of_file: false, refusals: &[], max_output: 24 },
    ];

    pub fn by_code(code: Fsctl) -> Option<&'static FsctlProfile> {
        const ALL: &[FsctlProfile] = &FsctlProfile::ALL;
        ALL.iter().find(|control| control.code == code)
    }

    pub fn access(&self) -> u32 {
        if self.code == Fsctl::QUERY_ALLOCATED_RANGES { access::READ_DATA } else { 0 }
    }

    /// Returns the reason if the dialect doesn't support the code.
    pub fn unsupported_in(&self, dialect: Dialect) -> Option<&'static str> {
        let smb2 = match dialect {
            Dialect::Smb2(dialect) => Some(dialect),
            _ => None,
        };
        match (self.code, smb2) {
            (_, None) if !self.of_file => Some("SMB1 sends control codes for open files only"),
            // 3.2.5.5: older dialects don't have it, and a 3.1.1 server drops the connection (3.3.5.15.12).
            (Fsctl::VALIDATE_NEGOTIATE_INFO, Some(dialect)) if !matches!(dialect, 0x0300 | 0x0302) => {
                Some("it belongs to 3.0 and 3.0.2")
            }
            (Fsctl::QUERY_NETWORK_INTERFACE_INFO, Some(..0x0300)) => Some("it belongs to 3.0 and later"),
            _ => None,
        }
    }

    pub(super) fn input(&self, host: &str, share: &str) -> Vec<u8> {
        match self.code {
            Fsctl::QUERY_ALLOCATED_RANGES => [0, WHOLE_FILE].iter().flat_map(|value| value.to_le_bytes()).collect(),
            Fsctl::DFS_GET_REFERRALS => {
                let path = format!("\\{host}\\{share}\0");
                let path = path.encode_utf16().flat_map(u16::to_le_bytes);
                REFERRAL_LEVEL.to_le_bytes().into_iter().chain(path).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeConnectTarget {
    Own,
    Ipc,
}

impl TreeConnectTarget {
    pub(super) fn path(self, host: &str, share: &str) -> String {
        let share = match self {
            TreeConnectTarget::Own => share,
            TreeConnectTarget::Ipc => "IPC$",
        };
        format!(r"\\{host}\{share}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_refused_in_dialects_that_do_not_have_it() {
        let refused = |code, dialect| FsctlProfile::by_code(code).unwrap().unsupported_in(dialect).is_some();
        let smb2 = Dialect::Smb2;
        assert!(!refused(Fsctl::GET_REPARSE_POINT, Dialect::NtLm012));
        assert!(refused(Fsctl::DFS_GET_REFERRALS, Dialect::NtLm012));
        assert!(!refused(Fsctl::DFS_GET_REFERRALS, smb2(0x0202)));
        assert!(refused(Fsctl::VALIDATE_NEGOTIATE_INFO, smb2(0x0311)));
        assert!(!refused(Fsctl::VALIDATE_NEGOTIATE_INFO, smb2(0x0302)));
        assert!(refused(Fsctl::QUERY_NETWORK_INTERFACE_INFO, smb2(0x0210)));
    }

    #[test]
    fn a_referral_is_asked_for_by_a_path_that_begins_with_one_backslash() {
        let input = FsctlProfile::by_code(Fsctl::DFS_GET_REFERRALS).unwrap().input("h", "s");
        // MS-DFSC 2.2.2: MaxReferralLevel, then the null-terminated name in UTF-16.
        assert_eq!(input, b"\x04\0\\\0h\0\\\0s\0\0\0");
    }
}

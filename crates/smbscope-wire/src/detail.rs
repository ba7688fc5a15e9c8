//! Request parameters that are needed to replay a request, in either protocol.

/// Parameters of a request beyond the file it works on. Sections are MS-SMB2's, followed by MS-CIFS's for SMB1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestDetail {
    /// 2.2.13; 2.2.4.64, and 2.2.4.41 converted to NT terms.
    Create {
        desired_access: u32,
        share_access: u32,
        create_disposition: u32,
        create_options: u32,
        file_attributes: u32,
    },
    QueryDirectory {
        pattern: String,
        /// See [`flags`](crate::smb2::messages::query_directory::flags).
        flags: u8,
    },
    /// InformationLevel of an SMB1 TRANS2 request: find, query or set (2.2.6.2 to 2.2.6.9).
    Level(u16),
    /// 2.2.39: FileEndOfFileInformation; 2.2.6.9, and a core write of zero bytes (2.2.4.12).
    EndOfFile(u64),
    /// 2.2.39: FileDispositionInformation; 2.2.6.9.
    Delete(bool),
    /// 2.2.39: FileRenameInformation; 2.2.4.8.
    Rename {
        /// New path relative to the share.
        path: String,
        replace: bool,
    },
    /// 2.2.26; 2.2.4.32.
    Lock {
        count: u16,
        /// Flags of the first range: 1 shared, 2 exclusive, 4 unlock, 0x10 fail immediately.
        flags: u32,
    },
    QueryInfo {
        additional_information: u32,
    },
}

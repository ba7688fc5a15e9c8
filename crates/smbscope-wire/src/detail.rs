//! What a request asks for beyond what it works on: all that is needed to send its like again, in either protocol.

/// What a request asks for beyond what it works on. Sections are those of MS-SMB2, and of MS-CIFS for SMB1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestDetail {
    /// 2.2.13; 2.2.4.64, and 2.2.4.41 in the same words.
    Create {
        /// DesiredAccess.
        desired_access: u32,
        /// ShareAccess.
        share_access: u32,
        /// CreateDisposition.
        create_disposition: u32,
        /// CreateOptions.
        create_options: u32,
        /// MS-FSCC 2.6.
        file_attributes: u32,
    },
    /// 2.2.33
    QueryDirectory {
        /// What names must match.
        pattern: String,
        /// See [`flags`](crate::smb2::messages::query_directory::flags).
        flags: u8,
    },
    /// SMB1: the InformationLevel of a TRANS2 request that lists, asks or sets (2.2.6.2 to 2.2.6.9).
    Level(u16),
    /// 2.2.39: FileEndOfFileInformation; 2.2.6.9, and a core write of nothing (2.2.4.12).
    EndOfFile(u64),
    /// 2.2.39: FileDispositionInformation; 2.2.6.9.
    Delete(bool),
    /// 2.2.39: FileRenameInformation; 2.2.4.8.
    Rename {
        /// The new path below the share.
        path: String,
        /// Whether a file that is there gives way.
        replace: bool,
    },
    /// 2.2.26; 2.2.4.32.
    Lock {
        /// Ranges.
        count: u16,
        /// Of the first one: 1 shared, 2 exclusive, 4 unlock, 0x10 fail at once.
        flags: u32,
    },
    /// 2.2.37
    QueryInfo {
        /// AdditionalInformation.
        additional_information: u32,
    },
}

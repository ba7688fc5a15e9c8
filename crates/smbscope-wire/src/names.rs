//! Open enumerations of subcommands, control codes and information classes: unknown values are legal.

use std::fmt;

/// SMB_COM_TRANSACTION2 subcommand code (MS-CIFS 2.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trans2(pub u16);
/// SMB_COM_NT_TRANSACT function code (MS-CIFS 2.2.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtTransact(pub u16);
/// SMB_COM_TRANSACTION subcommand code (MS-CIFS 2.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction(pub u16);
/// A file system control code (MS-FSCC 2.3, MS-SMB2 2.2.31).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fsctl(pub u32);
/// Information type and class (MS-SMB2 2.2.37, MS-FSCC 2.4 and 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InfoLevel {
    /// SMB2_0_INFO_FILE, or the class of a directory query.
    File(u8),
    /// SMB2_0_INFO_FILESYSTEM.
    FileSystem(u8),
    /// SMB2_0_INFO_SECURITY.
    Security,
    /// SMB2_0_INFO_QUOTA.
    Quota,
    /// Another type.
    Other {
        /// InfoType.
        kind: u8,
        /// FileInfoClass.
        class: u8,
    },
}

macro_rules! stub { ($($t:ty),*) => { $(impl fmt::Display for $t { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{:?}", self) } })* } }
stub!(Trans2, NtTransact, Transaction, Fsctl, InfoLevel);

//! Names of numeric codes: open enumerations, in which an unknown value is legal and prints as a number.
//!
//! Each table lists `NAME = value` for one macro. Command tables are in [`smb1`](crate::smb1) and
//! [`smb2`](crate::smb2), status codes in [`status`](crate::status).

mod fsctl;
mod info_level;

pub use fsctl::Fsctl;
pub use info_level::InfoLevel;

use serde::{Deserialize, Serialize};

/// Implements constants, `KNOWN`, `name` and `Display` for a newtype over an unsigned integer, and `short_name` if the
/// table has a second column.
///
/// A constant is named like the specification's constant without `$prefix`. Repeated values are a compile error (the
/// `match` in `name`).
macro_rules! open_enum {
    ($type:ident, $prefix:literal, $hex:literal {
        $($name:ident = $value:literal $(, $short:literal)?;)*
    }) => {
        impl $type {
            $(
                #[doc = concat!("`", $prefix, stringify!($name), "`, `", stringify!($value), "`.")]
                pub const $name: $type = $type($value);
            )*

            pub const KNOWN: &'static [$type] = &[$($type($value)),*];

            #[deny(unreachable_patterns)]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!($prefix, stringify!($name))),)*
                    _ => None,
                }
            }
        }

        $crate::names::open_enum!(@short $type $($value $(=> $short)?,)*);

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&format!($hex, self.0)),
                }
            }
        }
    };
    (@short $type:ident $($value:literal => $short:literal,)+) => {
        impl $type {
            /// Returns the name in classic response-time reports (`Read+X`), if it has one.
            pub const fn short_name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($short),)*
                    _ => None,
                }
            }
        }
    };
    (@short $type:ident $($value:literal,)*) => {};
}

pub(crate) use open_enum;

/// SMB_COM_TRANSACTION2 subcommand (MS-CIFS 2.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Trans2(pub u16);

open_enum!(Trans2, "TRANS2_", "0x{:04x}" {
    OPEN2 = 0x0000, "Open2";
    FIND_FIRST2 = 0x0001, "Find_First2";
    FIND_NEXT2 = 0x0002, "Find_Next2";
    QUERY_FS_INFORMATION = 0x0003, "Get_FS_Info";
    SET_FS_INFORMATION = 0x0004, "Set_FS_Info";
    QUERY_PATH_INFORMATION = 0x0005, "Get_Path_Info";
    SET_PATH_INFORMATION = 0x0006, "Set_Path_Info";
    QUERY_FILE_INFORMATION = 0x0007, "Get_File_Info";
    SET_FILE_INFORMATION = 0x0008, "Set_File_Info";
    FSCTL = 0x0009, "FS_Control";
    IOCTL2 = 0x000a, "IO_Control2";
    FIND_NOTIFY_FIRST = 0x000b, "Find_Notify_First";
    FIND_NOTIFY_NEXT = 0x000c, "Find_Notify_Next";
    CREATE_DIRECTORY = 0x000d, "Create_Directory";
    SESSION_SETUP = 0x000e, "Session_Setup";
    GET_DFS_REFERRAL = 0x0010, "Get_DFS_Referral";
    REPORT_DFS_INCONSISTENCY = 0x0011, "Report_DFS_Inconsistency";
});

/// SMB_COM_NT_TRANSACT function (MS-CIFS 2.2.2.2; quotas and CREATE2 from MS-SMB 2.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NtTransact(pub u16);

open_enum!(NtTransact, "NT_TRANSACT_", "0x{:04x}" {
    CREATE = 0x0001, "Create";
    IOCTL = 0x0002, "IO_Control";
    SET_SECURITY_DESC = 0x0003, "Set_Security_Desc";
    NOTIFY_CHANGE = 0x0004, "Notify_Change";
    RENAME = 0x0005, "Rename";
    QUERY_SECURITY_DESC = 0x0006, "Get_Security_Desc";
    QUERY_QUOTA = 0x0007, "Get_Quota";
    SET_QUOTA = 0x0008, "Set_Quota";
    CREATE2 = 0x0009, "Create2";
});

/// SMB_COM_TRANSACTION subcommand (MS-CIFS 2.2.2.2).
///
/// Value 1 is ambiguous: it sets the state of a `\PIPE\` and writes to a `\MAILSLOT\`. [`Transaction::name`] returns
/// the former.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Transaction(pub u16);

open_enum!(Transaction, "TRANS_", "0x{:04x}" {
    SET_NMPIPE_STATE = 0x0001, "Set_Pipe_State";
    RAW_READ_NMPIPE = 0x0011, "Raw_Read_Pipe";
    QUERY_NMPIPE_STATE = 0x0021, "Get_Pipe_State";
    QUERY_NMPIPE_INFO = 0x0022, "Get_Pipe_Info";
    PEEK_NMPIPE = 0x0023, "Peek_Pipe";
    TRANSACT_NMPIPE = 0x0026, "Transact_Pipe";
    RAW_WRITE_NMPIPE = 0x0031, "Raw_Write_Pipe";
    READ_NMPIPE = 0x0036, "Read_Pipe";
    WRITE_NMPIPE = 0x0037, "Write_Pipe";
    WAIT_NMPIPE = 0x0053, "Wait_Pipe";
    CALL_NMPIPE = 0x0054, "Call_Pipe";
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{smb1, smb2};
    use std::collections::HashSet;

    #[test]
    fn known_values_print_the_specifications_name_and_others_their_number() {
        // Expected: MS-CIFS 2.2.2.1 and 2.2.2.2, MS-SMB2 2.2.1.2 and 2.2.31, MS-FSCC 2.3 to 2.5.
        assert_eq!(smb1::Smb1Command::READ_ANDX.to_string(), "SMB_COM_READ_ANDX");
        assert_eq!(smb1::Smb1Command(0x15).to_string(), "0x15");
        assert_eq!(smb2::Smb2Command(0x0e).to_string(), "QUERY_DIRECTORY");
        assert_eq!(smb2::Smb2Command(0x14).to_string(), "0x0014");
        assert_eq!(Trans2(1).to_string(), "TRANS2_FIND_FIRST2");
        assert_eq!(Trans2(0x0f).to_string(), "0x000f");
        assert_eq!(NtTransact(4).to_string(), "NT_TRANSACT_NOTIFY_CHANGE");
        assert_eq!(Transaction(0x26).to_string(), "TRANS_TRANSACT_NMPIPE");
        assert_eq!(Fsctl(0x0011_c017).to_string(), "FSCTL_PIPE_TRANSCEIVE");
        assert_eq!(Fsctl(0x0014_0200).to_string(), "0x00140200");
        assert_eq!(InfoLevel::File(37).to_string(), "FileIdBothDirectoryInformation");
        assert_eq!(InfoLevel::from_wire(2, 3).to_string(), "FileFsSizeInformation");
        assert_eq!(InfoLevel::File(200).to_string(), "0x01/0xc8");
        assert_eq!(InfoLevel::from_wire(9, 1).to_string(), "0x09/0x01");
        assert_eq!(InfoLevel::from_wire(3, 0).to_string(), "SECURITY");
        assert_eq!(InfoLevel::from_wire(4, 0).to_string(), "QUOTA");
    }

    #[test]
    fn names_keep_the_width_they_are_asked_for() {
        assert_eq!(
            format!("{:<8}|{:>8}|{:<6}|", smb2::Smb2Command::READ, smb2::Smb2Command::READ, smb1::Smb1Command(0x15)),
            "READ    |    READ|0x15  |"
        );
    }

    #[test]
    fn short_names_are_those_of_the_1997_report() {
        // Expected: command column of the response time report in Swartz, "Adding Response Time Measurement of CIFS
        // File Server Performance to NetBench", 1997, appendix A and table 1.
        for (code, name) in [
            (0x10, "Check_Directory"),
            (0x04, "Close_File"),
            (0x06, "Delete_File"),
            (0x34, "Find_Close2"),
            (0x05, "Flush_File"),
            (0x08, "Get_File_Attributes"),
            (0x23, "Get_File_Attributes2"),
            (0x24, "Locking+X"),
            (0xa2, "NT_Create+X"),
            (0x2d, "Open+X"),
            (0x2e, "Read+X"),
            (0x07, "Rename_File"),
            (0x09, "Set_File_Attributes"),
            (0x22, "Set_File_Attributes2"),
            (0x32, "Transaction2"),
            (0x0b, "Write_Bytes"),
            (0x1d, "Write_Raw"),
            (0x2f, "Write+X"),
        ] {
            assert_eq!(smb1::Smb1Command(code).short_name(), Some(name));
        }
        assert_eq!(Trans2::QUERY_PATH_INFORMATION.short_name(), Some("Get_Path_Info"));
        assert_eq!(smb1::Smb1Command(0x15).short_name(), None);
    }

    #[test]
    fn every_command_has_both_names_and_no_name_stands_for_two_values() {
        let smb1: Vec<_> = smb1::Smb1Command::KNOWN.iter().flat_map(|c| [c.name(), c.short_name()]).collect();
        assert!(smb1.iter().all(Option::is_some));
        assert_eq!(smb1.iter().collect::<HashSet<_>>().len(), smb1.len());
        assert_eq!(smb1.len(), 2 * 75);
    }

    #[test]
    fn information_levels_survive_a_trip_over_the_wire() {
        for level in InfoLevel::KNOWN_FILE.iter().chain(InfoLevel::KNOWN_FILE_SYSTEM) {
            let (kind, class) = level.to_wire();
            assert_eq!(InfoLevel::from_wire(kind, class), *level);
            assert!(level.name().is_some_and(|name| name.starts_with("File")));
        }
    }

    #[test]
    fn control_codes_ascend_so_that_the_table_is_easy_to_search_by_eye() {
        assert!(Fsctl::KNOWN.is_sorted());
    }
}

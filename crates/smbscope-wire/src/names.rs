//! Names of numeric codes: open enumerations, in which an unknown value is legal and prints as a number, and the
//! information types and classes of queries and changes (MS-SMB2 2.2.37, MS-FSCC 2.4 and 2.5).
//!
//! Each table lists `NAME = value` for one macro. Command tables are in [`smb1`](crate::smb1) and
//! [`smb2`](crate::smb2), status codes in [`status`](crate::status).

use serde::{Deserialize, Serialize};
use std::fmt;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Fsctl(pub u32);

// In order of value: DFS (device 6), file system (device 9), named pipe (device 0x11), SMB server (device 0x14).
open_enum!(Fsctl, "FSCTL_", "0x{:08x}" {
    DFS_GET_REFERRALS = 0x0006_0194;
    DFS_GET_REFERRALS_EX = 0x0006_01b0;
    REQUEST_OPLOCK_LEVEL_1 = 0x0009_0000;
    REQUEST_OPLOCK_LEVEL_2 = 0x0009_0004;
    REQUEST_BATCH_OPLOCK = 0x0009_0008;
    OPLOCK_BREAK_ACKNOWLEDGE = 0x0009_000c;
    OPBATCH_ACK_CLOSE_PENDING = 0x0009_0010;
    OPLOCK_BREAK_NOTIFY = 0x0009_0014;
    LOCK_VOLUME = 0x0009_0018;
    UNLOCK_VOLUME = 0x0009_001c;
    DISMOUNT_VOLUME = 0x0009_0020;
    IS_VOLUME_MOUNTED = 0x0009_0028;
    IS_PATHNAME_VALID = 0x0009_002c;
    MARK_VOLUME_DIRTY = 0x0009_0030;
    QUERY_RETRIEVAL_POINTERS = 0x0009_003b;
    GET_COMPRESSION = 0x0009_003c;
    OPLOCK_BREAK_ACK_NO_2 = 0x0009_0050;
    INVALIDATE_VOLUMES = 0x0009_0054;
    QUERY_FAT_BPB = 0x0009_0058;
    REQUEST_FILTER_OPLOCK = 0x0009_005c;
    FILESYSTEM_GET_STATISTICS = 0x0009_0060;
    GET_NTFS_VOLUME_DATA = 0x0009_0064;
    GET_NTFS_FILE_RECORD = 0x0009_0068;
    GET_VOLUME_BITMAP = 0x0009_006f;
    GET_RETRIEVAL_POINTERS = 0x0009_0073;
    MOVE_FILE = 0x0009_0074;
    IS_VOLUME_DIRTY = 0x0009_0078;
    ALLOW_EXTENDED_DASD_IO = 0x0009_0083;
    FIND_FILES_BY_SID = 0x0009_008f;
    SET_OBJECT_ID = 0x0009_0098;
    GET_OBJECT_ID = 0x0009_009c;
    DELETE_OBJECT_ID = 0x0009_00a0;
    SET_REPARSE_POINT = 0x0009_00a4;
    GET_REPARSE_POINT = 0x0009_00a8;
    DELETE_REPARSE_POINT = 0x0009_00ac;
    ENUM_USN_DATA = 0x0009_00b3;
    READ_USN_JOURNAL = 0x0009_00bb;
    SET_OBJECT_ID_EXTENDED = 0x0009_00bc;
    CREATE_OR_GET_OBJECT_ID = 0x0009_00c0;
    SET_SPARSE = 0x0009_00c4;
    SET_ENCRYPTION = 0x0009_00d7;
    ENCRYPTION_FSCTL_IO = 0x0009_00db;
    WRITE_RAW_ENCRYPTED = 0x0009_00df;
    READ_RAW_ENCRYPTED = 0x0009_00e3;
    CREATE_USN_JOURNAL = 0x0009_00e7;
    READ_FILE_USN_DATA = 0x0009_00eb;
    WRITE_USN_CLOSE_RECORD = 0x0009_00ef;
    EXTEND_VOLUME = 0x0009_00f0;
    QUERY_USN_JOURNAL = 0x0009_00f4;
    DELETE_USN_JOURNAL = 0x0009_00f8;
    MARK_HANDLE = 0x0009_00fc;
    SIS_COPYFILE = 0x0009_0100;
    RECALL_FILE = 0x0009_0117;
    FILE_PREFETCH = 0x0009_0120;
    QUERY_SPARING_INFO = 0x0009_0138;
    QUERY_ON_DISK_VOLUME_INFO = 0x0009_013c;
    SET_VOLUME_COMPRESSION_STATE = 0x0009_0140;
    SET_ZERO_ON_DEALLOCATION = 0x0009_0194;
    SET_REPAIR = 0x0009_0198;
    GET_REPAIR = 0x0009_019c;
    WAIT_FOR_REPAIR = 0x0009_01a0;
    INITIATE_REPAIR = 0x0009_01a8;
    SHRINK_VOLUME = 0x0009_01b0;
    SET_SHORT_NAME_BEHAVIOR = 0x0009_01b4;
    DFSR_SET_GHOST_HANDLE_STATE = 0x0009_01b8;
    QUERY_PAGEFILE_ENCRYPTION = 0x0009_01e8;
    QUERY_DEPENDENT_VOLUME = 0x0009_01f0;
    SD_GLOBAL_CHANGE = 0x0009_01f4;
    LOOKUP_STREAM_FROM_CLUSTER = 0x0009_01fc;
    FILE_TYPE_NOTIFICATION = 0x0009_0204;
    GET_BOOT_AREA_INFO = 0x0009_0230;
    GET_RETRIEVAL_POINTER_BASE = 0x0009_0234;
    SET_PERSISTENT_VOLUME_STATE = 0x0009_0238;
    QUERY_PERSISTENT_VOLUME_STATE = 0x0009_023c;
    REQUEST_OPLOCK = 0x0009_0240;
    CSV_TUNNEL_REQUEST = 0x0009_0244;
    IS_CSV_FILE = 0x0009_0248;
    QUERY_FILE_SYSTEM_RECOGNITION = 0x0009_024c;
    IS_FILE_ON_CSV_VOLUME = 0x0009_025c;
    SET_PURGE_FAILURE_MODE = 0x0009_0270;
    QUERY_FILE_LAYOUT = 0x0009_0277;
    IS_VOLUME_OWNED_BYCSVFS = 0x0009_0278;
    GET_INTEGRITY_INFORMATION = 0x0009_027c;
    QUERY_FILE_REGIONS = 0x0009_0284;
    SCRUB_DATA = 0x0009_02b0;
    DISABLE_LOCAL_BUFFERING = 0x0009_02b8;
    CSV_SYNC_TUNNEL_REQUEST = 0x0009_02c8;
    WRITE_USN_REASON = 0x0009_02d0;
    CSV_CONTROL = 0x0009_02d4;
    GET_REFS_VOLUME_DATA = 0x0009_02d8;
    QUERY_STORAGE_CLASSES = 0x0009_02ec;
    QUERY_REGION_INFO = 0x0009_02f0;
    USN_TRACK_MODIFIED_RANGES = 0x0009_02f4;
    QUERY_SHARED_VIRTUAL_DISK_SUPPORT = 0x0009_0300;
    SVHDX_SYNC_TUNNEL_REQUEST = 0x0009_0304;
    SVHDX_SET_INITIATOR_INFORMATION = 0x0009_0308;
    SET_EXTERNAL_BACKING = 0x0009_030c;
    GET_EXTERNAL_BACKING = 0x0009_0310;
    DELETE_EXTERNAL_BACKING = 0x0009_0314;
    ENUM_EXTERNAL_BACKING = 0x0009_0318;
    ENUM_OVERLAY = 0x0009_031f;
    SPARSE_OVERALLOCATE = 0x0009_034c;
    STORAGE_QOS_CONTROL = 0x0009_0350;
    SVHDX_ASYNC_TUNNEL_REQUEST = 0x0009_0364;
    SET_INTEGRITY_INFORMATION_EX = 0x0009_0380;
    FILESYSTEM_GET_STATISTICS_EX = 0x0009_038c;
    READ_UNPRIVILEGED_USN_JOURNAL = 0x0009_03ab;
    GET_RETRIEVAL_POINTERS_AND_REFCOUNT = 0x0009_03d3;
    SET_REPARSE_POINT_EX = 0x0009_040c;
    GET_RETRIEVAL_POINTER_COUNT = 0x0009_042b;
    SMB_SHARE_FLUSH_AND_PURGE = 0x0009_043c;
    REFS_STREAM_SNAPSHOT_MANAGEMENT = 0x0009_0440;
    MANAGE_BYPASS_IO = 0x0009_0448;
    SECURITY_ID_CHECK = 0x0009_40b7;
    QUERY_ALLOCATED_RANGES = 0x0009_40cf;
    TXFS_QUERY_RM_INFORMATION = 0x0009_4148;
    TXFS_GET_METADATA_INFO = 0x0009_416c;
    TXFS_GET_TRANSACTED_VERSION = 0x0009_4170;
    TXFS_TRANSACTION_ACTIVE = 0x0009_418c;
    TXFS_LIST_TRANSACTIONS = 0x0009_41e4;
    OFFLOAD_READ = 0x0009_4264;
    SET_ZERO_DATA = 0x0009_80c8;
    MAKE_MEDIA_COMPATIBLE = 0x0009_8130;
    SET_DEFECT_MANAGEMENT = 0x0009_8134;
    TXFS_CREATE_MINIVERSION = 0x0009_817c;
    FILE_LEVEL_TRIM = 0x0009_8208;
    OFFLOAD_WRITE = 0x0009_8268;
    DUPLICATE_EXTENTS_TO_FILE = 0x0009_8344;
    DUPLICATE_EXTENTS_TO_FILE_EX = 0x0009_83e8;
    SET_COMPRESSION = 0x0009_c040;
    SIS_LINK_FILES = 0x0009_c104;
    SET_INTEGRITY_INFORMATION = 0x0009_c280;
    REPAIR_COPIES = 0x0009_c2b4;
    PIPE_ASSIGN_EVENT = 0x0011_0000;
    PIPE_DISCONNECT = 0x0011_0004;
    PIPE_LISTEN = 0x0011_0008;
    PIPE_QUERY_EVENT = 0x0011_0010;
    PIPE_WAIT = 0x0011_0018;
    PIPE_IMPERSONATE = 0x0011_001c;
    PIPE_SET_CLIENT_PROCESS = 0x0011_0020;
    PIPE_QUERY_CLIENT_PROCESS = 0x0011_0024;
    PIPE_GET_PIPE_ATTRIBUTE = 0x0011_0028;
    PIPE_SET_PIPE_ATTRIBUTE = 0x0011_002c;
    PIPE_GET_CONNECTION_ATTRIBUTE = 0x0011_0030;
    PIPE_SET_CONNECTION_ATTRIBUTE = 0x0011_0034;
    PIPE_GET_HANDLE_ATTRIBUTE = 0x0011_0038;
    PIPE_SET_HANDLE_ATTRIBUTE = 0x0011_003c;
    PIPE_PEEK = 0x0011_400c;
    PIPE_FLUSH = 0x0011_8040;
    PIPE_TRANSCEIVE = 0x0011_c017;
    SRV_REQUEST_RESUME_KEY = 0x0014_0078;
    LMR_GET_LINK_TRACKING_INFORMATION = 0x0014_00e8;
    LMR_SET_LINK_TRACKING_INFORMATION = 0x0014_00ec;
    LMR_REQUEST_RESILIENCY = 0x0014_01d4;
    QUERY_NETWORK_INTERFACE_INFO = 0x0014_01fc;
    VALIDATE_NEGOTIATE_INFO = 0x0014_0204;
    SRV_ENUMERATE_SNAPSHOTS = 0x0014_4064;
    SRV_COPYCHUNK = 0x0014_40f2;
    SRV_READ_HASH = 0x0014_41bb;
    SRV_COPYCHUNK_WRITE = 0x0014_80f2;
});

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InfoLevel {
    /// SMB2_0_INFO_FILE, or the class of a directory query.
    File(u8),
    FileSystem(u8),
    Security,
    Quota,
    Other {
        kind: u8,
        class: u8,
    },
}

impl Default for InfoLevel {
    fn default() -> InfoLevel {
        InfoLevel::from_wire(0, 0)
    }
}

impl InfoLevel {
    pub const SECURITY: InfoLevel = InfoLevel::Security;
    pub const QUOTA: InfoLevel = InfoLevel::Quota;

    /// Converts the fields InfoType and FileInfoClass (MS-SMB2 2.2.37 and 2.2.39).
    pub fn from_wire(info_type: u8, file_info_class: u8) -> InfoLevel {
        match info_type {
            0x01 => InfoLevel::File(file_info_class),
            0x02 => InfoLevel::FileSystem(file_info_class),
            0x03 => InfoLevel::Security,
            0x04 => InfoLevel::Quota,
            kind => InfoLevel::Other { kind, class: file_info_class },
        }
    }

    pub fn to_wire(self) -> (u8, u8) {
        match self {
            InfoLevel::File(class) => (0x01, class),
            InfoLevel::FileSystem(class) => (0x02, class),
            InfoLevel::Security => (0x03, 0),
            InfoLevel::Quota => (0x04, 0),
            InfoLevel::Other { kind, class } => (kind, class),
        }
    }

    /// Returns the specification's name of the class, `SECURITY` or `QUOTA`, if the level has one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            InfoLevel::File(class) => file_class_name(class),
            InfoLevel::FileSystem(class) => file_system_class_name(class),
            InfoLevel::Security => Some("SECURITY"),
            InfoLevel::Quota => Some("QUOTA"),
            InfoLevel::Other { .. } => None,
        }
    }
}

/// Prints the name of the class, or InfoType and FileInfoClass in hexadecimal: `0x01/0xc8`.
impl fmt::Display for InfoLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => {
                let (kind, class) = self.to_wire();
                f.pad(&format!("0x{kind:02x}/0x{class:02x}"))
            }
        }
    }
}

macro_rules! classes {
    ($variant:ident, $known:ident, $function:ident { $($const:ident = $class:literal, $name:literal;)* }) => {
        impl InfoLevel {
            $(
                #[doc = concat!("`", $name, "`, class ", stringify!($class), ".")]
                pub const $const: InfoLevel = InfoLevel::$variant($class);
            )*

            #[doc = concat!("Every `", stringify!($variant), "` class with a name, in order.")]
            pub const $known: &'static [InfoLevel] = &[$(InfoLevel::$variant($class)),*];
        }

        #[deny(unreachable_patterns)]
        fn $function(class: u8) -> Option<&'static str> {
            match class {
                $($class => Some($name),)*
                _ => None,
            }
        }
    };
}

// MS-FSCC 2.4; for the classes it leaves to local use, FILE_INFORMATION_CLASS of the Windows driver kit. Class 100 of
// both tables belongs to the SMB3 POSIX extensions.
classes!(File, KNOWN_FILE, file_class_name {
    FILE_DIRECTORY_INFORMATION = 1, "FileDirectoryInformation";
    FILE_FULL_DIRECTORY_INFORMATION = 2, "FileFullDirectoryInformation";
    FILE_BOTH_DIRECTORY_INFORMATION = 3, "FileBothDirectoryInformation";
    FILE_BASIC_INFORMATION = 4, "FileBasicInformation";
    FILE_STANDARD_INFORMATION = 5, "FileStandardInformation";
    FILE_INTERNAL_INFORMATION = 6, "FileInternalInformation";
    FILE_EA_INFORMATION = 7, "FileEaInformation";
    FILE_ACCESS_INFORMATION = 8, "FileAccessInformation";
    FILE_NAME_INFORMATION = 9, "FileNameInformation";
    FILE_RENAME_INFORMATION = 10, "FileRenameInformation";
    FILE_LINK_INFORMATION = 11, "FileLinkInformation";
    FILE_NAMES_INFORMATION = 12, "FileNamesInformation";
    FILE_DISPOSITION_INFORMATION = 13, "FileDispositionInformation";
    FILE_POSITION_INFORMATION = 14, "FilePositionInformation";
    FILE_FULL_EA_INFORMATION = 15, "FileFullEaInformation";
    FILE_MODE_INFORMATION = 16, "FileModeInformation";
    FILE_ALIGNMENT_INFORMATION = 17, "FileAlignmentInformation";
    FILE_ALL_INFORMATION = 18, "FileAllInformation";
    FILE_ALLOCATION_INFORMATION = 19, "FileAllocationInformation";
    FILE_END_OF_FILE_INFORMATION = 20, "FileEndOfFileInformation";
    FILE_ALTERNATE_NAME_INFORMATION = 21, "FileAlternateNameInformation";
    FILE_STREAM_INFORMATION = 22, "FileStreamInformation";
    FILE_PIPE_INFORMATION = 23, "FilePipeInformation";
    FILE_PIPE_LOCAL_INFORMATION = 24, "FilePipeLocalInformation";
    FILE_PIPE_REMOTE_INFORMATION = 25, "FilePipeRemoteInformation";
    FILE_MAILSLOT_QUERY_INFORMATION = 26, "FileMailslotQueryInformation";
    FILE_MAILSLOT_SET_INFORMATION = 27, "FileMailslotSetInformation";
    FILE_COMPRESSION_INFORMATION = 28, "FileCompressionInformation";
    FILE_OBJECT_ID_INFORMATION = 29, "FileObjectIdInformation";
    FILE_COMPLETION_INFORMATION = 30, "FileCompletionInformation";
    FILE_MOVE_CLUSTER_INFORMATION = 31, "FileMoveClusterInformation";
    FILE_QUOTA_INFORMATION = 32, "FileQuotaInformation";
    FILE_REPARSE_POINT_INFORMATION = 33, "FileReparsePointInformation";
    FILE_NETWORK_OPEN_INFORMATION = 34, "FileNetworkOpenInformation";
    FILE_ATTRIBUTE_TAG_INFORMATION = 35, "FileAttributeTagInformation";
    FILE_TRACKING_INFORMATION = 36, "FileTrackingInformation";
    FILE_ID_BOTH_DIRECTORY_INFORMATION = 37, "FileIdBothDirectoryInformation";
    FILE_ID_FULL_DIRECTORY_INFORMATION = 38, "FileIdFullDirectoryInformation";
    FILE_VALID_DATA_LENGTH_INFORMATION = 39, "FileValidDataLengthInformation";
    FILE_SHORT_NAME_INFORMATION = 40, "FileShortNameInformation";
    FILE_IO_COMPLETION_NOTIFICATION_INFORMATION = 41, "FileIoCompletionNotificationInformation";
    FILE_IO_STATUS_BLOCK_RANGE_INFORMATION = 42, "FileIoStatusBlockRangeInformation";
    FILE_IO_PRIORITY_HINT_INFORMATION = 43, "FileIoPriorityHintInformation";
    FILE_SFIO_RESERVE_INFORMATION = 44, "FileSfioReserveInformation";
    FILE_SFIO_VOLUME_INFORMATION = 45, "FileSfioVolumeInformation";
    FILE_HARD_LINK_INFORMATION = 46, "FileHardLinkInformation";
    FILE_PROCESS_IDS_USING_FILE_INFORMATION = 47, "FileProcessIdsUsingFileInformation";
    FILE_NORMALIZED_NAME_INFORMATION = 48, "FileNormalizedNameInformation";
    FILE_NETWORK_PHYSICAL_NAME_INFORMATION = 49, "FileNetworkPhysicalNameInformation";
    FILE_ID_GLOBAL_TX_DIRECTORY_INFORMATION = 50, "FileIdGlobalTxDirectoryInformation";
    FILE_IS_REMOTE_DEVICE_INFORMATION = 51, "FileIsRemoteDeviceInformation";
    FILE_NUMA_NODE_INFORMATION = 53, "FileNumaNodeInformation";
    FILE_STANDARD_LINK_INFORMATION = 54, "FileStandardLinkInformation";
    FILE_REMOTE_PROTOCOL_INFORMATION = 55, "FileRemoteProtocolInformation";
    FILE_RENAME_INFORMATION_BYPASS_ACCESS_CHECK = 56, "FileRenameInformationBypassAccessCheck";
    FILE_LINK_INFORMATION_BYPASS_ACCESS_CHECK = 57, "FileLinkInformationBypassAccessCheck";
    FILE_VOLUME_NAME_INFORMATION = 58, "FileVolumeNameInformation";
    FILE_ID_INFORMATION = 59, "FileIdInformation";
    FILE_ID_EXTD_DIRECTORY_INFORMATION = 60, "FileIdExtdDirectoryInformation";
    FILE_REPLACE_COMPLETION_INFORMATION = 61, "FileReplaceCompletionInformation";
    FILE_HARD_LINK_FULL_ID_INFORMATION = 62, "FileHardLinkFullIdInformation";
    FILE_ID_EXTD_BOTH_DIRECTORY_INFORMATION = 63, "FileIdExtdBothDirectoryInformation";
    FILE_DISPOSITION_INFORMATION_EX = 64, "FileDispositionInformationEx";
    FILE_RENAME_INFORMATION_EX = 65, "FileRenameInformationEx";
    FILE_RENAME_INFORMATION_EX_BYPASS_ACCESS_CHECK = 66, "FileRenameInformationExBypassAccessCheck";
    FILE_DESIRED_STORAGE_CLASS_INFORMATION = 67, "FileDesiredStorageClassInformation";
    FILE_STAT_INFORMATION = 68, "FileStatInformation";
    FILE_MEMORY_PARTITION_INFORMATION = 69, "FileMemoryPartitionInformation";
    FILE_STAT_LX_INFORMATION = 70, "FileStatLxInformation";
    FILE_CASE_SENSITIVE_INFORMATION = 71, "FileCaseSensitiveInformation";
    FILE_LINK_INFORMATION_EX = 72, "FileLinkInformationEx";
    FILE_LINK_INFORMATION_EX_BYPASS_ACCESS_CHECK = 73, "FileLinkInformationExBypassAccessCheck";
    FILE_STORAGE_RESERVE_ID_INFORMATION = 74, "FileStorageReserveIdInformation";
    FILE_CASE_SENSITIVE_INFORMATION_FORCE_ACCESS_CHECK = 75, "FileCaseSensitiveInformationForceAccessCheck";
    FILE_KNOWN_FOLDER_INFORMATION = 76, "FileKnownFolderInformation";
    FILE_STAT_BASIC_INFORMATION = 77, "FileStatBasicInformation";
    FILE_ID64_EXTD_DIRECTORY_INFORMATION = 78, "FileId64ExtdDirectoryInformation";
    FILE_ID64_EXTD_BOTH_DIRECTORY_INFORMATION = 79, "FileId64ExtdBothDirectoryInformation";
    FILE_ID_ALL_EXTD_DIRECTORY_INFORMATION = 80, "FileIdAllExtdDirectoryInformation";
    FILE_ID_ALL_EXTD_BOTH_DIRECTORY_INFORMATION = 81, "FileIdAllExtdBothDirectoryInformation";
    FILE_POSIX_INFORMATION = 100, "FilePosixInformation";
});

// MS-FSCC 2.5.
classes!(FileSystem, KNOWN_FILE_SYSTEM, file_system_class_name {
    FILE_FS_VOLUME_INFORMATION = 1, "FileFsVolumeInformation";
    FILE_FS_LABEL_INFORMATION = 2, "FileFsLabelInformation";
    FILE_FS_SIZE_INFORMATION = 3, "FileFsSizeInformation";
    FILE_FS_DEVICE_INFORMATION = 4, "FileFsDeviceInformation";
    FILE_FS_ATTRIBUTE_INFORMATION = 5, "FileFsAttributeInformation";
    FILE_FS_CONTROL_INFORMATION = 6, "FileFsControlInformation";
    FILE_FS_FULL_SIZE_INFORMATION = 7, "FileFsFullSizeInformation";
    FILE_FS_OBJECT_ID_INFORMATION = 8, "FileFsObjectIdInformation";
    FILE_FS_DRIVER_PATH_INFORMATION = 9, "FileFsDriverPathInformation";
    FILE_FS_VOLUME_FLAGS_INFORMATION = 10, "FileFsVolumeFlagsInformation";
    FILE_FS_SECTOR_SIZE_INFORMATION = 11, "FileFsSectorSizeInformation";
    FILE_FS_DATA_COPY_INFORMATION = 12, "FileFsDataCopyInformation";
    FILE_FS_METADATA_SIZE_INFORMATION = 13, "FileFsMetadataSizeInformation";
    FILE_FS_FULL_SIZE_INFORMATION_EX = 14, "FileFsFullSizeInformationEx";
    FILE_FS_POSIX_INFORMATION = 100, "FileFsPosixInformation";
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

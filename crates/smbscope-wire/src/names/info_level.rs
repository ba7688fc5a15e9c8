//! Information types and classes of queries and changes (MS-SMB2 2.2.37, MS-FSCC 2.4 and 2.5).

use serde::{Deserialize, Serialize};
use std::fmt;

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

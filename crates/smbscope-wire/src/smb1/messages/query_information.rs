//! Answers to SMB_COM_QUERY_INFORMATION and SMB_COM_QUERY_INFORMATION_DISK (MS-CIFS 2.2.4.9, 2.2.4.57), which old clients
//! ask for.

use super::message::message;

message! {
    /// What there is to know of a file.
    QueryInformationResponse: QUERY_INFORMATION, 10 {
        /// SMB_FILE_ATTRIBUTES
        file_attributes: u16 = 0,
        /// UTIME
        last_write_time: u32 = 2,
        /// Bytes.
        file_size: u32 = 6,
    }
}

message! {
    /// How full the file system is.
    QueryInformationDiskResponse: QUERY_INFORMATION_DISK, 5 {
        /// TotalUnits
        total_units: u16 = 0,
        /// BlocksPerUnit
        blocks_per_unit: u16 = 2,
        /// BlockSize
        block_size: u16 = 4,
        /// FreeUnits
        free_units: u16 = 6,
    }
}

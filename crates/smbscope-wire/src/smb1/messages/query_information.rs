//! Responses to SMB_COM_QUERY_INFORMATION and SMB_COM_QUERY_INFORMATION_DISK (MS-CIFS 2.2.4.9, 2.2.4.57), which old
//! clients send.

use super::message::message;

message! {
    QueryInformationResponse: QUERY_INFORMATION, 10 {
        /// SMB_FILE_ATTRIBUTES.
        file_attributes: u16 = 0,
        /// UTIME.
        last_write_time: u32 = 2,
        file_size: u32 = 6,
    }
}

message! {
    QueryInformationDiskResponse: QUERY_INFORMATION_DISK, 5 {
        total_units: u16 = 0,
        blocks_per_unit: u16 = 2,
        block_size: u16 = 4,
        free_units: u16 = 6,
    }
}

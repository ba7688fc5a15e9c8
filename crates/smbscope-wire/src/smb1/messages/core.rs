//! Commands of the core dialect (MS-CIFS 2.2.4). NT clients still delete, rename and make directories with them
//! (2.2.4.1, 2.2.4.2, 2.2.4.7, 2.2.4.8, 2.2.4.17); only older ones send 32-bit reads, writes and locks, opens by name,
//! and queries without levels (2.2.4.3, 2.2.4.9, 2.2.4.11, 2.2.4.13, 2.2.4.23, 2.2.4.26, 2.2.4.57).

use super::message::message;

message! {
    /// READ. WRITE, LOCK_AND_READ, WRITE_AND_UNLOCK and WRITE_AND_CLOSE begin with the same fields.
    ReadBytes: READ, 5 {
        fid: u16 = 0,
        count: u16 = 2,
        offset: u32 = 4,
    }
}

message! {
    /// LOCK_BYTE_RANGE and UNLOCK_BYTE_RANGE.
    LockByteRange: LOCK_BYTE_RANGE, 5 {
        fid: u16 = 0,
        count: u32 = 2,
        offset: u32 = 6,
    }
}

message! {
    /// Read whose response consists of several messages.
    ReadMpx: READ_MPX, 8 {
        fid: u16 = 0,
        offset: u32 = 2,
        max_count: u16 = 6,
    }
}

message! {
    ReadMpxResponse: READ_MPX, 8 {
        /// Bytes of the whole response.
        count: u16 = 4,
        data_length: u16 = 12,
    }
}

message! {
    /// Write whose request consists of several messages.
    WriteMpx: WRITE_MPX, 12 {
        fid: u16 = 0,
        total_byte_count: u16 = 2,
        /// Offset in the file of this message's data.
        byte_offset: u32 = 6,
    }
}

message! {
    /// Response to OPEN. Responses to CREATE, CREATE_NEW and CREATE_TEMPORARY begin with the same fields.
    OpenResponse: OPEN, 7 {
        fid: u16 = 0,
        file_attributes: u16 = 2,
        file_size: u32 = 8,
    }
}

message! {
    Delete<'a>: DELETE, 1 {
        search_attributes: u16 = 0,
    } with {
        file_name: formatted,
    }
}

message! {
    Rename<'a>: RENAME, 1 {
        search_attributes: u16 = 0,
    } with {
        old_file_name: formatted,
        new_file_name: formatted,
    }
}

message! {
    CreateDirectory<'a>: CREATE_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    DeleteDirectory<'a>: DELETE_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    CheckDirectory<'a>: CHECK_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    QueryInformationResponse: QUERY_INFORMATION, 10 {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, emitted_oem, response};
    use super::*;
    use crate::smb1::Smb1Command;

    #[test]
    fn words_are_where_the_specification_puts_them() {
        let read = ReadBytes { fid: 0x1234, count: 0x0102, offset: 0x0304_0506 };
        assert_eq!(emitted(&read), [5, 0x34, 0x12, 2, 1, 6, 5, 4, 3, 0, 0, 0, 0]);
        let lock = LockByteRange { fid: 0x1234, count: 0x0102_0304, offset: 5 };
        assert_eq!(emitted(&lock), [5, 0x34, 0x12, 4, 3, 2, 1, 5, 0, 0, 0, 0, 0]);
        let read = ReadMpx { fid: 0x1234, offset: 5, max_count: 0x0102 };
        assert_eq!(emitted(&read)[..9], [8, 0x34, 0x12, 5, 0, 0, 0, 2, 1]);
        let write = WriteMpx { fid: 0x1234, total_byte_count: 0x0102, byte_offset: 5 };
        assert_eq!(emitted(&write)[..11], [12, 0x34, 0x12, 2, 1, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn a_multiplexed_response_states_partial_and_total_lengths() {
        let words = [0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 52, 0];
        let answer = ReadMpxResponse::parse(&response(Smb1Command::READ_MPX, &words, b"\0data")).unwrap();
        assert_eq!(answer, ReadMpxResponse { count: 9, data_length: 4 });
    }

    #[test]
    fn the_name_of_a_delete_follows_a_format_byte() {
        let delete = Delete { search_attributes: 6, file_name: "\\f".into() };
        // The data begins at 32 + 1 + 2 + 2 = 37, so the name after the format byte is at the even offset 38.
        assert_eq!(emitted(&delete), [1, 6, 0, 7, 0, 4, b'\\', 0, b'f', 0, 0, 0]);
    }

    #[test]
    fn both_names_are_aligned_behind_their_format_bytes() {
        let rename = Rename { search_attributes: 0x16, old_file_name: "a".into(), new_file_name: "b".into() };
        // The first name is at 38; the second format byte is at 42, so one byte of padding precedes the second name.
        assert_eq!(emitted(&rename), [1, 0x16, 0, 11, 0, 4, b'a', 0, 0, 0, 4, 0, b'b', 0, 0, 0]);
    }

    #[test]
    fn the_name_of_a_directory_follows_a_format_byte() {
        let request = CheckDirectory { directory_name: "\\d".into() };
        // The data begins at 32 + 1 + 2 = 35, so the name after the format byte is at the even offset 36.
        assert_eq!(emitted(&request), [0, 7, 0, 4, b'\\', 0, b'd', 0, 0, 0]);
        assert_eq!(emitted_oem(&request), b"\x00\x04\x00\x04\\d\0");
        assert_eq!(emitted(&CreateDirectory { directory_name: "\\d".into() }), emitted(&request));
        assert_eq!(emitted(&DeleteDirectory { directory_name: "\\d".into() }), emitted(&request));
    }
}

//! Commands of the core and LAN Manager dialects that NT clients no longer send: 32-bit reads, writes and locks, and
//! opens by name (MS-CIFS 2.2.4.3, 2.2.4.11, 2.2.4.13, 2.2.4.23, 2.2.4.26).

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
    /// Its response consists of several messages.
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
        /// Bytes in this message.
        data_length: u16 = 12,
    }
}

message! {
    /// The request consists of several messages.
    WriteMpx: WRITE_MPX, 12 {
        fid: u16 = 0,
        /// Bytes of the whole request.
        total_byte_count: u16 = 2,
        /// Offset in the file of this message's data.
        byte_offset: u32 = 6,
    }
}

message! {
    /// Response to OPEN. Responses to CREATE, CREATE_NEW and CREATE_TEMPORARY begin with the same fields.
    OpenResponse: OPEN, 7 {
        fid: u16 = 0,
        /// SMB_FILE_ATTRIBUTES.
        file_attributes: u16 = 2,
        file_size: u32 = 8,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
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
    fn a_multiplexed_answer_tells_what_is_here_and_in_all() {
        let words = [0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 52, 0];
        let answer = ReadMpxResponse::parse(&response(Smb1Command::READ_MPX, &words, b"\0data")).unwrap();
        assert_eq!(answer, ReadMpxResponse { count: 9, data_length: 4 });
    }
}

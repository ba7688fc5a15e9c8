//! Commands of the core dialect and of LAN Manager that NT clients no longer send: reads, writes and locks of 32 bits, and
//! opens by name (MS-CIFS 2.2.4.3, 2.2.4.11, 2.2.4.13, 2.2.4.23, 2.2.4.26). Several commands have the same fields.

use super::message::message;

message! {
    /// Reads from a file. WRITE, LOCK_AND_READ, WRITE_AND_UNLOCK and WRITE_AND_CLOSE begin likewise.
    ReadBytes: READ, 5 {
        /// The open.
        fid: u16 = 0,
        /// Bytes.
        count: u16 = 2,
        /// First byte.
        offset: u32 = 4,
    }
}

message! {
    /// Locks a range; UNLOCK_BYTE_RANGE gives it back.
    LockByteRange: LOCK_BYTE_RANGE, 5 {
        /// The open.
        fid: u16 = 0,
        /// Bytes.
        count: u32 = 2,
        /// First byte.
        offset: u32 = 6,
    }
}

message! {
    /// Reads from a file; the answer is several messages.
    ReadMpx: READ_MPX, 8 {
        /// The open.
        fid: u16 = 0,
        /// First byte.
        offset: u32 = 2,
        /// Bytes.
        max_count: u16 = 6,
    }
}

message! {
    /// One of them.
    ReadMpxResponse: READ_MPX, 8 {
        /// Bytes of the whole answer.
        count: u16 = 4,
        /// Bytes here.
        data_length: u16 = 12,
    }
}

message! {
    /// Writes to a file; the request is several messages.
    WriteMpx: WRITE_MPX, 12 {
        /// The open.
        fid: u16 = 0,
        /// Bytes of the whole request.
        total_byte_count: u16 = 2,
        /// First byte of this message.
        byte_offset: u32 = 6,
    }
}

message! {
    /// What was opened by OPEN; the answers to CREATE, CREATE_NEW and CREATE_TEMPORARY begin likewise.
    OpenResponse: OPEN, 7 {
        /// For what follows.
        fid: u16 = 0,
        /// SMB_FILE_ATTRIBUTES.
        file_attributes: u16 = 2,
        /// Bytes.
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

//! SMB_COM_WRITE_RAW (MS-CIFS 2.2.4.25) with 14 words: after the server's go-ahead the data follows without a header.
//! In write-through mode the server responds to the data, too.

use super::message::message;
use super::{Malformed, Smb1MessageWriter, View};
use crate::smb1::Smb1Command;

message! {
    WriteRaw: WRITE_RAW, 14 {
        fid: u16 = 0,
        count: u16 = 2,
        offset_low: u32 = 6,
        /// Bit 0: write-through.
        write_mode: u16 = 14,
        /// Bytes in the request itself.
        data_length: u16 = 20,
        data_offset: u16 = 22,
        offset_high: u32 = 24,
    }
}

impl WriteRaw {
    /// WriteMode: the server responds when the data is on disk.
    pub const WRITE_THROUGH: u16 = 0x0001;

    /// Creates a write-through request without data in the request itself.
    pub fn new(fid: u16, offset: u64, count: u16) -> WriteRaw {
        WriteRaw {
            fid,
            count,
            offset_low: offset as u32,
            write_mode: Self::WRITE_THROUGH,
            data_length: 0,
            data_offset: Smb1MessageWriter::data_at(14),
            offset_high: (offset >> 32) as u32,
        }
    }
}

message! {
    /// SMB_COM_WRITE_COMPLETE (MS-CIFS 2.2.4.28).
    WriteComplete: WRITE_COMPLETE, 1 {
        count: u16 = 0,
    }
}

impl WriteComplete {
    /// Parses the response under the given command. Samba sends WRITE_RAW instead.
    pub fn parse_as(message: &[u8], command: Smb1Command) -> Result<WriteComplete, Malformed> {
        WriteComplete::read(&View::parse(message, command)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn the_request_brings_no_data_itself() {
        let bytes = emitted(&WriteRaw::new(0x1234, 0x3_0000_0001, 0xfe00));
        let mut expected = vec![14, 0x34, 0x12, 0, 0xfe, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        // DataLength, DataOffset, OffsetHigh; ByteCount. The message has 32 + 1 + 28 + 2 = 63 bytes.
        expected.extend([0, 0, 63, 0, 3, 0, 0, 0, 0, 0]);
        assert_eq!(bytes, expected);
        assert_eq!(32 + bytes.len(), 63);
    }

    #[test]
    fn the_end_says_how_much_was_written() {
        let bytes = response(Smb1Command::WRITE_COMPLETE, &[0x02, 0x01], &[]);
        assert_eq!(WriteComplete::parse(&bytes), Ok(WriteComplete { count: 0x0102 }));
        assert!(WriteComplete::parse(&response(Smb1Command::WRITE_COMPLETE, &[], &[])).is_err());
    }
}

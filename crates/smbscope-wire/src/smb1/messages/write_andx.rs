//! SMB_COM_WRITE_ANDX (MS-CIFS 2.2.4.43) of 14 words, with the lengths above 64 KiB of MS-SMB 2.2.4.3.

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// Writes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAndx<'a> {
    /// The open.
    pub fid: u16,
    /// First byte.
    pub offset: u64,
    /// Bit 0: on disk before the answer.
    pub write_mode: u16,
    /// More than 65,535 only where the server has CAP_LARGE_WRITEX.
    pub data: &'a [u8],
}

impl WriteAndx<'_> {
    /// Bytes of the message before the data: header, 14 words, byte count, padding.
    pub const DATA_OFFSET: u16 = 64;
}

impl Request for WriteAndx<'_> {
    const COMMAND: Command = Command::WRITE_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u16(self.fid);
        writer.u32(self.offset as u32);
        writer.u32(0);
        writer.u16(self.write_mode);
        writer.u16(0);
        writer.u16((self.data.len() >> 16) as u16);
        writer.u16(self.data.len() as u16);
        writer.u16(WriteAndx::DATA_OFFSET);
        writer.u32((self.offset >> 32) as u32);
        writer.data();
        writer.u8(0);
        writer.bytes(self.data);
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAndxResponse {
    /// Bytes.
    pub count: u32,
}

impl WriteAndxResponse {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<WriteAndxResponse, Malformed> {
        let view = View::parse(message, Command::WRITE_ANDX)?;
        Ok(WriteAndxResponse { count: u32::from(view.u16(4)?) | u32::from(view.u16(8)?) << 16 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn the_data_begins_where_the_offset_says() {
        let write = WriteAndx { fid: 0x1234, offset: 0x3_0000_0001, write_mode: 1, data: b"xyz" };
        let mut expected = vec![14, 0xff, 0, 0, 0, 0x34, 0x12, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 64, 0];
        expected.extend([3, 0, 0, 0, 4, 0, 0]);
        assert_eq!(expected.len() + 32, usize::from(WriteAndx::DATA_OFFSET));
        expected.extend(b"xyz");
        assert_eq!(emitted(&write), expected);
    }

    #[test]
    fn large_writes_have_their_length_in_two_halves() {
        let data = vec![1; 0x1_0000];
        let bytes = emitted(&WriteAndx { fid: 1, offset: 0, write_mode: 0, data: &data });
        // DataLengthHigh, DataLength, DataOffset; ByteCount is the low half of 65,537.
        assert_eq!(bytes[19..25], [1, 0, 0, 0, 64, 0]);
        assert_eq!(bytes[29..31], [1, 0]);
        assert_eq!(bytes.len(), 32 + 0x1_0000);
    }

    #[test]
    fn the_count_has_two_halves_too() {
        let words = [0xff, 0, 0, 0, 0x02, 0x01, 0xff, 0xff, 1, 0, 0, 0];
        let answer = WriteAndxResponse::parse(&response(Command::WRITE_ANDX, &words, &[]));
        assert_eq!(answer, Ok(WriteAndxResponse { count: 0x1_0102 }));
    }
}

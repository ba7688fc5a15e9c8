//! SMB_COM_READ_ANDX (MS-CIFS 2.2.4.42), with the lengths above 64 KiB of MS-SMB 2.2.4.2.

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// Reads from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAndx {
    /// The open.
    pub fid: u16,
    /// First byte.
    pub offset: u64,
    /// Bytes; more than 65,535 only where the server has CAP_LARGE_READX.
    pub max_count: u32,
}

impl Request for ReadAndx {
    const COMMAND: Command = Command::READ_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u16(self.fid);
        writer.u32(self.offset as u32);
        writer.u16(self.max_count as u16);
        writer.u16(0);
        writer.u32(self.max_count >> 16);
        writer.u16(0);
        writer.u32((self.offset >> 32) as u32);
    }
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAndxResponse<'a> {
    /// The bytes; none at and behind the end of the file.
    pub data: &'a [u8],
}

impl ReadAndxResponse<'_> {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<ReadAndxResponse<'_>, Malformed> {
        let view = View::parse(message, Command::READ_ANDX)?;
        let length = usize::from(view.u16(10)?) | usize::from(view.u16(14)?) << 16;
        // ByteCount has no room for large reads: offset and length say where the data is.
        Ok(ReadAndxResponse { data: view.range(usize::from(view.u16(12)?), length)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn offset_and_length_are_split_into_halves() {
        let read = ReadAndx { fid: 0x1234, offset: 0x2_0000_1000, max_count: 0x1_f000 };
        let mut expected = vec![12, 0xff, 0, 0, 0, 0x34, 0x12, 0, 0x10, 0, 0, 0, 0xf0, 0, 0, 1, 0, 0, 0, 0, 0];
        expected.extend([2, 0, 0, 0, 0, 0]);
        assert_eq!(emitted(&read), expected);
    }

    fn words(length: u32, offset: u16) -> Vec<u8> {
        let mut words = vec![0xff, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
        words.extend((length as u16).to_le_bytes());
        words.extend(offset.to_le_bytes());
        words.extend(((length >> 16) as u16).to_le_bytes());
        words.resize(24, 0);
        words
    }

    #[test]
    fn large_reads_go_beyond_what_the_byte_count_holds() {
        // The data begins at 32 + 1 + 24 + 2 = 59, after one byte of padding at 60.
        let data = vec![7; 1 + 0x1_0000];
        let bytes = response(Command::READ_ANDX, &words(0x1_0000, 60), &data);
        assert_eq!(ReadAndxResponse::parse(&bytes).unwrap().data, &data[1..]);
    }

    #[test]
    fn data_beyond_the_message_is_refused() {
        let bytes = response(Command::READ_ANDX, &words(5, 60), b"\0four");
        let error = ReadAndxResponse::parse(&bytes).unwrap_err();
        assert_eq!(error.what, "data beyond the end of the message");
        // Nothing was read, so the offset does not matter.
        let empty = response(Command::READ_ANDX, &words(0, 0xffff), &[]);
        assert_eq!(ReadAndxResponse::parse(&empty).unwrap().data, b"");
    }
}

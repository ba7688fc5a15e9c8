//! SMB_COM_READ_ANDX (MS-CIFS 2.2.4.42), with lengths above 64 KiB (MS-SMB 2.2.4.2).

use super::message::message;
use super::{Malformed, Smb1Message, Smb1MessageWriter, View};
use crate::smb1::Smb1Command;

message! {
    ReadAndx: READ_ANDX, 12 {
        fid: u16 = 4,
        offset_low: u32 = 6,
        max_count: u16 = 10,
        /// For pipes: minimum number of bytes to wait for.
        min_count: u16 = 12,
        /// High half of the length if the server has CAP_LARGE_READX; a timeout for pipes.
        max_count_high: u32 = 14,
        offset_high: u32 = 20,
    }
}

impl ReadAndx {
    pub fn new(fid: u16, offset: u64, max_count: u32) -> ReadAndx {
        ReadAndx {
            fid,
            offset_low: offset as u32,
            max_count: max_count as u16,
            min_count: 0,
            max_count_high: max_count >> 16,
            offset_high: (offset >> 32) as u32,
        }
    }
}

message! {
    /// Parameter words of a response.
    Fields: READ_ANDX, 12 {
        available: u16 = 4,
        data_length: u16 = 10,
        data_offset: u16 = 12,
        data_length_high: u16 = 14,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAndxResponse<'a> {
    /// Bytes left in a pipe; all ones for a file.
    pub available: u16,
    /// Bytes between the fields and the data.
    pub padding: u16,
    /// Empty at and beyond the end of the file.
    pub data: &'a [u8],
}

impl ReadAndxResponse<'_> {
    pub fn parse(message: &[u8]) -> Result<ReadAndxResponse<'_>, Malformed> {
        let view = View::parse(message, Smb1Command::READ_ANDX)?;
        let fields = Fields::read(&view)?;
        let length = usize::from(fields.data_length) | usize::from(fields.data_length_high) << 16;
        // Large reads exceed ByteCount, so only offset and length locate the data.
        let data = view.range(fields.data_offset.into(), length)?;
        let padding = fields.data_offset.saturating_sub(Smb1MessageWriter::data_at(12));
        Ok(ReadAndxResponse { available: fields.available, padding, data })
    }
}

impl Smb1Message for ReadAndxResponse<'_> {
    const COMMAND: Smb1Command = Smb1Command::READ_ANDX;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let length = self.data.len();
        let fields = Fields {
            available: self.available,
            data_length: length as u16,
            data_offset: writer.data_from_here(12) + self.padding,
            data_length_high: (length >> 16) as u16,
        };
        fields.body(writer);
        writer.zeros(self.padding.into());
        writer.bytes(self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn offset_and_length_are_split_into_halves() {
        let read = ReadAndx::new(0x1234, 0x2_0000_1000, 0x1_f000);
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
        // The data begins at 32 + 1 + 24 + 2 = 59; one byte of padding aligns it to 60.
        let data = vec![7; 1 + 0x1_0000];
        let bytes = response(Smb1Command::READ_ANDX, &words(0x1_0000, 60), &data);
        assert_eq!(ReadAndxResponse::parse(&bytes).unwrap().data, &data[1..]);
    }

    #[test]
    fn data_beyond_the_message_is_refused() {
        let bytes = response(Smb1Command::READ_ANDX, &words(5, 60), b"\0four");
        let error = ReadAndxResponse::parse(&bytes).unwrap_err();
        assert_eq!(error.what, "data beyond the end of the message");
        // Nothing was read, so the offset does not matter.
        let empty = response(Smb1Command::READ_ANDX, &words(0, 0xffff), &[]);
        assert_eq!(ReadAndxResponse::parse(&empty).unwrap().data, b"");
    }
}

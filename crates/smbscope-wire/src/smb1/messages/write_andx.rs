//! SMB_COM_WRITE_ANDX (MS-CIFS 2.2.4.43) with 14 words and lengths above 64 KiB (MS-SMB 2.2.4.3).

use super::message::message;
use super::{Malformed, Smb1Message, Smb1MessageWriter, View};
use crate::smb1::Smb1Command;

message! {
    /// Parameter words of a request.
    Fields: WRITE_ANDX, 14 {
        fid: u16 = 4,
        offset_low: u32 = 6,
        write_mode: u16 = 14,
        data_length_high: u16 = 18,
        data_length: u16 = 20,
        data_offset: u16 = 22,
        offset_high: u32 = 24,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAndx<'a> {
    pub fid: u16,
    pub offset: u64,
    /// Bit 0: write-through.
    pub write_mode: u16,
    /// Bytes between the fields and the data: one aligns the data to an even offset.
    pub padding: u16,
    /// More than 65,535 bytes require CAP_LARGE_WRITEX.
    pub data: &'a [u8],
}

impl WriteAndx<'_> {
    /// Offset of the data: header, 14 words, byte count, one byte of padding.
    pub const DATA_OFFSET: u16 = Smb1MessageWriter::data_at(14) + 1;

    /// Parses a message of this command.
    pub fn parse(message: &[u8]) -> Result<WriteAndx<'_>, Malformed> {
        let view = View::parse(message, Smb1Command::WRITE_ANDX)?;
        let fields = Fields::read(&view)?;
        let length = usize::from(fields.data_length) | usize::from(fields.data_length_high) << 16;
        Ok(WriteAndx {
            fid: fields.fid,
            offset: u64::from(fields.offset_low) | u64::from(fields.offset_high) << 32,
            write_mode: fields.write_mode,
            padding: fields.data_offset.saturating_sub(Smb1MessageWriter::data_at(14)),
            data: view.range(fields.data_offset.into(), length)?,
        })
    }
}

impl Smb1Message for WriteAndx<'_> {
    const COMMAND: Smb1Command = Smb1Command::WRITE_ANDX;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let length = self.data.len();
        let fields = Fields {
            fid: self.fid,
            offset_low: self.offset as u32,
            write_mode: self.write_mode,
            data_length_high: (length >> 16) as u16,
            data_length: length as u16,
            data_offset: writer.data_from_here(14) + self.padding,
            offset_high: (self.offset >> 32) as u32,
        };
        fields.body(writer);
        writer.zeros(self.padding.into());
        writer.bytes(self.data);
    }
}

message! {
    WriteAndxResponse: WRITE_ANDX, 6 {
        count: u16 = 4,
        /// Meaningful only for pipes.
        available: u16 = 6,
        count_high: u16 = 8,
    }
}

impl WriteAndxResponse {
    pub fn new(count: u32) -> WriteAndxResponse {
        WriteAndxResponse { count: count as u16, available: u16::MAX, count_high: (count >> 16) as u16 }
    }

    pub fn total(&self) -> u32 {
        u32::from(self.count) | u32::from(self.count_high) << 16
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn the_data_begins_where_the_offset_says() {
        let write = WriteAndx { fid: 0x1234, offset: 0x3_0000_0001, write_mode: 1, padding: 1, data: b"xyz" };
        let mut expected = vec![14, 0xff, 0, 0, 0, 0x34, 0x12, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 64, 0];
        expected.extend([3, 0, 0, 0, 4, 0, 0]);
        assert_eq!(expected.len() + 32, usize::from(WriteAndx::DATA_OFFSET));
        expected.extend(b"xyz");
        assert_eq!(emitted(&write), expected);
    }

    #[test]
    fn large_writes_have_their_length_in_two_halves() {
        let data = vec![1; 0x1_0000];
        let bytes = emitted(&WriteAndx { fid: 1, offset: 0, write_mode: 0, padding: 1, data: &data });
        // DataLengthHigh, DataLength, DataOffset; ByteCount is the low half of 65,537.
        assert_eq!(bytes[19..25], [1, 0, 0, 0, 64, 0]);
        assert_eq!(bytes[29..31], [1, 0]);
        assert_eq!(bytes.len(), 32 + 0x1_0000);
    }

    #[test]
    fn the_count_has_two_halves_too() {
        let words = [0xff, 0, 0, 0, 0x02, 0x01, 0xff, 0xff, 1, 0, 0, 0];
        let answer = WriteAndxResponse::parse(&response(Smb1Command::WRITE_ANDX, &words, &[]));
        assert_eq!(answer.unwrap().total(), 0x1_0102);
    }
}

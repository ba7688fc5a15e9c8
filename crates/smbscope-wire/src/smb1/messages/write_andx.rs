//! SMB_COM_WRITE_ANDX (MS-CIFS 2.2.4.43) of 14 words, with the lengths above 64 KiB of MS-SMB 2.2.4.3.

use super::message::message;
use super::{Malformed, Smb1Message, Smb1MessageWriter, View};
use crate::smb1::Smb1Command;

message! {
    /// The words of a request.
    Fields: WRITE_ANDX, 14 {
        /// The open.
        fid: u16 = 4,
        /// First byte, the low half.
        offset_low: u32 = 6,
        /// See [`WriteAndx`].
        write_mode: u16 = 14,
        /// Bytes, the high half.
        data_length_high: u16 = 18,
        /// Bytes, the low half.
        data_length: u16 = 20,
        /// Where they are.
        data_offset: u16 = 22,
        /// First byte, the high half.
        offset_high: u32 = 24,
    }
}

/// Writes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAndx<'a> {
    /// The open.
    pub fid: u16,
    /// First byte.
    pub offset: u64,
    /// Bit 0: on disk before the answer.
    pub write_mode: u16,
    /// Bytes between the fields and the data: one makes the offset of the data even.
    pub padding: u16,
    /// More than 65,535 only where the server has CAP_LARGE_WRITEX.
    pub data: &'a [u8],
}

impl WriteAndx<'_> {
    /// Bytes of the message before the data: header, 14 words, byte count, padding.
    pub const DATA_OFFSET: u16 = Smb1MessageWriter::data_at(14) + 1;

    /// Checks a message of this command.
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
    /// What was written.
    WriteAndxResponse: WRITE_ANDX, 6 {
        /// Bytes, the low half.
        count: u16 = 4,
        /// Available: of pipes.
        available: u16 = 6,
        /// Bytes, the high half.
        count_high: u16 = 8,
    }
}

impl WriteAndxResponse {
    /// So many bytes were.
    pub fn new(count: u32) -> WriteAndxResponse {
        WriteAndxResponse { count: count as u16, available: u16::MAX, count_high: (count >> 16) as u16 }
    }

    /// Bytes.
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

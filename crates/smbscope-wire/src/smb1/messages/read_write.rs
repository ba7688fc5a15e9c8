//! Reads and writes: SMB_COM_READ_ANDX and SMB_COM_WRITE_ANDX (MS-CIFS 2.2.4.42, 2.2.4.43) with lengths above 64 KiB
//! (MS-SMB 2.2.4.2, 2.2.4.3), and the raw mode of SMB_COM_READ_RAW and SMB_COM_WRITE_RAW (MS-CIFS 2.2.4.22, 2.2.4.25).
//!
//! The response to READ_RAW is the bare data without a header, and empty on any error. WRITE_RAW gets a go-ahead, after
//! which the data follows without a header; in write-through mode the server responds to the data, too.

use super::message::{Malformed, Smb1Message, Smb1MessageWriter, View, message};
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
    ReadAndxFields: READ_ANDX, 12 {
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
        let fields = ReadAndxFields::read(&view)?;
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
        let fields = ReadAndxFields {
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

message! {
    ReadRaw: READ_RAW, 10 {
        fid: u16 = 0,
        offset_low: u32 = 2,
        max_count: u16 = 6,
        offset_high: u32 = 16,
    }
}

impl ReadRaw {
    pub fn new(fid: u16, offset: u64, max_count: u16) -> ReadRaw {
        ReadRaw { fid, offset_low: offset as u32, max_count, offset_high: (offset >> 32) as u32 }
    }
}

message! {
    WriteAndxFields: WRITE_ANDX, 14 {
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

    pub fn parse(message: &[u8]) -> Result<WriteAndx<'_>, Malformed> {
        let view = View::parse(message, Smb1Command::WRITE_ANDX)?;
        let fields = WriteAndxFields::read(&view)?;
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
        let fields = WriteAndxFields {
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

message! {
    WriteRaw: WRITE_RAW, 14 {
        fid: u16 = 0,
        count: u16 = 2,
        offset_low: u32 = 6,
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

    #[test]
    fn the_offset_is_split_into_halves() {
        let read = ReadRaw::new(0x1234, 0x2_0000_1000, 0xfe00);
        let mut expected = vec![10, 0x34, 0x12, 0, 0x10, 0, 0, 0, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([2, 0, 0, 0, 0, 0]);
        assert_eq!(emitted(&read), expected);
    }

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

    #[test]
    fn the_request_itself_has_no_data() {
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

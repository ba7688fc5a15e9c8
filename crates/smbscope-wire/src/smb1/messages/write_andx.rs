//! SMB_COM_WRITE_ANDX (MS-CIFS 2.2.4.43) of 14 words, with the lengths above 64 KiB of MS-SMB 2.2.4.3.

use super::message::message;
use super::{Malformed, Message, View, Writer};
use crate::codec::Value;
use crate::smb1::Command;

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
    const WORDS: usize = 14;
    /// Bytes of the message before the data: header, 14 words, byte count, padding.
    pub const DATA_OFFSET: u16 = 64;

    /// Checks a message of this command.
    pub fn parse(message: &[u8]) -> Result<WriteAndx<'_>, Malformed> {
        let view = View::parse(message, Command::WRITE_ANDX)?;
        let length = usize::from(view.value::<u16>(20)?) | usize::from(view.value::<u16>(18)?) << 16;
        let offset = view.value::<u16>(22)?;
        Ok(WriteAndx {
            fid: view.value(4)?,
            offset: u64::from(view.value::<u32>(6)?) | u64::from(view.value::<u32>(24)?) << 32,
            write_mode: view.value(14)?,
            padding: offset.saturating_sub(Writer::data_at(Self::WORDS)),
            data: view.range(offset.into(), length)?,
        })
    }
}

impl Message for WriteAndx<'_> {
    const COMMAND: Command = Command::WRITE_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        let mut words = [0; 2 * Self::WORDS];
        super::message::begin(Self::COMMAND, &mut words);
        let length = self.data.len();
        self.fid.set(&mut words, 4);
        (self.offset as u32).set(&mut words, 6);
        self.write_mode.set(&mut words, 14);
        ((length >> 16) as u16).set(&mut words, 18);
        (length as u16).set(&mut words, 20);
        ((writer.position() + 2 * Self::WORDS + 2) as u16 + self.padding).set(&mut words, 22);
        ((self.offset >> 32) as u32).set(&mut words, 24);
        writer.bytes(&words);
        writer.data();
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
        let answer = WriteAndxResponse::parse(&response(Command::WRITE_ANDX, &words, &[]));
        assert_eq!(answer.unwrap().total(), 0x1_0102);
    }
}

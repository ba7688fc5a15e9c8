//! SMB_COM_READ_RAW (MS-CIFS 2.2.4.22) of 10 words. Its answer is the data and nothing else, not even a header; none at
//! all where something is wrong.

use super::super::Command;
use super::{Request, Writer};

/// Reads from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRaw {
    /// The open.
    pub fid: u16,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub max_count: u16,
}

impl Request for ReadRaw {
    const COMMAND: Command = Command::READ_RAW;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.fid);
        writer.u32(self.offset as u32);
        writer.u16(self.max_count);
        writer.u16(0);
        writer.u32(0);
        writer.u16(0);
        writer.u32((self.offset >> 32) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn the_offset_is_split_into_halves() {
        let read = ReadRaw { fid: 0x1234, offset: 0x2_0000_1000, max_count: 0xfe00 };
        let mut expected = vec![10, 0x34, 0x12, 0, 0x10, 0, 0, 0, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([2, 0, 0, 0, 0, 0]);
        assert_eq!(emitted(&read), expected);
    }
}

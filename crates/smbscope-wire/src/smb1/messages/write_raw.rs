//! SMB_COM_WRITE_RAW (MS-CIFS 2.2.4.25) of 14 words: the server says that it is ready, and the data follows without a
//! header. In write-through mode the server answers that, too.

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// WriteMode: an answer is due when the data is where it belongs.
const WRITE_THROUGH: u16 = 0x0001;

/// Announces data for a file, in write-through mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteRaw {
    /// The open.
    pub fid: u16,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub count: u16,
}

impl Request for WriteRaw {
    const COMMAND: Command = Command::WRITE_RAW;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.fid);
        writer.u16(self.count);
        writer.u16(0);
        writer.u32(self.offset as u32);
        writer.u32(0);
        writer.u16(WRITE_THROUGH);
        writer.u32(0);
        // Data in the request itself: none, behind the end of it.
        writer.u16(0);
        writer.u16(Writer::words_end(14) as u16 + 2);
        writer.u32((self.offset >> 32) as u32);
    }
}

/// What was written: SMB_COM_WRITE_COMPLETE (MS-CIFS 2.2.4.28), or from Samba another WRITE_RAW.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteComplete {
    /// Bytes.
    pub count: u16,
}

impl WriteComplete {
    /// Checks it.
    pub fn parse(message: &[u8], command: Command) -> Result<WriteComplete, Malformed> {
        Ok(WriteComplete { count: View::parse(message, command)?.u16(0)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn the_request_brings_no_data_itself() {
        let bytes = emitted(&WriteRaw { fid: 0x1234, offset: 0x3_0000_0001, count: 0xfe00 });
        let mut expected = vec![14, 0x34, 0x12, 0, 0xfe, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        // DataLength, DataOffset, OffsetHigh; ByteCount. The message has 32 + 1 + 28 + 2 = 63 bytes.
        expected.extend([0, 0, 63, 0, 3, 0, 0, 0, 0, 0]);
        assert_eq!(bytes, expected);
        assert_eq!(32 + bytes.len(), 63);
    }

    #[test]
    fn the_end_says_how_much_was_written() {
        let bytes = response(Command::WRITE_COMPLETE, &[0x02, 0x01], &[]);
        assert_eq!(WriteComplete::parse(&bytes, Command::WRITE_COMPLETE), Ok(WriteComplete { count: 0x0102 }));
        assert!(WriteComplete::parse(&response(Command::WRITE_COMPLETE, &[], &[]), Command::WRITE_COMPLETE).is_err());
    }
}

//! READ (MS-SMB2 2.2.19, 2.2.20).

use super::put::Put;
use super::{Body, buffer};
use crate::bytes::{u8_at, u16_at, u32_at};
use crate::smb2::{Command, FileReference};

/// Where the data of an answer is wanted to begin: right behind its fields.
const PADDING: u8 = 0x50;

/// Reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The open.
    pub file: FileReference,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Body for Request {
    const COMMAND: Command = Command::READ;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(49);
        out.put_u8(PADDING);
        out.put_u8(0); // Flags
        out.put_u32(self.length);
        out.put_u64(self.offset);
        out.put_file(self.file);
        out.put_zeros(17); // MinimumCount, Channel, RemainingBytes, channel information, and a buffer of one byte
    }

    fn expected(&self) -> usize {
        self.length as usize
    }
}

/// The bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// As many as there were.
    pub data: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Response<'a>> {
        if u16_at(message, 64)? != 17 {
            return None;
        }
        Some(Response { data: buffer(message, u8_at(message, 66)?.into(), u32_at(message, 68)? as usize)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;

    #[test]
    fn a_request_has_49_bytes() {
        let read = Request { file: FileReference { persistent: 1, volatile: 2 }, offset: 0x0102, length: 0x0304 };
        let message = request(&read);
        assert_eq!(message[64..80], [49, 0, 0x50, 0, 4, 3, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.len(), 64 + 49);
    }

    #[test]
    fn data_is_where_the_offset_says() {
        let mut message = response(Command::READ);
        message.extend([17, 0, 82, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
        message.extend(b"abc");
        assert_eq!(Response::parse(&message), Some(Response { data: b"abc" }));
        assert_eq!(Response::parse(&message[..84]), None, "fewer bytes than promised");
    }
}

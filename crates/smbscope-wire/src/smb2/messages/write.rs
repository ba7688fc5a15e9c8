//! WRITE (MS-SMB2 2.2.21, 2.2.22).

use super::Body;
use super::put::Put;
use crate::bytes::{u16_at, u32_at};
use crate::smb2::{Command, FileReference};

/// Where the data begins.
const BUFFER: u16 = 112;

/// Writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The open.
    pub file: FileReference,
    /// First byte.
    pub offset: u64,
    /// What to write.
    pub data: &'a [u8],
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::WRITE;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(49);
        out.put_u16(BUFFER);
        out.put_u32(self.data.len() as u32);
        out.put_u64(self.offset);
        out.put_file(self.file);
        out.put_zeros(16); // Channel, RemainingBytes, channel information, Flags
        match self.data {
            [] => out.put_u8(0), // the buffer must not be empty
            data => out.extend_from_slice(data),
        }
    }

    fn payload(&self) -> usize {
        self.data.len()
    }
}

/// How much was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Bytes.
    pub count: u32,
}

impl Response {
    /// Reads the message from its header on.
    pub fn parse(message: &[u8]) -> Option<Response> {
        if u16_at(message, 64)? != 17 {
            return None;
        }
        Some(Response { count: u32_at(message, 68)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;

    #[test]
    fn data_begins_behind_48_bytes_of_fields() {
        let write = Request { file: FileReference { persistent: 1, volatile: 2 }, offset: 7, data: b"xyz" };
        let message = request(&write);
        assert_eq!(message[64..80], [49, 0, 112, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&message[112..], b"xyz");
        assert_eq!(request(&Request { data: b"", ..write }).len(), 113);
    }

    #[test]
    fn the_response_counts_bytes() {
        let mut message = response(Command::WRITE);
        message.extend([17, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Response::parse(&message), Some(Response { count: 3 }));
    }
}

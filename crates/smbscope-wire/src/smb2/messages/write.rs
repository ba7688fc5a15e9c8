//! WRITE (MS-SMB2 2.2.21, 2.2.22).

use super::Smb2RequestMessage;
use super::message::message;
use crate::smb2::FileReference;

message! {
    request Request<'a>: WRITE, 49 {
        offset: u64 = 8,
        file: FileReference = 16,
    } with {
        data: &'a [u8] = [u16 @ 2, u32 @ 4],
    }
}

impl Request<'_> {
    /// Returns the number of bytes to write, of a possibly truncated message.
    pub fn length(message: &[u8]) -> Option<u32> {
        Self::data(message).map(|(_, length)| length as u32)
    }
}

impl Smb2RequestMessage for Request<'_> {
    fn payload(&self) -> usize {
        self.data.len()
    }
}

message! {
    response Response: WRITE, 17 {
        count: u32 = 4,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::Smb2Command;

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
        let mut message = response(Smb2Command::WRITE);
        message.extend([17, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Response::parse(&message), Some(Response { count: 3 }));
    }
}

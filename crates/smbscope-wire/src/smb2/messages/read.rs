//! READ (MS-SMB2 2.2.19, 2.2.20).

use super::Smb2RequestMessage;
use super::message::message;
use crate::smb2::FileReference;

message! {
    request Request: READ, 49 {
        /// Requested offset of the data in the response, relative to the header.
        padding: u8 = 2,
        length: u32 = 4,
        offset: u64 = 8,
        file: FileReference = 16,
    }
}

impl Request {
    /// Creates a request that places the data of the response directly after its fields.
    pub fn new(file: FileReference, offset: u64, length: u32) -> Request {
        Request { padding: Response::END as u8, length, offset, file }
    }
}

impl Smb2RequestMessage for Request {
    fn expected(&self) -> usize {
        self.length as usize
    }
}

message! {
    response Response<'a>: READ, 17 {} with {
        data: &'a [u8] = [u8 @ 2, u32 @ 4],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::Smb2Command;

    #[test]
    fn a_request_has_49_bytes() {
        let read = Request::new(FileReference { persistent: 1, volatile: 2 }, 0x0102, 0x0304);
        let message = request(&read);
        assert_eq!(message[64..80], [49, 0, 0x50, 0, 4, 3, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.len(), 64 + 49);
    }

    #[test]
    fn data_is_where_the_offset_says() {
        let mut message = response(Smb2Command::READ);
        message.extend([17, 0, 82, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
        message.extend(b"abc");
        assert_eq!(Response::parse(&message), Some(Response { data: b"abc" }));
        assert_eq!(Response::parse(&message[..84]), None, "fewer bytes than promised");
    }
}

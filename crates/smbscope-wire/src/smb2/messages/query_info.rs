//! QUERY_INFO (MS-SMB2 2.2.37, 2.2.38).

use super::Smb2RequestMessage;
use super::message::message;
use crate::names::InfoLevel;
use crate::smb2::FileReference;

message! {
    request Request: QUERY_INFO, 41 {
        level: InfoLevel = 2,
        output_buffer_length: u32 = 4,
        /// For security queries: parts of the descriptor.
        additional_information: u32 = 16,
        file: FileReference = 24,
    }
}

impl Smb2RequestMessage for Request {
    fn expected(&self) -> usize {
        self.output_buffer_length as usize
    }
}

message! {
    response Response<'a>: QUERY_INFO, 9 {} with {
        output: &'a [u8] = [u16 @ 2, u32 @ 4],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::Smb2Command;

    #[test]
    fn type_and_class_come_first() {
        let query = Request {
            file: FileReference { persistent: 1, volatile: 2 },
            level: InfoLevel::FILE_FS_FULL_SIZE_INFORMATION,
            additional_information: 0,
            output_buffer_length: 0x0400,
        };
        let message = request(&query);
        assert_eq!(message[64..72], [41, 0, 2, 7, 0, 4, 0, 0]);
        assert_eq!(message[88..96], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.len(), 64 + 41);
    }

    #[test]
    fn the_output_is_where_its_offset_says() {
        let mut message = response(Smb2Command::QUERY_INFO);
        message.extend([9, 0, 72, 0, 3, 0, 0, 0]);
        message.extend(b"abc");
        assert_eq!(Response::parse(&message), Some(Response { output: b"abc" }));
    }
}

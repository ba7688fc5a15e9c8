//! QUERY_INFO (MS-SMB2 2.2.37, 2.2.38).

use super::put::Put;
use super::{Body, output_buffer};
use crate::names::InfoLevel;
use crate::smb2::{Command, FileReference};

/// Asks about a file, its file system or its security.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The open.
    pub file: FileReference,
    /// What to ask for.
    pub level: InfoLevel,
    /// Of security: which parts of the descriptor.
    pub additional_information: u32,
    /// Most bytes to get.
    pub output_buffer_length: u32,
}

impl Body for Request {
    const COMMAND: Command = Command::QUERY_INFO;

    fn emit(&self, out: &mut Vec<u8>) {
        let (info_type, class) = self.level.to_wire();
        out.put_u16(41);
        out.put_u8(info_type);
        out.put_u8(class);
        out.put_u32(self.output_buffer_length);
        out.put_u64(0); // no input buffer
        out.put_u32(self.additional_information);
        out.put_u32(0); // Flags
        out.put_file(self.file);
        out.put_u8(0); // the buffer must not be empty
    }

    fn expected(&self) -> usize {
        self.output_buffer_length as usize
    }
}

/// The information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// In the layout of the class.
    pub output: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Response<'a>> {
        output_buffer(message).map(|output| Response { output })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;

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
        let mut message = response(Command::QUERY_INFO);
        message.extend([9, 0, 72, 0, 3, 0, 0, 0]);
        message.extend(b"abc");
        assert_eq!(Response::parse(&message), Some(Response { output: b"abc" }));
    }
}

//! QUERY_DIRECTORY (MS-SMB2 2.2.33, 2.2.34).

use super::directory::DirectoryEntries;
use super::put::Put;
use super::{Body, output_buffer};
use crate::names::InfoLevel;
use crate::smb2::{Command, FileReference};

/// Flags.
pub mod flags {
    /// SMB2_RESTART_SCANS
    pub const RESTART_SCANS: u8 = 0x01;
    /// SMB2_RETURN_SINGLE_ENTRY
    pub const RETURN_SINGLE_ENTRY: u8 = 0x02;
}

/// Lists what is next of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The directory.
    pub file: FileReference,
    /// Class of its entries.
    pub level: InfoLevel,
    /// See [`flags`].
    pub flags: u8,
    /// What names must match; looked at with the first request.
    pub pattern: &'a str,
    /// Most bytes to get.
    pub output_buffer_length: u32,
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::QUERY_DIRECTORY;

    fn emit(&self, out: &mut Vec<u8>) {
        let body = out.len();
        out.put_u16(33);
        out.put_u8(self.level.to_wire().1);
        out.put_u8(self.flags);
        out.put_u32(0); // FileIndex
        out.put_file(self.file);
        out.put_u16(96);
        out.put_u16(0);
        out.put_u32(self.output_buffer_length);
        let length = out.put_utf16(self.pattern);
        out.set_u16(body + 26, length);
        if length == 0 {
            out.put_u8(0); // the buffer must not be empty
        }
    }

    fn expected(&self) -> usize {
        self.output_buffer_length as usize
    }
}

/// Some of the entries.
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

    /// The entries; `None` where the layout of the class is not known.
    pub fn entries(&self, level: InfoLevel) -> Option<DirectoryEntries<'a>> {
        DirectoryEntries::new(self.output, level)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;

    #[test]
    fn the_pattern_follows_the_fields() {
        let list = Request {
            file: FileReference { persistent: 1, volatile: 2 },
            level: InfoLevel::FILE_ID_BOTH_DIRECTORY_INFORMATION,
            flags: flags::RESTART_SCANS,
            pattern: "*",
            output_buffer_length: 0x1_0000,
        };
        let message = request(&list);
        assert_eq!(message[64..72], [33, 0, 37, 1, 0, 0, 0, 0]);
        assert_eq!(message[88..], [96, 0, 2, 0, 0, 0, 1, 0, b'*', 0]);
    }

    #[test]
    fn an_answer_without_its_buffer_is_none() {
        let mut message = response(Command::QUERY_DIRECTORY);
        message.extend([9, 0, 72, 0, 2, 0, 0, 0, 1, 2]);
        assert_eq!(Response::parse(&message), Some(Response { output: &[1, 2] }));
        assert_eq!(Response::parse(&message[..73]), None);
    }
}

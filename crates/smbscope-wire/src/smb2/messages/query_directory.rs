//! QUERY_DIRECTORY (MS-SMB2 2.2.33, 2.2.34).

use super::Smb2RequestMessage;
use super::message::message;
use crate::codec::WireText;
use crate::fscc::DirectoryEntries;
use crate::names::InfoLevel;
use crate::smb2::FileReference;

/// Bits of Flags.
pub mod flags {
    pub const RESTART_SCANS: u8 = 0x01;
    pub const RETURN_SINGLE_ENTRY: u8 = 0x02;
    pub const REOPEN: u8 = 0x10;
}

message! {
    request Request<'a>: QUERY_DIRECTORY, 33 {
        /// FileInformationClass of the entries.
        class: u8 = 2,
        flags: u8 = 3,
        file: FileReference = 8,
        output_buffer_length: u32 = 28,
    } with {
        /// Search pattern, evaluated only by the first request of a scan.
        pattern: WireText<'a> = [u16 @ 24, u16 @ 26],
    }
}

impl Request<'_> {
    pub fn level(&self) -> InfoLevel {
        InfoLevel::File(self.class)
    }
}

impl Smb2RequestMessage for Request<'_> {
    fn expected(&self) -> usize {
        self.output_buffer_length as usize
    }
}

message! {
    response Response<'a>: QUERY_DIRECTORY, 9 {} with {
        /// Entries in the layout of the requested class.
        output: &'a [u8] = [u16 @ 2, u32 @ 4],
    }
}

impl<'a> Response<'a> {
    /// Returns the entries. `None` if the class is unknown.
    pub fn entries(&self, level: InfoLevel) -> Option<DirectoryEntries<'a>> {
        DirectoryEntries::new(self.output, level)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::Smb2Command;

    #[test]
    fn the_pattern_follows_the_fields() {
        let list = Request {
            file: FileReference { persistent: 1, volatile: 2 },
            class: 37,
            flags: flags::RESTART_SCANS,
            pattern: "*".into(),
            output_buffer_length: 0x1_0000,
        };
        let message = request(&list);
        assert_eq!(message[64..72], [33, 0, 37, 1, 0, 0, 0, 0]);
        assert_eq!(message[88..], [96, 0, 2, 0, 0, 0, 1, 0, b'*', 0]);
    }

    #[test]
    fn an_answer_without_its_buffer_is_none() {
        let mut message = response(Smb2Command::QUERY_DIRECTORY);
        message.extend([9, 0, 72, 0, 2, 0, 0, 0, 1, 2]);
        assert_eq!(Response::parse(&message), Some(Response { output: &[1, 2] }));
        assert_eq!(Response::parse(&message[..73]), None);
    }
}

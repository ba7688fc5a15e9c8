//! CHANGE_NOTIFY (MS-SMB2 2.2.35, 2.2.36).

use super::Smb2RequestMessage;
use super::message::message;
use crate::fscc::{FileNotifyInformation, changes};
use crate::smb2::FileReference;

message! {
    request Request: CHANGE_NOTIFY, 32 {
        flags: u16 = 2,
        output_buffer_length: u32 = 4,
        file: FileReference = 8,
        completion_filter: u32 = 24,
    }
}

impl Request {
    /// SMB2_WATCH_TREE: includes the whole subtree.
    pub const WATCH_TREE: u16 = 0x0001;
}

impl Smb2RequestMessage for Request {
    fn expected(&self) -> usize {
        self.output_buffer_length as usize
    }
}

message! {
    response Response<'a>: CHANGE_NOTIFY, 9 {} with {
        /// A list of FILE_NOTIFY_INFORMATION.
        output: &'a [u8] = [u16 @ 2, u32 @ 4, optional],
    }
}

impl<'a> Response<'a> {
    pub fn changes(&self) -> impl Iterator<Item = FileNotifyInformation> + use<'a> {
        changes(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::Smb2Command;

    #[test]
    fn the_filter_follows_the_directory() {
        let file = FileReference { persistent: 1, volatile: 2 };
        let watch = Request { flags: Request::WATCH_TREE, output_buffer_length: 0x1000, file, completion_filter: 0x17 };
        let message = request(&watch);
        assert_eq!(message[64..72], [32, 0, 1, 0, 0, 0x10, 0, 0]);
        assert_eq!(message[88..], [0x17, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn changes_are_a_list() {
        let mut message = response(Smb2Command::CHANGE_NOTIFY);
        message.extend([9, 0, 72, 0, 30, 0, 0, 0]);
        message.extend([16, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0]);
        message.extend([0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, b'b', 0]);
        let changes: Vec<FileNotifyInformation> = Response::parse(&message).unwrap().changes().collect();
        let change = |action, name: &str| FileNotifyInformation { action, name: name.to_owned() };
        assert_eq!(changes, [change(4, "a"), change(5, "b")]);
    }
}

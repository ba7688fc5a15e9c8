//! CLOSE (MS-SMB2 2.2.15, 2.2.16).

use super::Body;
use super::put::Put;
use crate::smb2::{Command, FileReference};

/// Closes an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The open.
    pub file: FileReference,
}

impl Body for Request {
    const COMMAND: Command = Command::CLOSE;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(24);
        out.put_u16(0); // Flags: times and sizes are not asked for
        out.put_u32(0);
        out.put_file(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn the_open_follows_the_flags() {
        let message = request(&Request { file: FileReference { persistent: 1, volatile: 2 } });
        assert_eq!(message[64..], [24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}

//! FLUSH (MS-SMB2 2.2.17).

use super::Body;
use super::put::Put;
use crate::smb2::{Command, FileReference};

/// Asks for what was written to be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The open.
    pub file: FileReference,
}

impl Body for Request {
    const COMMAND: Command = Command::FLUSH;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(24);
        out.put_u16(0);
        out.put_u32(0);
        out.put_file(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn the_open_follows_the_reserved_fields() {
        let message = request(&Request { file: FileReference { persistent: 3, volatile: 4 } });
        assert_eq!(message[12..14], [7, 0]);
        assert_eq!(message[64..], [24, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    }
}

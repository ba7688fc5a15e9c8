//! SMB_COM_FIND_CLOSE2 (MS-CIFS 2.2.4.48): the end of a listing, a command of its own.

use super::super::{Request, Writer};
use crate::smb1::Command;

/// Ends a listing before it is through; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindClose2 {
    /// The search.
    pub sid: u16,
}

impl Request for FindClose2 {
    const COMMAND: Command = Command::FIND_CLOSE2;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.sid);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::emitted;
    use super::*;

    #[test]
    fn one_word() {
        assert_eq!(emitted(&FindClose2 { sid: 0x1234 }), [1, 0x34, 0x12, 0, 0]);
    }
}

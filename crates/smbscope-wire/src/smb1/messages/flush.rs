//! SMB_COM_FLUSH (MS-CIFS 2.2.4.6).

use super::super::Command;
use super::{Request, Writer};

/// Asks for what was written to be on disk; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flush {
    /// The open; 0xffff for all of the process.
    pub fid: u16,
}

impl Request for Flush {
    const COMMAND: Command = Command::FLUSH;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.fid);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn one_word() {
        assert_eq!(emitted(&Flush { fid: 0x1234 }), [1, 0x34, 0x12, 0, 0]);
    }
}

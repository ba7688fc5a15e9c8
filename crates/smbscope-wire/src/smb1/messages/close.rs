//! SMB_COM_CLOSE (MS-CIFS 2.2.4.5).

use super::super::Command;
use super::{Request, Writer};

/// Closes a file and leaves its time of last write to the server; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    /// The open.
    pub fid: u16,
}

impl Request for Close {
    const COMMAND: Command = Command::CLOSE;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.fid);
        writer.u32(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn the_time_of_last_write_is_left_to_the_server() {
        assert_eq!(emitted(&Close { fid: 0x1234 }), [3, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    }
}

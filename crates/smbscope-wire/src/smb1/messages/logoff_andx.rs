//! SMB_COM_LOGOFF_ANDX (MS-CIFS 2.2.4.54).

use super::super::Command;
use super::{Request, Writer};

/// Ends the session that the header names; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogoffAndx;

impl Request for LogoffAndx {
    const COMMAND: Command = Command::LOGOFF_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn two_words_and_no_data() {
        assert_eq!(emitted(&LogoffAndx), [2, 0xff, 0, 0, 0, 0, 0]);
    }
}

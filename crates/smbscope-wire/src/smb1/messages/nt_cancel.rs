//! SMB_COM_NT_CANCEL (MS-CIFS 2.2.4.65).

use super::super::Command;
use super::{Request, Writer};

/// Takes back the request that has the same TID, PID, UID and MID; it has no answer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtCancel;

impl Request for NtCancel {
    const COMMAND: Command = Command::NT_CANCEL;

    fn body(&self, _writer: &mut Writer<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn no_words_and_no_data() {
        assert_eq!(emitted(&NtCancel), [0, 0, 0]);
    }
}

//! SMB_COM_TREE_DISCONNECT (MS-CIFS 2.2.4.51).

use super::super::Command;
use super::{Request, Writer};

/// Ends the tree connect that the header names; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeDisconnect;

impl Request for TreeDisconnect {
    const COMMAND: Command = Command::TREE_DISCONNECT;

    fn body(&self, _writer: &mut Writer<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn no_words_and_no_data() {
        assert_eq!(emitted(&TreeDisconnect), [0, 0, 0]);
    }
}

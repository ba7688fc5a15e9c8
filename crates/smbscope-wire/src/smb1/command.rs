//! SMB1 command codes (MS-CIFS 2.2.2.1).

use std::fmt;

/// An SMB_COM_* code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Command(pub u8);

impl Command {
    /// SMB_COM_NO_ANDX_COMMAND: the end of an AndX chain.
    pub const NO_ANDX: Command = Command(0xff);
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

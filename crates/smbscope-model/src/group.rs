//! The operation groups of Swartz (1997, table 1), extended to all of SMB1 and SMB2/3.

use crate::named;
use serde::{Deserialize, Serialize};

named! {
    /// Where an exchange is counted. `Attributes`, `Directory` and `Locking` together are the paper's *Other*.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GroupName"))]
    pub enum CommandGroup {
        /// Create, open and close.
        #[serde(rename = "Open/Close")]
        OpenClose = "Open/Close",
        /// Metadata of files, volumes and security.
        Attributes = "Attributes",
        /// Listing, making, renaming and deleting.
        Directory = "Directory",
        /// Byte-range locks that do not wait.
        Locking = "Locking",
        /// Data from the server.
        Read = "Read",
        /// Data to the server, and flush.
        Write = "Write",
        /// Negotiate, session setup, tree connect, logoff, echo.
        Session = "Session",
        /// IOCTL, named-pipe transactions.
        Control = "Control",
        /// Expected waits: change notify, blocking locks, named-pipe reads, oplock breaks. Kept out of every headline.
        Waiting = "Waiting",
        /// Frames that could not be looked into.
        Encrypted = "Encrypted",
    }
}

impl CommandGroup {
    /// The groups that the paper adds up as *Other*.
    pub const OTHER: [CommandGroup; 3] = [CommandGroup::Attributes, CommandGroup::Directory, CommandGroup::Locking];

    /// Whether the group belongs to the paper's *Other*.
    pub fn is_other(self) -> bool {
        CommandGroup::OTHER.contains(&self)
    }

    /// Whether the group's times are of someone waiting for the server to do work, so that they may enter a
    /// headline over all commands.
    pub fn in_headline(self) -> bool {
        !matches!(self, CommandGroup::Waiting | CommandGroup::Encrypted)
    }
}

//! Operation groups of Swartz (1997, table 1), extended to all of SMB1 and SMB2/3.

use crate::named;
use serde::{Deserialize, Serialize};

named! {
    /// Operation group of a command. `Attributes`, `Directory` and `Locking` together are the paper's *Other*.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GroupName"))]
    pub enum CommandGroup {
        /// Create, open and close.
        #[serde(rename = "Open/Close")]
        OpenClose = "Open/Close",
        /// Metadata of files, volumes and security.
        Attributes = "Attributes",
        /// List, create, rename and delete.
        Directory = "Directory",
        /// Non-blocking byte-range locks.
        Locking = "Locking",
        /// Data from the server.
        Read = "Read",
        /// Data to the server, and flush.
        Write = "Write",
        /// Negotiate, session setup, tree connect, logoff, echo.
        Session = "Session",
        /// IOCTL and named-pipe transactions.
        Control = "Control",
        /// Expected waits: change notify, blocking locks, named-pipe reads, oplock breaks. Excluded from every
        /// headline figure.
        Waiting = "Waiting",
        /// Encrypted frames, whose command is unknown.
        Encrypted = "Encrypted",
    }
}

impl CommandGroup {
    /// Groups that the paper adds up as *Other*.
    pub const OTHER: [CommandGroup; 3] = [CommandGroup::Attributes, CommandGroup::Directory, CommandGroup::Locking];

    pub fn is_other(self) -> bool {
        CommandGroup::OTHER.contains(&self)
    }

    /// Returns true if the group's times belong in headline figures over all commands: the client was waiting for work
    /// of the server.
    pub fn in_headline(self) -> bool {
        !matches!(self, CommandGroup::Waiting | CommandGroup::Encrypted)
    }
}

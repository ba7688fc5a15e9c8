//! The operation groups of Swartz (1997, table 1), extended to all of SMB1 and SMB2/3.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where an exchange is counted. `Attributes`, `Directory` and `Locking` together are the paper's *Other*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GroupName"))]
pub enum Group {
    /// Create, open and close.
    #[serde(rename = "Open/Close")]
    OpenClose,
    /// Metadata of files, volumes and security.
    Attributes,
    /// Listing, making, renaming and deleting.
    Directory,
    /// Byte-range locks that do not wait.
    Locking,
    /// Data from the server.
    Read,
    /// Data to the server, and flush.
    Write,
    /// Negotiate, session setup, tree connect, logoff, echo.
    Session,
    /// IOCTL, named-pipe transactions.
    Control,
    /// Expected waits: change notify, blocking locks, named-pipe reads, oplock breaks. Kept out of every headline.
    Waiting,
    /// Frames that could not be looked into.
    Encrypted,
}

impl Group {
    /// Every group in the order of the report.
    pub const ALL: [Group; 10] = [
        Group::OpenClose,
        Group::Attributes,
        Group::Directory,
        Group::Locking,
        Group::Read,
        Group::Write,
        Group::Session,
        Group::Control,
        Group::Waiting,
        Group::Encrypted,
    ];

    /// The groups that the paper adds up as *Other*.
    pub const OTHER: [Group; 3] = [Group::Attributes, Group::Directory, Group::Locking];

    /// Whether the group belongs to the paper's *Other*.
    pub fn is_other(self) -> bool {
        Group::OTHER.contains(&self)
    }

    /// Whether the group's times are of someone waiting for the server to do work, so that they may enter a
    /// headline over all commands.
    pub fn in_headline(self) -> bool {
        !matches!(self, Group::Waiting | Group::Encrypted)
    }

    /// The group's name.
    pub fn name(self) -> &'static str {
        match self {
            Group::OpenClose => "Open/Close",
            Group::Attributes => "Attributes",
            Group::Directory => "Directory",
            Group::Locking => "Locking",
            Group::Read => "Read",
            Group::Write => "Write",
            Group::Session => "Session",
            Group::Control => "Control",
            Group::Waiting => "Waiting",
            Group::Encrypted => "Encrypted",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

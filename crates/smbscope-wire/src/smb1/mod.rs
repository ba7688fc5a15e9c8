//! SMB1: MS-CIFS and MS-SMB.

mod command;

pub use command::Command;

//! SMB2 and SMB3: MS-SMB2.

mod command;

pub use command::Command;

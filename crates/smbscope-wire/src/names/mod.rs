//! Names of numeric codes: open enumerations, in which an unknown value is legal and prints as a number.
//!
//! Each table lists `NAME = value` for one macro. Command tables are in [`smb1`](crate::smb1) and
//! [`smb2`](crate::smb2), status codes in [`status`](crate::status).

mod fsctl;
mod info_level;
mod open_enum;
mod smb1_subcommand;

pub use fsctl::Fsctl;
pub use info_level::InfoLevel;
pub(crate) use open_enum::open_enum;
pub use smb1_subcommand::{NtTransact, Trans2, Transaction};

#[cfg(test)]
mod tests;

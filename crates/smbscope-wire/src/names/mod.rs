//! Names of codes on the wire: open enumerations, where an unknown value is legal and prints as a number.
//!
//! A table here is data: `NAME = value` lines handed to one macro. The commands' own tables stand with their
//! protocol (`smb1::Command`, `smb2::Command`), status codes in [`status`](crate::status).

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

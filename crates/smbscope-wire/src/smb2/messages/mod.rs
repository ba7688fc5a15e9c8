//! Complete messages in both directions.
//!
//! A message is appended to a buffer that ends with its header, because offset fields are relative to the header.
//! `parse` takes a message from its header on, borrows from it, and returns `None` if it is shorter than its fields
//! state. For possibly truncated messages, each field also has a function that reads it alone.

mod connection;
mod control;
pub mod create_context;
pub mod error;
mod files;
mod info;
mod message;
pub mod negotiate_context;

#[cfg(test)]
mod tests;

pub use connection::{negotiate, plain, session_setup, tree_connect};
pub use control::{copy_chunk, ioctl, network_interface, validate_negotiate};
pub use files::{close, create, flush, lock, oplock_break, read, write};
pub use info::{change_notify, query_directory, query_info, set_info};
pub use message::Smb2Message;

use super::Smb2Command;

pub trait Smb2RequestMessage: Smb2Message {
    /// Returns the number of payload bytes, which a credit charge counts (MS-SMB2 3.1.5.2).
    fn payload(&self) -> usize {
        0
    }

    /// Returns the maximum size of the response, which a credit charge also counts.
    fn expected(&self) -> usize {
        0
    }
}

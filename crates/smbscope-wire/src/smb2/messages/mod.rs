//! Complete messages in both directions.
//!
//! A message is appended to a buffer that ends with its header, because offset fields are relative to the header.
//! `parse` takes a message from its header on, borrows from it, and returns `None` if it is shorter than its fields
//! state. For possibly truncated messages, each field also has a function that reads it alone.

pub mod change_notify;
pub mod close;
pub mod copy_chunk;
pub mod create;
pub mod create_context;
pub mod error;
pub mod flush;
pub mod ioctl;
pub mod lock;
mod message;
pub mod negotiate;
pub mod negotiate_context;
pub mod network_interface;
pub mod oplock_break;
pub mod plain;
pub mod query_directory;
pub mod query_info;
pub mod read;
pub mod session_setup;
pub mod set_info;
pub mod tree_connect;
pub mod validate_negotiate;
pub mod write;

#[cfg(test)]
mod tests;

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

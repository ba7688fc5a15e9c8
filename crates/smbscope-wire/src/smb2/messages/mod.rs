//! Whole messages, in both directions; one file a command, with its request and its response.
//!
//! A message is appended to a buffer whose last 64 bytes are its header, so that offset fields, which count from the
//! header, are known. It is read from its header on, and borrows what it can; `None` says that there is less than the
//! fields promise. Of a message that may be cut each field can be read alone.

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

/// A request that a client sends.
pub trait Smb2RequestMessage: Smb2Message {
    /// Bytes of data that go with the request, beyond its fields: what a credit charge counts (MS-SMB2 3.1.5.2).
    fn payload(&self) -> usize {
        0
    }

    /// The largest answer that it asks for: the other thing that a credit charge counts.
    fn expected(&self) -> usize {
        0
    }
}

//! Whole messages, for a client: requests to bytes, responses from bytes; one file a command.
//!
//! A request is appended to a buffer whose last 64 bytes are its header, so that offset fields, which count from the
//! header, are known. A response is read from its header on, and borrows what it can; `None` says that the server sent
//! less than the fields promise.

pub mod change_notify;
pub mod close;
pub mod copy_chunk;
pub mod create;
pub mod create_context;
pub mod directory;
pub mod error;
pub mod flush;
pub mod ioctl;
pub mod lock;
pub mod negotiate;
pub mod negotiate_context;
pub mod network_interface;
pub mod oplock_break;
pub mod plain;
mod put;
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

use super::{Command, Header};
use crate::bytes::{u16_at, u32_at};

/// What follows the header of a request.
pub trait Body {
    /// The command that the header names.
    const COMMAND: Command;

    /// Appends the body to a buffer that ends with the header.
    fn emit(&self, out: &mut Vec<u8>);

    /// Bytes of data that go with the request, beyond its fields: what a credit charge counts (MS-SMB2 3.1.5.2).
    fn payload(&self) -> usize {
        0
    }

    /// The largest answer that it asks for: the other thing that a credit charge counts.
    fn expected(&self) -> usize {
        0
    }
}

/// The bytes that an offset (from the header on) and a length name.
fn buffer(message: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    if length == 0 {
        return Some(&[]);
    }
    message.get(offset..offset.checked_add(length)?)
}

/// The output buffer of QUERY_DIRECTORY, CHANGE_NOTIFY and QUERY_INFO responses, which have the same fields
/// (MS-SMB2 2.2.34, 2.2.36, 2.2.38).
fn output_buffer(message: &[u8]) -> Option<&[u8]> {
    let at = Header::LENGTH;
    if u16_at(message, at)? != 9 {
        return None;
    }
    buffer(message, u16_at(message, at + 2)?.into(), u32_at(message, at + 4)? as usize)
}

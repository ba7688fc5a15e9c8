//! Complete messages in both directions.
//!
//! A message is appended to a buffer that ends with its header, because offset fields are relative to the header.
//! `parse` takes a message from its header on, borrows from it, and returns `None` if it is shorter than its fields
//! state. For possibly truncated messages, each field also has a function that reads it alone.

#[macro_use]
mod message;

mod connection;
mod control;
pub mod create_context;
mod files;
mod info;
pub mod negotiate_context;

#[cfg(test)]
mod tests;

pub use connection::*;
pub use control::*;
pub use files::*;
pub use info::*;
pub use message::Smb2Message;

use super::view::RESPONSE_HEAD;
use super::{Smb2Header, Smb2Request, Smb2Response};
use crate::RequestDetail;
use crate::kept::RetainedRanges;

/// Request of a command, with everything that the analysis and slim copies do with a possibly truncated one. The
/// functions take a message from its header on.
pub trait Smb2RequestMessage: Smb2Message {
    /// End of the bytes that [`Self::view`] reads of every request, which a slim copy retains.
    const PARSED: usize = Smb2Header::LENGTH;

    /// Returns the number of payload bytes, which a credit charge counts (MS-SMB2 3.1.5.2).
    fn payload(&self) -> usize {
        0
    }

    /// Returns the maximum size of the response, which a credit charge also counts.
    fn expected(&self) -> usize {
        0
    }

    /// Returns the target of the request. `None` if it has none or is truncated.
    fn view(_message: &[u8]) -> Option<Smb2Request> {
        None
    }

    /// Returns the number of bytes that [`Self::view`] needs. May grow with `prefix`, which holds at least the header.
    fn needed(_prefix: &[u8]) -> usize {
        Self::PARSED
    }

    fn detail(_message: &[u8]) -> Option<RequestDetail> {
        None
    }

    /// Returns the number of bytes that [`Self::detail`] needs beyond [`Self::needed`], or less.
    fn detail_needed(_prefix: &[u8]) -> usize {
        0
    }

    /// Adds the ranges that a slim copy retains.
    fn retain(message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
        kept.field(Smb2Header::LENGTH..Self::PARSED);
        Self::retain_buffers(message, kept)
    }

    /// Adds the ranges after [`Self::PARSED`].
    fn retain_buffers(_message: &[u8], _kept: &mut RetainedRanges) -> Option<()> {
        Some(())
    }
}

/// Response to a command, like [`Smb2RequestMessage`].
pub trait Smb2ResponseMessage {
    /// Returns the fields that later messages refer to.
    fn view(_message: &[u8]) -> Option<Smb2Response> {
        None
    }

    fn needed(_prefix: &[u8]) -> usize {
        RESPONSE_HEAD
    }

    /// Adds the ranges that a slim copy retains besides StructureSize and the fields next to it.
    fn retain(_message: &[u8], _kept: &mut RetainedRanges) -> Option<()> {
        Some(())
    }
}

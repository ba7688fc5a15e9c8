//! SMB2 and SMB3: MS-SMB2.

mod bodies;
mod command;
mod header;
pub mod messages;
mod negotiate;
mod transform;

pub use bodies::{FileReference, LockElement, Request, Response};
pub use command::Command;
pub use header::{Header, flags};
pub use negotiate::{NegotiateRequest, NegotiateResponse};
pub use transform::TransformHeader;

/// First four bytes of a message: 0xFE 'S' 'M' 'B'.
pub const PROTOCOL_ID: [u8; 4] = [0xfe, b'S', b'M', b'B'];
/// First four bytes of an encrypted message: 0xFD 'S' 'M' 'B'.
pub const TRANSFORM_ID: [u8; 4] = [0xfd, b'S', b'M', b'B'];
/// First four bytes of a compressed message: 0xFC 'S' 'M' 'B'.
pub const COMPRESSION_ID: [u8; 4] = [0xfc, b'S', b'M', b'B'];

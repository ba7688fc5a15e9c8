//! SMB2 and SMB3 (MS-SMB2).
//!
//! [`Smb2Header`] parses the packet header, [`Smb2Request`] and [`Smb2Response`] the parts of possibly truncated
//! messages that the analysis needs; [`messages`] holds complete messages in both directions.

mod command;
mod header;
pub mod messages;
mod offers;
mod view;

pub use command::{Smb2Command, detail, detail_needed, kept};
pub use header::{FileReference, Nonce, Smb2Header, TransformHeader, flags};
pub use messages::lock::LockElement;
pub use offers::{Smb2AlgorithmIds, Smb2ClientOffer, Smb2ServerOffer};
pub use view::{Created, GrantedLease, Smb2Request, Smb2Response};

pub const PROTOCOL_ID: [u8; 4] = [0xfe, b'S', b'M', b'B'];
pub const TRANSFORM_ID: [u8; 4] = [0xfd, b'S', b'M', b'B'];
pub const COMPRESSION_ID: [u8; 4] = [0xfc, b'S', b'M', b'B'];

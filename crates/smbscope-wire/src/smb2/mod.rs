//! SMB2 and SMB3 (MS-SMB2).
//!
//! [`Smb2Header`] parses the packet header, [`Smb2Request`] and [`Smb2Response`] the parts of possibly truncated
//! messages that the analysis needs; [`messages`] holds complete messages in both directions.

mod header;
mod kept;
pub mod messages;
mod offers;
mod view;

pub use header::{FileReference, Nonce, Smb2Command, Smb2Header, TransformHeader, flags};
pub use kept::kept;
pub use messages::lock::LockElement;
pub use offers::{Smb2AlgorithmIds, Smb2ClientOffer, Smb2ServerOffer};
pub use view::{Created, GrantedLease, Smb2Request, Smb2Response, detail, detail_needed};

pub const PROTOCOL_ID: [u8; 4] = [0xfe, b'S', b'M', b'B'];
pub const TRANSFORM_ID: [u8; 4] = [0xfd, b'S', b'M', b'B'];
pub const COMPRESSION_ID: [u8; 4] = [0xfc, b'S', b'M', b'B'];

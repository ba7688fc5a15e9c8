//! SMB2 and SMB3 (MS-SMB2).
//!
//! [`Smb2Header`] parses the packet header, [`Smb2Request`] and [`Smb2Response`] the parts of possibly truncated
//! messages that the analysis needs; [`messages`] holds complete messages in both directions.

mod dispatch;
mod header;
pub mod messages;
mod view;

pub use dispatch::{detail, detail_needed, kept};
pub use header::{DECRYPTED_MARK, Nonce, Smb2Command, Smb2Header, TransformHeader, decrypted_part, flags, is_marked};
pub use view::{
    Created, FileReference, GrantedLease, LockElement, NetworkInterfaceInfo, Smb2AlgorithmIds, Smb2ClientOffer,
    Smb2Request, Smb2Response, Smb2ServerOffer,
};

pub const PROTOCOL_ID: [u8; 4] = [0xfe, b'S', b'M', b'B'];
pub const TRANSFORM_ID: [u8; 4] = [0xfd, b'S', b'M', b'B'];
pub const COMPRESSION_ID: [u8; 4] = [0xfc, b'S', b'M', b'B'];

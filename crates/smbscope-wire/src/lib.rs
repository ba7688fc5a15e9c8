//! SMB wire formats: framing, SMB1 (MS-CIFS, MS-SMB), SMB2/3 (MS-SMB2), transform and compression headers, security
//! tokens and status codes.
//!
//! Pure functions over byte slices, without I/O, clock or state. Views borrow their input and accept truncated
//! messages, since a snap length may cut off any tail. Start with [`smb2::Smb2Header`] and [`smb2::Smb2Request`], or
//! their SMB1 counterparts.

#![forbid(unsafe_code)]

pub mod bytes;
pub mod codec;
pub mod compression;
pub mod fscc;
pub mod kept;
pub mod names;
pub mod nbss;
pub mod security;
pub mod smb1;
pub mod smb2;
pub mod status;

pub use bytes::CapturedName;
pub use kept::RequestDetail;

//! Bytes to SMB messages: framing, SMB1 (MS-CIFS, MS-SMB), SMB2/3 (MS-SMB2), transform and compression headers,
//! security tokens and status codes.
//!
//! No I/O, no clock, no state. Views borrow the bytes they were given and tolerate a cut-off tail: a snap length
//! leaves headers incomplete, and what is there still counts.

#![forbid(unsafe_code)]

pub mod bytes;
pub mod codec;
pub mod compression;
mod detail;
pub mod fscc;
pub mod kept;
mod name;
pub mod names;
pub mod nbss;
pub mod security;
pub mod smb1;
pub mod smb2;
pub mod status;

pub use detail::RequestDetail;
pub use name::CapturedName;

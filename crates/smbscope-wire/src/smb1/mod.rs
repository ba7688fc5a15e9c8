//! SMB1 (MS-CIFS and MS-SMB).
//!
//! [`Smb1Header`] parses the header and [`blocks`] splits an AndX chain; [`Smb1Request`] and [`Smb1Response`] hold the
//! parts of possibly truncated messages that the analysis needs, and [`messages`] complete messages in both
//! directions.

mod header;
mod kept;
pub mod messages;
mod transaction;
mod view;

pub use header::{Block, blocks};
pub use header::{Smb1Command, Smb1Header, flags, flags2};
pub use kept::{detail, detail_needed, kept};
pub use transaction::{TransactionKind, TransactionProgress, TransactionRequest};
pub use view::{Smb1NegotiateResult, Smb1OpenResult, Smb1Request, Smb1Response, needed};

pub const PROTOCOL_ID: [u8; 4] = [0xff, b'S', b'M', b'B'];

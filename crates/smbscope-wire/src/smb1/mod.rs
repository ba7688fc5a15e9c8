//! SMB1: MS-CIFS and MS-SMB.

mod block;
mod command;
mod detail;
mod header;
mod kept;
pub mod messages;
mod request;
mod response;
mod transaction;

pub use block::{Block, blocks, needed};
pub use command::Smb1Command;
pub use detail::{detail, detail_needed};
pub use header::{Smb1Header, flags, flags2};
pub use kept::kept;
pub use request::Smb1Request;
pub use response::{Smb1NegotiateResult, Smb1OpenResult, Smb1Response};
pub use transaction::{TransactionKind, TransactionProgress, TransactionRequest};

/// First four bytes of a message: 0xFF 'S' 'M' 'B'.
pub const PROTOCOL_ID: [u8; 4] = [0xff, b'S', b'M', b'B'];

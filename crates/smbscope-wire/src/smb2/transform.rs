//! SMB2 TRANSFORM_HEADER (MS-SMB2 2.2.41): the cover of an encrypted message.

use crate::bytes::{u32_at, u64_at};

/// The readable part of an encrypted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformHeader {
    /// Length of the message inside.
    pub original_size: Option<u32>,
    /// The session whose key encrypts it.
    pub session_id: Option<u64>,
}

impl TransformHeader {
    /// Length of the header.
    pub const LENGTH: usize = 52;
    /// Signature and nonce, which tell nothing.
    pub const SEAL: std::ops::Range<usize> = 4..36;

    /// Reads what a snap length left of the header.
    pub fn parse(message: &[u8]) -> Option<TransformHeader> {
        message
            .starts_with(&super::TRANSFORM_ID)
            .then(|| TransformHeader { original_size: u32_at(message, 36), session_id: u64_at(message, 44) })
    }
}

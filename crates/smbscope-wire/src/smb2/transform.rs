//! TRANSFORM_HEADER, the unencrypted header of an encrypted message (MS-SMB2 2.2.41).

use crate::bytes::{u32_at, u64_at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformHeader {
    pub nonce: Option<Nonce>,
    /// Length of the message inside.
    pub original_size: Option<u32>,
    /// Session whose key encrypts the message.
    pub session_id: Option<u64>,
}

/// Nonce, which must be unique for a key. Some senders use a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce {
    /// First half, in which Samba counts the messages encrypted with the key.
    pub count: u64,
    /// Second half, which Samba chooses once per key.
    pub salt: u64,
}

impl TransformHeader {
    pub const LENGTH: usize = 52;
    pub const SIGNATURE: std::ops::Range<usize> = 4..20;

    /// Parses a possibly truncated header.
    pub fn parse(message: &[u8]) -> Option<TransformHeader> {
        message.starts_with(&super::TRANSFORM_ID).then(|| TransformHeader {
            nonce: u64_at(message, 20).zip(u64_at(message, 28)).map(|(count, salt)| Nonce { count, salt }),
            original_size: u32_at(message, 36),
            session_id: u64_at(message, 44),
        })
    }
}

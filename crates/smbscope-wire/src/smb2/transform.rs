//! SMB2 TRANSFORM_HEADER (MS-SMB2 2.2.41): the cover of an encrypted message.

use crate::bytes::{u32_at, u64_at};

/// The readable part of an encrypted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformHeader {
    /// Nonce of the cipher.
    pub nonce: Option<Nonce>,
    /// Length of the message inside.
    pub original_size: Option<u32>,
    /// The session whose key encrypts it.
    pub session_id: Option<u64>,
}

/// Nonce of an encrypted message. The specification only asks that no key sees one twice; some senders count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce {
    /// The first half, in which Samba counts the messages that it encrypts with a key.
    pub count: u64,
    /// The second half, which Samba draws once for a key.
    pub salt: u64,
}

impl TransformHeader {
    /// Length of the header.
    pub const LENGTH: usize = 52;
    /// Signature, which tells nothing.
    pub const SIGNATURE: std::ops::Range<usize> = 4..20;

    /// Reads what a snap length left of the header.
    pub fn parse(message: &[u8]) -> Option<TransformHeader> {
        message.starts_with(&super::TRANSFORM_ID).then(|| TransformHeader {
            nonce: u64_at(message, 20).zip(u64_at(message, 28)).map(|(count, salt)| Nonce { count, salt }),
            original_size: u32_at(message, 36),
            session_id: u64_at(message, 44),
        })
    }
}

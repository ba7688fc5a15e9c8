//! SMB2 NEGOTIATE (MS-SMB2 2.2.3, 2.2.4).

use crate::bytes::{u16_at, u32_at};

/// What a client offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiateRequest {
    /// Dialect revisions.
    pub dialects: Vec<u16>,
}

impl NegotiateRequest {
    /// Reads the message from its header on.
    pub fn parse(message: &[u8]) -> Option<NegotiateRequest> {
        let count = usize::from(u16_at(message, 66)?).min(64);
        Some(NegotiateRequest { dialects: (0..count).map_while(|i| u16_at(message, 100 + 2 * i)).collect() })
    }
}

/// What the server chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiateResponse {
    /// The dialect revision; 0x02ff asks for another NEGOTIATE.
    pub dialect: u16,
    /// Signing is required.
    pub signing_required: bool,
    /// Chained compression was agreed on.
    pub chained_compression: bool,
}

/// SMB2_COMPRESSION_CAPABILITIES (MS-SMB2 2.2.3.1.3).
const COMPRESSION_CAPABILITIES: u16 = 3;

impl NegotiateResponse {
    /// Reads the message from its header on.
    pub fn parse(message: &[u8]) -> Option<NegotiateResponse> {
        let dialect = u16_at(message, 68)?;
        Some(NegotiateResponse {
            dialect,
            signing_required: u16_at(message, 66)? & 2 != 0,
            chained_compression: dialect == 0x0311 && chained_compression(message).unwrap_or(false),
        })
    }
}

/// Walks the negotiate contexts to the compression capabilities.
fn chained_compression(message: &[u8]) -> Option<bool> {
    let count = u16_at(message, 70)?;
    let mut offset = u32_at(message, 124)? as usize;
    for _ in 0..count.min(64) {
        let length = usize::from(u16_at(message, offset.checked_add(2)?)?);
        if u16_at(message, offset)? == COMPRESSION_CAPABILITIES {
            return Some(u32_at(message, offset.checked_add(12)?)? & 1 != 0);
        }
        offset = offset.checked_add(8 + length)?.checked_next_multiple_of(8)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::header;
    use super::*;

    #[test]
    fn contexts_are_walked_to_the_compression_capabilities() {
        let mut message = header(0, 1);
        message.extend([65, 0, 3, 0, 0x11, 3, 2, 0]);
        message.resize(124, 0);
        message.extend(128u32.to_le_bytes());
        // One context of type 1 and 6 bytes of data, padded to 8; then the compression capabilities.
        message.extend([1, 0, 6, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 0, 0]);
        message.extend([3, 0, 10, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
        let response = NegotiateResponse::parse(&message).unwrap();
        assert_eq!(response, NegotiateResponse { dialect: 0x311, signing_required: true, chained_compression: true });
    }
}

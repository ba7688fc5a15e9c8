//! Target for compressed SMB2 messages: both layouts of the transform header, and every decompressor.

use smbscope_wire::compression::{CompressedFrame, MAX_RECOVERED, looks_chained, parse_as, recover_prefix};
use smbscope_wire::smb2::COMPRESSION_ID;

/// Parses a frame in both layouts. Other first bytes than the protocol id are replaced.
pub fn compression(data: &[u8]) {
    let frame = [&COMPRESSION_ID, data.get(4..).unwrap_or_default()].concat();
    looks_chained(&frame);
    for chained in [false, true] {
        let Ok(parsed) = parse_as(&frame, chained) else { continue };
        parsed.original_len();
        if let CompressedFrame::Chained { payloads, .. } = parsed {
            let mut held = 0;
            for payload in payloads.flatten() {
                payload.original_len();
                held += payload.data.len();
            }
            assert!(held <= frame.len(), "payloads hold more than the frame");
        }
        let mut before: Option<Vec<u8>> = None;
        for limit in [1, 64, 4096, 256 * 1024] {
            let recovered = recover_prefix(&frame, chained, limit).ok();
            let length = recovered.as_ref().map_or(0, Vec::len);
            assert!(length <= limit.min(MAX_RECOVERED), "{length} bytes where {limit} were asked for");
            // A lower limit may avoid damage that a higher one runs into.
            if let (Some(less), Some(more)) = (&before, &recovered) {
                assert!(more.starts_with(less), "a higher limit gives other bytes");
            }
            before = recovered;
        }
    }
}

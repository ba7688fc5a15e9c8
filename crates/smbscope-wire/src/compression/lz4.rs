//! LZ4 block format (MS-SMB2 2.2.3.1.3; LZ4 Block Format Description).

use super::window::{DecompressionEnd, DecompressionWindow};
use crate::bytes;

pub(super) fn decompress(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    let mut at = 0;
    while at < data.len() {
        window.check_room()?;
        let token = data[at];
        at += 1;
        let count = length(data, &mut at, token >> 4)?;
        let literals = &data[at..data.len().min(at.saturating_add(count))];
        window.literals(literals)?;
        if literals.len() < count {
            return Err(DecompressionEnd::Truncated);
        }
        at += count;
        // The last sequence has only literals.
        if at == data.len() {
            return Ok(());
        }
        let offset = bytes::u16_at(data, at).ok_or(DecompressionEnd::Truncated)?;
        at += 2;
        let match_length = length(data, &mut at, token & 0x0f)?.saturating_add(4);
        window.copy(offset.into(), match_length)?;
    }
    Ok(())
}

/// Reads a length of four bits, which 15 extends by bytes up to the first that is not 255.
fn length(data: &[u8], at: &mut usize, nibble: u8) -> Result<usize, DecompressionEnd> {
    let mut length = usize::from(nibble);
    if nibble == 0x0f {
        loop {
            let more = *data.get(*at).ok_or(DecompressionEnd::Truncated)?;
            *at += 1;
            length = length.saturating_add(more.into());
            if more != 0xff {
                break;
            }
        }
    }
    Ok(length)
}

//! LZNT1 (MS-XCA 2.5): independent chunks of 4096 bytes of output.

use super::window::{DecompressionEnd, DecompressionWindow};
use crate::bytes;

/// Maximum output of a compressed chunk.
const CHUNK: usize = 4096;

pub(super) fn decompress(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    let mut at = 0;
    while at < data.len() {
        window.check_room()?;
        let header = bytes::u16_at(data, at).ok_or(DecompressionEnd::Truncated)?;
        at += 2;
        if header == 0 {
            return Ok(());
        }
        if header >> 12 & 7 != 3 {
            return Err(DecompressionEnd::Corrupt);
        }
        let end = at + usize::from(header & 0x0fff) + 1;
        let chunk = &data[at..data.len().min(end)];
        window.restart();
        if header & 0x8000 == 0 {
            window.literals(chunk)?;
        } else {
            decompress_chunk(chunk, end <= data.len(), &mut window)?;
        }
        if end > data.len() {
            return Err(DecompressionEnd::Truncated);
        }
        at = end;
    }
    Ok(())
}

/// Decompresses flag groups: bits of a byte, lowest first, distinguish literals from match words. `whole` is false for
/// a truncated chunk.
fn decompress_chunk(chunk: &[u8], whole: bool, window: &mut DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    let mut at = 0;
    while at < chunk.len() {
        let flags = chunk[at];
        at += 1;
        for bit in 0..8 {
            if at == chunk.len() {
                return Ok(());
            }
            window.check_room()?;
            if flags >> bit & 1 == 0 {
                window.literal(chunk[at])?;
                at += 1;
            } else {
                let unfinished = if whole { DecompressionEnd::Corrupt } else { DecompressionEnd::Truncated };
                let word = bytes::u16_at(chunk, at).ok_or(unfinished)?;
                at += 2;
                let (distance, length) = split(word, window.len());
                window.copy(distance, length)?;
            }
            if window.len() > CHUNK {
                return Err(DecompressionEnd::Corrupt);
            }
        }
    }
    Ok(())
}

/// Splits a match word. The distance has as many bits as it takes to reach the start of the chunk, `written` bytes
/// back, and at least 4.
fn split(word: u16, written: usize) -> (usize, usize) {
    let distance_bits = (usize::BITS - written.saturating_sub(1).leading_zeros()).clamp(4, 12);
    let length_bits = 16 - distance_bits;
    let length = word & ((1 << length_bits) - 1);
    (usize::from(word >> length_bits) + 1, usize::from(length) + 3)
}

//! Compressed SMB2 messages (MS-SMB2 2.2.42): the frame, and the first bytes of the message inside.
//!
//! The analysis needs only headers and the first fields of a message, so [`recover_prefix`] decompresses no more than
//! requested, and works on messages that a snap length truncated.

mod algorithms;
mod frame;
mod lz77_huffman;

pub use frame::{Algorithm, CompressedFrame, Payload, Payloads, looks_chained, parse, parse_as};

use algorithms::{DecompressionEnd, DecompressionWindow};

#[cfg(test)]
mod tests;

/// Bytes of a decompressed message, whatever the caller allows.
pub const MAX_RECOVERED: usize = 1024 * 1024;

/// Reason for recovering nothing from a compressed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    #[error("no compression transform: the message does not begin with 0xFC 'S' 'M' 'B'")]
    NotCompressed,
    #[error("{what} needs {need} bytes at offset {offset}, but only {have} are present")]
    Truncated { what: &'static str, need: usize, have: usize, offset: usize },
    #[error("compression algorithm {0} is unknown")]
    UnknownAlgorithm(Algorithm),
    #[error("the data is not valid {0}")]
    Corrupt(Algorithm),
}

/// Returns up to `limit` bytes of the message inside `frame`, as far as the data is present and valid.
///
/// `chained` selects the layout; see [`looks_chained`]. Memory is bounded by `limit`, which is clamped to
/// [`MAX_RECOVERED`]. Returns an error only if no byte was recovered.
pub fn recover_prefix(frame: &[u8], chained: bool, limit: usize) -> Result<Vec<u8>, CompressionError> {
    let frame = parse_as(frame, chained)?;
    let limit = limit.min(MAX_RECOVERED).min(frame.original_len());
    let mut recovered = Vec::with_capacity(limit);
    let problem = match frame {
        CompressedFrame::Unchained { algorithm, plain, data, .. } => {
            recovered.extend_from_slice(&plain[..plain.len().min(limit)]);
            decompress(algorithm, data, &mut recovered, limit).err()
        }
        CompressedFrame::Chained { payloads, .. } => unpack(payloads, &mut recovered, limit).err(),
    };
    match problem {
        Some(error) if recovered.is_empty() => Err(error),
        _ => Ok(recovered),
    }
}

/// Appends the payloads of a chain up to `limit`, a gap or the end.
fn unpack(payloads: Payloads<'_>, out: &mut Vec<u8>, limit: usize) -> Result<(), CompressionError> {
    for payload in payloads {
        let payload = payload?;
        let end = out.len().saturating_add(payload.original_len());
        decompress(payload.algorithm, payload.data, out, end.min(limit))?;
        // After a short payload, the position of the following ones is unknown.
        if out.len() < end {
            return Ok(());
        }
    }
    Ok(())
}

fn decompress(algorithm: Algorithm, data: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), CompressionError> {
    let window = DecompressionWindow::new(out, limit);
    let outcome = match algorithm {
        Algorithm::NONE => plain(data, window),
        Algorithm::LZNT1 => algorithms::decompress_lznt1(data, window),
        Algorithm::LZ77 => algorithms::decompress_lz77(data, window),
        Algorithm::LZ77_HUFFMAN => lz77_huffman::decompress(data, window),
        Algorithm::PATTERN_V1 => algorithms::decompress_pattern(data, window),
        Algorithm::LZ4 => algorithms::decompress_lz4(data, window),
        _ => return Err(CompressionError::UnknownAlgorithm(algorithm)),
    };
    match outcome {
        Ok(()) | Err(DecompressionEnd::Full | DecompressionEnd::Truncated) => Ok(()),
        Err(DecompressionEnd::Corrupt) => Err(CompressionError::Corrupt(algorithm)),
    }
}

fn plain(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    window.literals(data)
}

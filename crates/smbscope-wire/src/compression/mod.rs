//! Compressed SMB2 messages (MS-SMB2 2.2.42): the frame, and the first bytes of the message inside.
//!
//! An analyser needs the header and the first fields of a message, so [`recover_prefix`] decompresses no more than it
//! was asked for, and makes do with a message whose tail a snap length cut off.

mod frame;
mod lz4;
mod lz77;
mod lz77_huffman;
mod lznt1;
mod pattern;
mod window;

pub use frame::{Algorithm, CompressedFrame, Payload, Payloads, looks_chained, parse, parse_as};

use window::{DecompressionEnd, DecompressionWindow};

#[cfg(test)]
mod tests;

/// No more than this many bytes of a message are ever recovered, whatever the caller's limit.
pub const MAX_RECOVERED: usize = 1024 * 1024;

/// Why nothing of a compressed message could be read (MS-SMB2 2.2.42).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The message does not begin with 0xFC 'S' 'M' 'B'.
    #[error("no compression transform: the message does not begin with 0xFC 'S' 'M' 'B'")]
    NotCompressed,
    /// A header or its data is not all there.
    #[error("{what} needs {need} bytes at offset {offset}, {have} are there")]
    Truncated {
        /// The structure that was being read.
        what: &'static str,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
        have: usize,
        /// Where it begins, from the start of the frame.
        offset: usize,
    },
    /// An algorithm that is not in MS-SMB2 2.2.3.1.3.
    #[error("compression algorithm {0} is unknown")]
    UnknownAlgorithm(Algorithm),
    /// The compressed data contradicts its algorithm before the first byte.
    #[error("the data is not valid {0}")]
    Corrupt(Algorithm),
}

/// The first `limit` bytes of the message inside `frame`, as many as its bytes and their validity allow.
///
/// `chained` says which layout the frame has: [`looks_chained`] reads it off the frame. `limit` bounds memory as well
/// as output, and is itself bounded by [`MAX_RECOVERED`]. An error means that not one byte was recovered.
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

/// Appends the payloads of a chain until `limit`, a gap or the end.
fn unpack(payloads: Payloads<'_>, out: &mut Vec<u8>, limit: usize) -> Result<(), CompressionError> {
    for payload in payloads {
        let payload = payload?;
        let end = out.len().saturating_add(payload.original_len());
        decompress(payload.algorithm, payload.data, out, end.min(limit))?;
        // What follows a payload that came up short would stand at the wrong place.
        if out.len() < end {
            return Ok(());
        }
    }
    Ok(())
}

/// Appends what `data` holds until `out` has `limit` bytes.
fn decompress(algorithm: Algorithm, data: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), CompressionError> {
    let window = DecompressionWindow::new(out, limit);
    let outcome = match algorithm {
        Algorithm::NONE => plain(data, window),
        Algorithm::LZNT1 => lznt1::decompress(data, window),
        Algorithm::LZ77 => lz77::decompress(data, window),
        Algorithm::LZ77_HUFFMAN => lz77_huffman::decompress(data, window),
        Algorithm::PATTERN_V1 => pattern::decompress(data, window),
        Algorithm::LZ4 => lz4::decompress(data, window),
        _ => return Err(CompressionError::UnknownAlgorithm(algorithm)),
    };
    match outcome {
        Ok(()) | Err(DecompressionEnd::Full | DecompressionEnd::Truncated) => Ok(()),
        Err(DecompressionEnd::Corrupt) => Err(CompressionError::Corrupt(algorithm)),
    }
}

/// NONE: the payload is part of the message as it stands.
fn plain(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    window.literals(data)
}

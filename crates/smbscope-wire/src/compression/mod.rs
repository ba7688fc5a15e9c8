//! Compressed SMB2 messages (MS-SMB2 2.2.42): the frame, and the first bytes of the message inside.
//!
//! The analysis needs only headers and the first fields of a message, so [`recover_prefix`] decompresses no more than
//! requested, and works on messages that a snap length truncated.

mod algorithms;

#[cfg(test)]
mod tests;

use crate::{bytes, names::open_enum, smb2::COMPRESSION_ID};
use algorithms::{DecompressionEnd, DecompressionWindow};

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
        Algorithm::LZ77_HUFFMAN => algorithms::decompress_lz77_huffman(data, window),
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

const FLAG_CHAINED: u16 = 0x0001;

/// ProtocolId and OriginalCompressedSegmentSize: the whole chained header, and the beginning of the unchained one.
const CHAINED_HEADER: usize = 8;
const UNCHAINED_HEADER: usize = 16;
const PAYLOAD_HEADER: usize = 8;
const ORIGINAL_PAYLOAD_SIZE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithm(pub u16);

open_enum!(Algorithm, "", "0x{:04x}" {
    NONE = 0x0000;
    LZNT1 = 0x0001;
    LZ77 = 0x0002;
    LZ77_HUFFMAN = 0x0003;
    PATTERN_V1 = 0x0004;
    LZ4 = 0x0005;
});

impl Algorithm {
    /// Returns true if a chained payload begins with its OriginalPayloadSize (MS-SMB2 2.2.42.2.1).
    fn has_original_payload_size(self) -> bool {
        !matches!(self, Algorithm::NONE | Algorithm::PATTERN_V1)
    }
}

/// Compressed message (MS-SMB2 2.2.42), possibly truncated by the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressedFrame<'a> {
    /// Uncompressed bytes followed by compressed ones (MS-SMB2 2.2.42.1).
    Unchained {
        /// Size of `data` after decompression.
        original_compressed_segment_size: u32,
        algorithm: Algorithm,
        /// Size of the uncompressed part.
        offset: u32,
        plain: &'a [u8],
        data: &'a [u8],
    },
    /// Payloads that are compressed individually (MS-SMB2 2.2.42.2).
    Chained {
        /// Total size of the payloads after decompression.
        original_compressed_segment_size: u32,
        payloads: Payloads<'a>,
    },
}

impl CompressedFrame<'_> {
    pub fn original_len(&self) -> usize {
        match *self {
            CompressedFrame::Unchained { original_compressed_segment_size, offset, .. } => {
                (original_compressed_segment_size as usize).saturating_add(offset as usize)
            }
            CompressedFrame::Chained { original_compressed_segment_size, .. } => {
                original_compressed_segment_size as usize
            }
        }
    }
}

/// Payload of a chain (MS-SMB2 2.2.42.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    pub algorithm: Algorithm,
    /// CHAINED in the first payload, zero in the others.
    pub flags: u16,
    /// Bytes after the payload header, including OriginalPayloadSize.
    pub length: u32,
    /// Decompressed size, for algorithms that state it in the header.
    pub original_payload_size: Option<u32>,
    pub data: &'a [u8],
}

impl Payload<'_> {
    pub fn original_len(&self) -> usize {
        match self.algorithm {
            Algorithm::PATTERN_V1 => algorithms::repetitions(self.data).unwrap_or(0),
            _ => self.original_payload_size.unwrap_or(self.length) as usize,
        }
    }
}

/// Returns true if the frame has the chained layout.
///
/// Both layouts have Flags in bytes 10 and 11: a sender sets SMB2_COMPRESSION_FLAG_CHAINED in the chained one and
/// clears it in the other (MS-SMB2 2.2.42.1, 2.2.42.2.1). A connection that negotiated chaining may still carry
/// unchained messages.
pub fn looks_chained(frame: &[u8]) -> bool {
    bytes::u16_at(frame, 10) == Some(FLAG_CHAINED)
}

pub fn parse(frame: &[u8]) -> Result<CompressedFrame<'_>, CompressionError> {
    parse_as(frame, looks_chained(frame))
}

pub fn parse_as(frame: &[u8], chained: bool) -> Result<CompressedFrame<'_>, CompressionError> {
    if !frame.starts_with(&COMPRESSION_ID) {
        return Err(CompressionError::NotCompressed);
    }
    let need = if chained { CHAINED_HEADER } else { UNCHAINED_HEADER };
    let truncated = || CompressionError::Truncated { what: "transform header", need, have: frame.len(), offset: 0 };
    let rest = frame.get(need..).ok_or_else(truncated)?;
    let original_compressed_segment_size = bytes::u32_at(frame, 4).ok_or_else(truncated)?;
    if chained {
        return Ok(CompressedFrame::Chained {
            original_compressed_segment_size,
            payloads: Payloads { frame, at: need },
        });
    }
    let algorithm = Algorithm(bytes::u16_at(frame, 8).ok_or_else(truncated)?);
    let offset = bytes::u32_at(frame, 12).ok_or_else(truncated)?;
    let (plain, data) = rest.split_at(rest.len().min(offset as usize));
    Ok(CompressedFrame::Unchained { original_compressed_segment_size, algorithm, offset, plain, data })
}

/// Iterator over the payloads of a chain. If a payload's header is truncated, the last item is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payloads<'a> {
    frame: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Payloads<'a> {
    type Item = Result<Payload<'a>, CompressionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.frame.len() {
            return None;
        }
        let payload = self.payload_at(self.at);
        self.at = match payload {
            // The end of the captured bytes ends the iteration like the end of the frame.
            Ok(payload) => self.at.saturating_add(PAYLOAD_HEADER).saturating_add(payload.length as usize),
            Err(_) => self.frame.len(),
        };
        Some(payload)
    }
}

impl<'a> Payloads<'a> {
    fn payload_at(&self, offset: usize) -> Result<Payload<'a>, CompressionError> {
        let header = &self.frame[offset..];
        let truncated = |need| CompressionError::Truncated { what: "payload header", need, have: header.len(), offset };
        let missing = || truncated(PAYLOAD_HEADER);
        let algorithm = Algorithm(bytes::u16_at(header, 0).ok_or_else(missing)?);
        let flags = bytes::u16_at(header, 2).ok_or_else(missing)?;
        let length = bytes::u32_at(header, 4).ok_or_else(missing)?;
        let body = &header[PAYLOAD_HEADER..];
        let body = &body[..body.len().min(length as usize)];
        if !algorithm.has_original_payload_size() {
            return Ok(Payload { algorithm, flags, length, original_payload_size: None, data: body });
        }
        let need = PAYLOAD_HEADER + ORIGINAL_PAYLOAD_SIZE;
        let size = bytes::u32_at(body, 0).ok_or_else(|| truncated(need))?;
        let data = &body[ORIGINAL_PAYLOAD_SIZE..];
        Ok(Payload { algorithm, flags, length, original_payload_size: Some(size), data })
    }
}

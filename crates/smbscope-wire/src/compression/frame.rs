//! Compression transform header, unchained and chained (MS-SMB2 2.2.42).

use super::{CompressionError, algorithms};
use crate::{bytes, names::open_enum, smb2::COMPRESSION_ID};

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

//! The compression transform header, unchained and chained (MS-SMB2 2.2.42).

use super::{CompressionError, pattern};
use crate::{bytes, names::open_enum, smb2::COMPRESSION_ID};

/// SMB2_COMPRESSION_FLAG_CHAINED.
const FLAG_CHAINED: u16 = 0x0001;

/// ProtocolId and OriginalCompressedSegmentSize: all of the chained header, and the start of the other.
const CHAINED_HEADER: usize = 8;
/// SMB2_COMPRESSION_TRANSFORM_HEADER_UNCHAINED.
const UNCHAINED_HEADER: usize = 16;
/// SMB2_COMPRESSION_CHAINED_PAYLOAD_HEADER without OriginalPayloadSize.
const PAYLOAD_HEADER: usize = 8;
/// OriginalPayloadSize.
const ORIGINAL_PAYLOAD_SIZE: usize = 4;

/// A compression algorithm (MS-SMB2 2.2.3.1.3).
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
    /// Whether a chained payload begins with its OriginalPayloadSize (MS-SMB2 2.2.42.2.1).
    fn has_original_payload_size(self) -> bool {
        !matches!(self, Algorithm::NONE | Algorithm::PATTERN_V1)
    }
}

/// A compressed message (MS-SMB2 2.2.42), its data cut where the capture cut it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressedFrame<'a> {
    /// SMB2_COMPRESSION_TRANSFORM_HEADER_UNCHAINED (MS-SMB2 2.2.42.1): plain bytes, then compressed ones.
    Unchained {
        /// How many bytes `data` stands for.
        original_compressed_segment_size: u32,
        /// How `data` is compressed.
        algorithm: Algorithm,
        /// How many bytes of the message are not compressed: field Offset.
        offset: u32,
        /// The start of the message, as it is.
        plain: &'a [u8],
        /// The rest of the message, compressed.
        data: &'a [u8],
    },
    /// SMB2_COMPRESSION_TRANSFORM_HEADER_CHAINED (MS-SMB2 2.2.42.2): payloads, each compressed in its own way.
    Chained {
        /// How many bytes the payloads stand for together.
        original_compressed_segment_size: u32,
        /// The payloads in order.
        payloads: Payloads<'a>,
    },
}

impl CompressedFrame<'_> {
    /// The length of the message inside, as the header has it.
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

/// One payload of a chain (MS-SMB2 2.2.42.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    /// How `data` is compressed.
    pub algorithm: Algorithm,
    /// Field Flags: CHAINED in the first payload, none in the others.
    pub flags: u16,
    /// Field Length: bytes after the payload header, OriginalPayloadSize included.
    pub length: u32,
    /// The size of the payload in the message, where the header has it.
    pub original_payload_size: Option<u32>,
    /// The payload, less what the capture cut off.
    pub data: &'a [u8],
}

impl Payload<'_> {
    /// The size of the payload in the message, wherever the algorithm keeps it.
    pub fn original_len(&self) -> usize {
        match self.algorithm {
            Algorithm::PATTERN_V1 => pattern::repetitions(self.data).unwrap_or(0),
            _ => self.original_payload_size.unwrap_or(self.length) as usize,
        }
    }
}

/// Whether the frame has the chained layout.
///
/// Both layouts have their Flags field at the same place, bytes 10 and 11, and a sender sets
/// SMB2_COMPRESSION_FLAG_CHAINED in the one and clears it in the other (MS-SMB2 2.2.42.1, 2.2.42.2.1). Where chaining
/// was negotiated a message may still come unchained.
pub fn looks_chained(frame: &[u8]) -> bool {
    bytes::u16_at(frame, 10) == Some(FLAG_CHAINED)
}

/// Reads the header in the layout that [`looks_chained`] finds (MS-SMB2 2.2.42).
pub fn parse(frame: &[u8]) -> Result<CompressedFrame<'_>, CompressionError> {
    parse_as(frame, looks_chained(frame))
}

/// Reads the header in the layout the caller says it has (MS-SMB2 2.2.42.1 and 2.2.42.2).
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

/// The payloads of a chain; an error, if a payload's header is not all there, is the last item.
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
            // A capture's end stops the walk as the end of the frame would.
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

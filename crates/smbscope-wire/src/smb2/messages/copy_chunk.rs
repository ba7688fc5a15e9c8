//! Server-side copy: FSCTL_SRV_REQUEST_RESUME_KEY and FSCTL_SRV_COPYCHUNK (MS-SMB2 2.2.31.1, 2.2.32.1, 2.2.32.3).

use crate::bytes::{u32_at, u64_at};
use crate::codec::{FixedSizeField, List, Put};

/// Key of an open source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResumeKey(pub [u8; 24]);

impl ResumeKey {
    /// Size of the response: the key and an empty context.
    pub const OUTPUT: u32 = 32;

    /// Parses the output of SRV_REQUEST_RESUME_KEY.
    pub fn parse(output: &[u8]) -> Option<ResumeKey> {
        FixedSizeField::at(output, 0).map(ResumeKey)
    }

    /// Appends the output of SRV_REQUEST_RESUME_KEY.
    pub fn emit(self, out: &mut Vec<u8>) {
        out.put(self.0);
        out.put(0u64); // ContextLength, and a context of nothing
    }
}

/// Range to copy, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SrvCopyChunk {
    pub source_offset: u64,
    pub target_offset: u64,
    pub length: u32,
}

impl FixedSizeField for SrvCopyChunk {
    const LENGTH: usize = 24;

    fn at(bytes: &[u8], at: usize) -> Option<SrvCopyChunk> {
        let [source_offset, target_offset] = [u64_at(bytes, at)?, u64_at(bytes, at + 8)?];
        Some(SrvCopyChunk { source_offset, target_offset, length: u32_at(bytes, at + 16)? })
    }

    fn set(self, bytes: &mut [u8], at: usize) {
        self.source_offset.set(bytes, at);
        self.target_offset.set(bytes, at + 8);
        self.length.set(bytes, at + 16);
    }
}

/// Appends the input of SRV_COPYCHUNK.
pub fn emit(source: ResumeKey, chunks: &[SrvCopyChunk], out: &mut Vec<u8>) {
    out.put(source.0);
    out.put(chunks.len() as u32);
    out.put(0u32);
    chunks.iter().for_each(|chunk| out.put(*chunk));
}

/// Parses the input of SRV_COPYCHUNK.
pub fn parse(input: &[u8]) -> Option<(ResumeKey, List<'_, SrvCopyChunk>)> {
    let chunks = (u32_at(input, 24)? as usize).checked_mul(SrvCopyChunk::LENGTH)?;
    Some((ResumeKey::parse(input)?, List::Bytes(crate::codec::buffer(input, 32, chunks)?)))
}

/// SRV_COPYCHUNK_RESPONSE: the amount copied, or with STATUS_INVALID_PARAMETER the server's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    pub chunks_written: u32,
    /// Bytes of a partly copied chunk, or the limit per chunk.
    pub chunk_bytes_written: u32,
    /// Bytes copied in all, or the limit per request.
    pub total_bytes_written: u32,
}

impl Copied {
    pub const OUTPUT: u32 = 12;

    /// Parses the output of SRV_COPYCHUNK.
    pub fn parse(output: &[u8]) -> Option<Copied> {
        Some(Copied {
            chunks_written: u32_at(output, 0)?,
            chunk_bytes_written: u32_at(output, 4)?,
            total_bytes_written: u32_at(output, 8)?,
        })
    }

    /// Appends the output of SRV_COPYCHUNK.
    pub fn emit(self, out: &mut Vec<u8>) {
        for count in [self.chunks_written, self.chunk_bytes_written, self.total_bytes_written] {
            out.put(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_24_bytes_behind_32_of_the_list() {
        let mut out = Vec::new();
        emit(ResumeKey([7; 24]), &[SrvCopyChunk { source_offset: 1, target_offset: 2, length: 3 }], &mut out);
        assert_eq!(out[..24], [7; 24]);
        assert_eq!(out[24..32], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(out[32..], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(ResumeKey::parse(&[4; 28]), Some(ResumeKey([4; 24])));
        let output = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0];
        let expected = Copied { chunks_written: 1, chunk_bytes_written: 0, total_bytes_written: 9 };
        assert_eq!(Copied::parse(&output), Some(expected));
        assert_eq!(Copied::parse(&output[..11]), None);
    }
}

//! The output of a decompressor: bounded, and the place that matches copy from.

/// Why decompression ended before the end of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecompressionEnd {
    /// The output has as many bytes as were asked for.
    Full,
    /// The input ends inside an item.
    Truncated,
    /// The input contradicts the format.
    Corrupt,
}

/// The tail of a vector, growing up to a limit. Matches reach back to its start and no further, since every payload is
/// compressed on its own (MS-SMB2 3.1.4.4).
pub(super) struct DecompressionWindow<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    limit: usize,
}

impl<'a> DecompressionWindow<'a> {
    /// A window that begins at the end of `out` and lets it grow to `limit` bytes.
    pub(super) fn new(out: &'a mut Vec<u8>, limit: usize) -> Self {
        let start = out.len();
        DecompressionWindow { out, start, limit }
    }

    /// Bytes written to this window.
    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Makes the end the start: matches no longer reach what is before.
    pub(super) fn restart(&mut self) {
        self.start = self.out.len();
    }

    /// Whether the limit is reached, so that no input needs to be looked at.
    pub(super) fn check_room(&self) -> Result<(), DecompressionEnd> {
        if self.out.len() < self.limit { Ok(()) } else { Err(DecompressionEnd::Full) }
    }

    /// Appends one byte.
    pub(super) fn literal(&mut self, byte: u8) -> Result<(), DecompressionEnd> {
        self.check_room()?;
        self.out.push(byte);
        Ok(())
    }

    /// Appends as many of `bytes` as there is room for.
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Result<(), DecompressionEnd> {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err(DecompressionEnd::Full) } else { Ok(()) }
    }

    /// Appends `byte` `count` times, or as often as there is room for.
    pub(super) fn fill(&mut self, byte: u8, count: usize) -> Result<(), DecompressionEnd> {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.resize(self.out.len() + count.min(room), byte);
        if count > room { Err(DecompressionEnd::Full) } else { Ok(()) }
    }

    /// Appends `length` bytes beginning `distance` bytes back, which may be bytes that this very copy writes.
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> Result<(), DecompressionEnd> {
        self.check_room()?;
        if distance == 0 || distance > self.len() {
            return Err(DecompressionEnd::Corrupt);
        }
        let end = self.out.len().saturating_add(length).min(self.limit);
        while self.out.len() < end {
            // A copy doubles what it can reach: from `distance` bytes back to the end, then twice that.
            let from = self.out.len() - distance;
            let chunk = distance.min(end - self.out.len());
            self.out.extend_from_within(from..from + chunk);
        }
        Ok(())
    }
}

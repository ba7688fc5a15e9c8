//! Bounded output of a decompressor, which is also the source of its matches.

/// Reason for ending before the end of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecompressionEnd {
    /// The output has reached the limit.
    Full,
    /// The input ends inside an item.
    Truncated,
    Corrupt,
}

/// Tail of a vector that grows up to a limit. Matches reach back only to its start, because payloads are compressed
/// independently (MS-SMB2 3.1.4.4).
pub(super) struct DecompressionWindow<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    limit: usize,
}

impl<'a> DecompressionWindow<'a> {
    /// Starts at the end of `out`, which may grow to `limit` bytes.
    pub(super) fn new(out: &'a mut Vec<u8>, limit: usize) -> Self {
        let start = out.len();
        DecompressionWindow { out, start, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Moves the start to the end, so that matches cannot reach earlier output.
    pub(super) fn restart(&mut self) {
        self.start = self.out.len();
    }

    /// Returns `Full` at the limit, before more input is read.
    pub(super) fn check_room(&self) -> Result<(), DecompressionEnd> {
        if self.out.len() < self.limit { Ok(()) } else { Err(DecompressionEnd::Full) }
    }

    pub(super) fn literal(&mut self, byte: u8) -> Result<(), DecompressionEnd> {
        self.check_room()?;
        self.out.push(byte);
        Ok(())
    }

    /// Appends as many of `bytes` as fit.
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Result<(), DecompressionEnd> {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err(DecompressionEnd::Full) } else { Ok(()) }
    }

    /// Appends `byte` up to `count` times, as long as it fits.
    pub(super) fn fill(&mut self, byte: u8, count: usize) -> Result<(), DecompressionEnd> {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.resize(self.out.len() + count.min(room), byte);
        if count > room { Err(DecompressionEnd::Full) } else { Ok(()) }
    }

    /// Copies `length` bytes from `distance` bytes back. The copy may overlap its own output.
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> Result<(), DecompressionEnd> {
        self.check_room()?;
        if distance == 0 || distance > self.len() {
            return Err(DecompressionEnd::Corrupt);
        }
        let end = self.out.len().saturating_add(length).min(self.limit);
        while self.out.len() < end {
            // Each pass doubles the number of bytes available for copying.
            let from = self.out.len() - distance;
            let chunk = distance.min(end - self.out.len());
            self.out.extend_from_within(from..from + chunk);
        }
        Ok(())
    }
}

//! Byte-oriented algorithms, and the bounded output of all of them: Pattern_V1 (MS-SMB2 2.2.42.2.2), LZ4 (MS-SMB2
//! 2.2.3.1.3; LZ4 Block Format Description), LZNT1 (MS-XCA 2.5) and plain LZ77 (MS-XCA 2.4).

use crate::bytes;

/// Reason for ending before the end of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecompressionEnd {
    Full,
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

    pub(super) fn literals(&mut self, bytes: &[u8]) -> Result<(), DecompressionEnd> {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err(DecompressionEnd::Full) } else { Ok(()) }
    }

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

pub(super) fn decompress_pattern(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    let pattern = bytes::u8_at(data, 0).ok_or(DecompressionEnd::Truncated)?;
    window.fill(pattern, repetitions(data).ok_or(DecompressionEnd::Truncated)?)
}

pub(super) fn repetitions(data: &[u8]) -> Option<usize> {
    bytes::u32_at(data, 4).map(|count| count as usize)
}

pub(super) fn decompress_lz4(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
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

/// Maximum output of a compressed chunk.
const CHUNK: usize = 4096;

pub(super) fn decompress_lznt1(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
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

pub(super) fn decompress_lz77(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    let mut reader = Lz77Reader { data, at: 0, shared_length: None };
    loop {
        let flags = reader.u32()?;
        for bit in (0..32).rev() {
            window.check_room()?;
            if flags >> bit & 1 == 0 {
                window.literal(reader.u8()?)?;
            } else if reader.at == data.len() {
                // The flags after the last item are ones.
                return Ok(());
            } else {
                let (distance, length) = reader.match_item()?;
                window.copy(distance, length)?;
            }
        }
    }
}

struct Lz77Reader<'a> {
    data: &'a [u8],
    at: usize,
    /// Position of a length byte whose high half is unused.
    shared_length: Option<usize>,
}

impl Lz77Reader<'_> {
    /// Reads distance and length of a match: 13 and 3 bits, extended by 4, 8, 16 and 32 bits as the length needs them.
    fn match_item(&mut self) -> Result<(usize, usize), DecompressionEnd> {
        let word = self.u16()?;
        let distance = usize::from(word >> 3) + 1;
        let mut length = u32::from(word & 7);
        if length == 7 {
            length = self.half_byte()? + 7;
            if length == 15 + 7 {
                length = u32::from(self.u8()?) + 15 + 7;
                if length == 255 + 15 + 7 {
                    length = self.long_length()?;
                }
            }
        }
        Ok((distance, length as usize + 3))
    }

    /// Reads 4 bits of length. Two long matches share a byte; the first one uses the low half.
    fn half_byte(&mut self) -> Result<u32, DecompressionEnd> {
        match self.shared_length.take() {
            Some(at) => Ok(u32::from(self.data[at] >> 4)),
            None => {
                let at = self.at;
                let byte = self.u8()?;
                self.shared_length = Some(at);
                Ok(u32::from(byte & 0x0f))
            }
        }
    }

    /// Reads a length of 16 bits, or 32 after a zero. It replaces the shorter fields instead of extending them.
    fn long_length(&mut self) -> Result<u32, DecompressionEnd> {
        let mut length = u32::from(self.u16()?);
        if length == 0 {
            length = self.u32()?;
        }
        if length < 15 + 7 { Err(DecompressionEnd::Corrupt) } else { Ok(length) }
    }

    fn u8(&mut self) -> Result<u8, DecompressionEnd> {
        self.next(bytes::u8_at)
    }

    fn u16(&mut self) -> Result<u16, DecompressionEnd> {
        self.next(bytes::u16_at)
    }

    fn u32(&mut self) -> Result<u32, DecompressionEnd> {
        self.next(bytes::u32_at)
    }

    fn next<T>(&mut self, field: impl Fn(&[u8], usize) -> Option<T>) -> Result<T, DecompressionEnd> {
        let value = field(self.data, self.at).ok_or(DecompressionEnd::Truncated)?;
        self.at += size_of::<T>();
        Ok(value)
    }
}

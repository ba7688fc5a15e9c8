//! Decompression, with bounded output: Pattern_V1 (MS-SMB2 2.2.42.2.2), LZ4 (MS-SMB2 2.2.3.1.3; LZ4 Block Format
//! Description), LZNT1 (MS-XCA 2.5), plain LZ77 (MS-XCA 2.4) and LZ77+Huffman (MS-XCA 2.2).

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

/// Symbols 0 to 255 are literals, 256 to 511 matches.
const SYMBOLS: usize = 512;
const TABLE_BYTES: usize = SYMBOLS / 2;
/// Length of a code; a longer one is damage.
const MAX_BITS: usize = 15;
const BLOCK: usize = 0x1_0000;

/// Decompresses into the window. Its limit must not exceed the message, because symbol 256 means the end only there
/// and a match elsewhere.
pub(super) fn decompress_lz77_huffman(
    data: &[u8],
    mut window: DecompressionWindow<'_>,
) -> Result<(), DecompressionEnd> {
    let mut at = 0;
    while at < data.len() {
        window.check_room()?;
        let table = data.get(at..at + TABLE_BYTES).ok_or(DecompressionEnd::Truncated)?;
        let code = Code::from_lengths(table)?;
        let mut bits = Bits::new(data, at + TABLE_BYTES);
        let block_end = window.len().saturating_add(BLOCK);
        while window.len() < block_end {
            window.check_room()?;
            let symbol = code.next_symbol(&mut bits)?;
            match u8::try_from(symbol) {
                Ok(literal) => window.literal(literal)?,
                Err(_) => {
                    let (distance, length) = match_item(symbol - 256, &mut bits)?;
                    window.copy(distance, length)?;
                }
            }
        }
        at = bits.at;
    }
    Ok(())
}

/// Reads distance and length of a match. The symbol holds the magnitude of the distance and lengths up to 17; longer
/// lengths follow in bytes, then the low bits of the distance.
fn match_item(symbol: u16, bits: &mut Bits<'_>) -> Result<(usize, usize), DecompressionEnd> {
    let mut length = usize::from(symbol % 16);
    if length == 15 {
        length = usize::from(bits.byte()?) + 15;
        if length == 255 + 15 {
            length = bits.long_length()?;
        }
    }
    let magnitude = u32::from(symbol / 16);
    let distance = (1 << magnitude) + bits.take(magnitude)? as usize;
    Ok((distance, length + 3))
}

/// Canonical Huffman code, decoded length by length.
struct Code {
    /// Number of symbols by code length.
    count: [u16; MAX_BITS + 1],
    /// Symbols in order of code length, then value.
    symbols: [u16; SYMBOLS],
}

impl Code {
    /// Builds the code from a table of lengths. Rejects a code that is not complete.
    fn from_lengths(table: &[u8]) -> Result<Code, DecompressionEnd> {
        let length = |symbol: usize| usize::from(table[symbol / 2] >> (4 * (symbol % 2)) & 0x0f);
        let mut count = [0; MAX_BITS + 1];
        for symbol in 0..SYMBOLS {
            count[length(symbol)] += 1;
        }
        count[0] = 0;
        let used: u32 = (1..=MAX_BITS).map(|bits| u32::from(count[bits]) << (MAX_BITS - bits)).sum();
        if used != 1 << MAX_BITS {
            return Err(DecompressionEnd::Corrupt);
        }
        let mut next = [0usize; MAX_BITS + 1];
        for bits in 1..=MAX_BITS {
            next[bits] = next[bits - 1] + usize::from(count[bits - 1]);
        }
        let mut symbols = [0; SYMBOLS];
        for symbol in 0..SYMBOLS {
            let bits = length(symbol);
            if bits != 0 {
                symbols[next[bits]] = symbol as u16;
                next[bits] += 1;
            }
        }
        Ok(Code { count, symbols })
    }

    fn next_symbol(&self, bits: &mut Bits<'_>) -> Result<u16, DecompressionEnd> {
        let window = bits.next >> (32 - MAX_BITS);
        let (mut first, mut index) = (0, 0);
        for length in 1..=MAX_BITS {
            let count = u32::from(self.count[length]);
            let code = window >> (MAX_BITS - length);
            if code < first + count {
                let symbol = self.symbols[(index + code - first) as usize];
                bits.take(length as u32)?;
                return Ok(symbol);
            }
            index += count;
            first = (first + count) << 1;
        }
        Err(DecompressionEnd::Corrupt)
    }
}

/// Bit stream: 16-bit words, high bit first, read one word ahead. Long match lengths are in the bytes after the words
/// read so far.
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    next: u32,
    /// Number of bits in `next` beyond 16. The next word is loaded when it turns negative.
    extra: i32,
    /// Number of bits in `next` that came from the input: fewer than `extra + 16` at its end.
    valid: i32,
}

impl<'a> Bits<'a> {
    fn new(data: &'a [u8], at: usize) -> Self {
        let mut bits = Bits { data, at, next: 0, extra: -16, valid: 0 };
        bits.load();
        bits.load();
        bits
    }

    /// Takes up to 15 bits.
    fn take(&mut self, count: u32) -> Result<u32, DecompressionEnd> {
        // In two steps, because a shift by 32 would overflow.
        let value = self.next >> 1 >> (31 - count);
        self.next <<= count;
        self.extra -= count as i32;
        self.valid -= count as i32;
        if self.valid < 0 {
            return Err(DecompressionEnd::Truncated);
        }
        if self.extra < 0 {
            self.load();
        }
        Ok(value)
    }

    /// Appends the next word, or zeros after the end of the input.
    fn load(&mut self) {
        match bytes::u16_at(self.data, self.at) {
            Some(word) => {
                self.next |= u32::from(word) << -self.extra;
                self.valid += 16;
                self.at += 2;
            }
            None => self.at = self.data.len(),
        }
        self.extra += 16;
    }

    /// Takes a byte from after the words read so far.
    fn byte(&mut self) -> Result<u8, DecompressionEnd> {
        let byte = bytes::u8_at(self.data, self.at).ok_or(DecompressionEnd::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a length minus 3 of 16 bits, or 32 after a zero (MS-XCA 2.1.4.3).
    fn long_length(&mut self) -> Result<usize, DecompressionEnd> {
        let mut length = u32::from(bytes::u16_at(self.data, self.at).ok_or(DecompressionEnd::Truncated)?);
        self.at += 2;
        if length == 0 {
            length = bytes::u32_at(self.data, self.at).ok_or(DecompressionEnd::Truncated)?;
            self.at += 4;
        }
        if length < 15 { Err(DecompressionEnd::Corrupt) } else { Ok(length as usize) }
    }
}

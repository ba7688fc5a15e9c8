//! LZ77+Huffman (MS-XCA 2.2): blocks of 64 KiB of output, each with its own code.

use super::algorithms::{DecompressionEnd, DecompressionWindow};
use crate::bytes;

/// Symbols 0 to 255 are literals, 256 to 511 matches.
const SYMBOLS: usize = 512;
const TABLE_BYTES: usize = SYMBOLS / 2;
/// Length of a code; a longer one is damage.
const MAX_BITS: usize = 15;
const BLOCK: usize = 0x1_0000;

/// Decompresses into the window. Its limit must not exceed the message, because symbol 256 means the end only there
/// and a match elsewhere.
pub(super) fn decompress(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
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

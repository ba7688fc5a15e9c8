//! Plain LZ77 (MS-XCA 2.4).

use super::window::{DecompressionEnd, DecompressionWindow};
use crate::bytes;

pub(super) fn decompress(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
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

//! Parameter and data blocks, one for each command of an AndX chain (MS-CIFS 2.2.3.2 to 2.2.3.4).

use super::{Smb1Command, Smb1Header};
use crate::bytes::CapturedName;
use crate::bytes::{before_terminator, text, u8_at, u16_at};
use std::ops::Range;

/// Parameters and data of one command, either of them possibly truncated by a snap length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// From the header for the first block, from the previous block's AndX fields for the others.
    pub command: Smb1Command,
    pub words: &'a [u8],
    pub data: &'a [u8],
    start: usize,
    /// Offset of `data` from the header, which decides the alignment of UTF-16 strings.
    data_offset: usize,
    data_end: Option<usize>,
    pub(super) unicode: bool,
    next: Option<(Smb1Command, usize)>,
}

/// AndX commands of a message; the rest is ignored.
pub(super) const MAX_CHAIN: usize = 8;

/// Buffer format of a terminated string.
pub(super) const STRING: u8 = 0x04;

/// Iterates over the blocks of a message that begins with `header`. A chain that points backwards ends there.
pub fn blocks<'a>(header: &Smb1Header, message: &'a [u8]) -> impl Iterator<Item = Block<'a>> + use<'a> {
    let unicode = header.is_unicode();
    let mut next = Some((header.command, Smb1Header::LENGTH));
    std::iter::from_fn(move || {
        let block = Block::parse(message, next?, unicode)?;
        next = block.next;
        Some(block)
    })
    .take(MAX_CHAIN)
}

impl<'a> Block<'a> {
    fn parse(message: &'a [u8], (command, offset): (Smb1Command, usize), unicode: bool) -> Option<Block<'a>> {
        let word_count = usize::from(u8_at(message, offset)?);
        let start = offset + 1;
        let end = start + 2 * word_count;
        let words = &message[start.min(message.len())..end.min(message.len())];
        let data_offset = end + 2;
        let data_end = u16_at(message, end).map(|length| data_offset + usize::from(length));
        let data = message.get(data_offset..data_end.unwrap_or(0).min(message.len())).unwrap_or_default();
        let next = next_of(command, words).filter(|(_, next)| *next > offset);
        Some(Block { command, words, data, start: offset, data_offset, data_end, unicode, next })
    }

    pub fn word_count(&self) -> usize {
        self.words.len() / 2
    }

    /// Returns a terminated string at an offset of the data, and the offset after it. `None` if truncated.
    pub fn string(&self, offset: usize) -> Option<(String, usize)> {
        self.terminated(offset, self.unicode)
    }

    /// Returns a terminated name at an offset of the data, possibly truncated by a snap length.
    pub fn name(&self, offset: usize) -> Option<CapturedName> {
        if let Some((text, _)) = self.string(offset) {
            return Some(CapturedName { text, missing: 0 });
        }
        // The terminator is in the truncated part.
        let missing = self.data_missing().filter(|missing| *missing > 0)?;
        let start = self.aligned(offset, self.unicode);
        Some(CapturedName {
            missing,
            ..CapturedName::in_range(self.data, start..self.data.len().max(start), self.unicode)
        })
    }

    /// Returns the name at the beginning of the data, which follows a buffer format byte.
    pub fn formatted_name(&self) -> Option<CapturedName> {
        if self.data.first().is_none_or(|format| *format == STRING) { self.name(1) } else { None }
    }

    pub(super) fn data_offset(&self) -> usize {
        self.data_offset
    }

    /// Returns the range of the word count, the words and ByteCount, relative to the header.
    pub(super) fn fields(&self) -> Range<usize> {
        self.start..self.data_offset
    }

    /// Returns the captured range of a terminated string, relative to the header, and the data offset after it.
    pub(super) fn text_place(&self, offset: usize) -> (Range<usize>, usize) {
        let start = self.aligned(offset, self.unicode);
        let (bytes, _) = before_terminator(self.data.get(start..).unwrap_or_default(), self.unicode);
        let place = self.data_offset + start;
        (place..place + bytes.len(), start + bytes.len() + 1 + usize::from(self.unicode))
    }

    /// Returns true if ByteCount extends to `end`, which is relative to the header, or is truncated.
    pub(super) fn reaches(&self, end: usize) -> bool {
        self.data_end.is_none_or(|data_end| end <= data_end)
    }

    fn data_missing(&self) -> Option<usize> {
        self.data_end.map(|end| end.saturating_sub(self.data_offset + self.data.len()))
    }

    /// Returns a terminated OEM string at an offset of the data, whatever the header says.
    pub fn oem(&self, offset: usize) -> Option<(String, usize)> {
        self.terminated(offset, false)
    }

    fn terminated(&self, offset: usize, unicode: bool) -> Option<(String, usize)> {
        let start = self.aligned(offset, unicode);
        let (bytes, true) = before_terminator(self.data.get(start..)?, unicode) else { return None };
        Some((text(bytes, unicode), start + bytes.len() + 1 + usize::from(unicode)))
    }

    /// Returns the start of a string: UTF-16 is aligned relative to the header.
    fn aligned(&self, offset: usize, unicode: bool) -> usize {
        if unicode { offset + (self.data_offset + offset) % 2 } else { offset }
    }
}

pub(super) fn next_of(command: Smb1Command, words: &[u8]) -> Option<(Smb1Command, usize)> {
    if !command.is_andx() {
        return None;
    }
    let next = Smb1Command(u8_at(words, 0)?);
    (next != Smb1Command::NO_ANDX).then_some((next, usize::from(u16_at(words, 2)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(command: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xff, b'S', b'M', b'B', command];
        bytes.resize(Smb1Header::LENGTH, 0);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn chains_are_followed_forwards_only() {
        // LOCKING_ANDX (8 words) → READ_ANDX at offset 51, which points back to 32.
        let mut rest = vec![8, 0x2e, 0, 51, 0];
        rest.resize(1 + 16, 0);
        rest.extend([0, 0, 2, 0x24, 0, 32, 0, 0, 0]);
        let message = message(0x24, &rest);
        let header = Smb1Header::parse(&message).unwrap();
        let commands: Vec<u8> = blocks(&header, &message).map(|block| block.command.0).collect();
        assert_eq!(commands, [0x24, 0x2e]);
    }

    #[test]
    fn utf16_names_are_aligned_from_the_header() {
        // CHECK_DIRECTORY has no words, so its data starts at 35; after the format byte the name is at 36, which is
        // even.
        let mut bytes = message(0x10, &[0, 7, 0, 4, b'a', 0, b'b', 0, 0, 0]);
        bytes[10..12].copy_from_slice(&0x8000u16.to_le_bytes());
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        assert_eq!(block.formatted_name(), Some("ab".into()));
    }
}

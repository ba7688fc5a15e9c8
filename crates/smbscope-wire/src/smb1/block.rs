//! Parameter and data blocks, one for each command of an AndX chain (MS-CIFS 2.2.3.2 to 2.2.3.4).

use super::messages::STRING;
use super::{Smb1Command, Smb1Header, TransactionKind};
use crate::bytes::{before_terminator, text, u8_at, u16_at};
use crate::name::CapturedName;
use std::ops::Range;

/// The parameters and data of one command. A snap length may have cut either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// The command: that of the header for the first block, of the AndX field before for the others.
    pub command: Smb1Command,
    /// The parameter words.
    pub words: &'a [u8],
    /// The data bytes as far as they are there.
    pub data: &'a [u8],
    /// Where the block begins, from the header.
    start: usize,
    /// Offset of `data` from the header, which decides the alignment of UTF-16 strings.
    data_offset: usize,
    /// Where the data ends by its ByteCount, from the header.
    data_end: Option<usize>,
    pub(super) unicode: bool,
    next: Option<(Smb1Command, usize)>,
}

/// Longest chain that is followed; none is longer than the list of AndX commands.
const MAX_CHAIN: usize = 8;
/// Data bytes of a request that are wanted at most: names, a security token.
const MAX_WANTED: usize = 16 * 1024;

/// The blocks of a message that begins with `header`, in the order of the chain. A chain that points backwards
/// ends there.
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

    /// Number of parameter words.
    pub fn word_count(&self) -> usize {
        self.words.len() / 2
    }

    /// A terminated string at `offset` of the data, and the offset after it. A string that the snap length cut is
    /// absent.
    pub fn string(&self, offset: usize) -> Option<(String, usize)> {
        self.terminated(offset, self.unicode)
    }

    /// A terminated string that is a name, as far as it is there: a snap length may have cut it.
    pub fn name(&self, offset: usize) -> Option<CapturedName> {
        if let Some((text, _)) = self.string(offset) {
            return Some(CapturedName { text, missing: 0 });
        }
        // The terminator is somewhere in what was cut off.
        let missing = self.data_missing().filter(|missing| *missing > 0)?;
        let start = self.aligned(offset, self.unicode);
        Some(CapturedName {
            missing,
            ..CapturedName::in_range(self.data, start..self.data.len().max(start), self.unicode)
        })
    }

    /// The first of the data, a name behind a buffer format byte.
    pub fn formatted_name(&self) -> Option<CapturedName> {
        if self.data.first().is_none_or(|format| *format == STRING) { self.name(1) } else { None }
    }

    /// Where the data begins, from the header.
    pub(super) fn data_offset(&self) -> usize {
        self.data_offset
    }

    /// Where its count of words, its words and its count of bytes are, from the header.
    pub(super) fn fields(&self) -> Range<usize> {
        self.start..self.data_offset
    }

    /// Where a terminated string at `offset` of the data is, from the header, as far as it is there; and the offset of
    /// the data after it.
    pub(super) fn text_place(&self, offset: usize) -> (Range<usize>, usize) {
        let start = self.aligned(offset, self.unicode);
        let (bytes, _) = before_terminator(self.data.get(start..).unwrap_or_default(), self.unicode);
        let place = self.data_offset + start;
        (place..place + bytes.len(), start + bytes.len() + 1 + usize::from(self.unicode))
    }

    /// Whether the data reaches to a place, counted from the header, as far as it says.
    pub(super) fn reaches(&self, end: usize) -> bool {
        self.data_end.is_none_or(|data_end| end <= data_end)
    }

    /// Data bytes that are not there.
    fn data_missing(&self) -> Option<usize> {
        self.data_end.map(|end| end.saturating_sub(self.data_offset + self.data.len()))
    }

    /// A terminated OEM string at `offset` of the data, whatever the header says.
    pub fn oem(&self, offset: usize) -> Option<(String, usize)> {
        self.terminated(offset, false)
    }

    fn terminated(&self, offset: usize, unicode: bool) -> Option<(String, usize)> {
        let start = self.aligned(offset, unicode);
        let (bytes, true) = before_terminator(self.data.get(start..)?, unicode) else { return None };
        Some((text(bytes, unicode), start + bytes.len() + 1 + usize::from(unicode)))
    }

    /// Where a string begins in the data: UTF-16 is aligned.
    fn aligned(&self, offset: usize, unicode: bool) -> usize {
        if unicode { offset + (self.data_offset + offset) % 2 } else { offset }
    }
}

/// Command and offset of the next block of the chain.
fn next_of(command: Smb1Command, words: &[u8]) -> Option<(Smb1Command, usize)> {
    if !command.is_andx() {
        return None;
    }
    let next = Smb1Command(u8_at(words, 0)?);
    (next != Smb1Command::NO_ANDX).then_some((next, usize::from(u16_at(words, 2)?)))
}

/// How many bytes of a message must be at hand to read what the analysis wants of it; `prefix` holds at least the
/// header. The answer may grow once more bytes are there.
pub fn needed(header: &Smb1Header, prefix: &[u8]) -> usize {
    let mut offset = Smb1Header::LENGTH;
    let mut command = header.command;
    for _ in 0..MAX_CHAIN {
        let Some(word_count) = u8_at(prefix, offset) else { return offset + 1 };
        let words_end = offset + 1 + 2 * usize::from(word_count);
        let Some(words) = prefix.get(offset + 1..words_end) else { return words_end };
        match next_of(command, words) {
            Some((next, at)) if at > offset => (command, offset) = (next, at),
            _ => return words_end + 2 + data_needed(header, command, words, prefix, words_end),
        }
    }
    offset
}

/// Data bytes that are wanted behind the parameters.
fn data_needed(header: &Smb1Header, command: Smb1Command, words: &[u8], prefix: &[u8], words_end: usize) -> usize {
    let data_length = || match u16_at(prefix, words_end) {
        Some(length) => usize::from(length).min(MAX_WANTED),
        None => 0,
    };
    if header.is_reply() {
        return TransactionKind::from_command(command).map_or(0, |_| data_length().min(16));
    }
    match command {
        Smb1Command::WRITE_ANDX
        | Smb1Command::WRITE
        | Smb1Command::WRITE_RAW
        | Smb1Command::WRITE_MPX
        | Smb1Command::WRITE_AND_CLOSE
        | Smb1Command::WRITE_AND_UNLOCK => 0,
        Smb1Command::TRANSACTION2 | Smb1Command::NT_TRANSACT => {
            let kind = if command == Smb1Command::NT_TRANSACT { TransactionKind::Nt } else { TransactionKind::Trans2 };
            kind.parameters_end(words).saturating_sub(words_end + 2).min(MAX_WANTED)
        }
        Smb1Command::TRANSACTION => data_length().min(600),
        _ => data_length(),
    }
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
        // LOCKING_ANDX (8 words) → READ_ANDX at offset 51, which points back at 32.
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
        // CHECK_DIRECTORY: no words, so data starts at 35; the format byte leaves the name at 36, which is even.
        let mut bytes = message(0x10, &[0, 7, 0, 4, b'a', 0, b'b', 0, 0, 0]);
        bytes[10..12].copy_from_slice(&0x8000u16.to_le_bytes());
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        assert_eq!(block.formatted_name(), Some("ab".into()));
    }

    #[test]
    fn bulk_data_is_not_needed() {
        let mut rest = vec![14, 0xff];
        rest.resize(1 + 28, 0);
        rest.extend(60_000u16.to_le_bytes());
        let message = message(0x2f, &rest);
        let header = Smb1Header::parse(&message).unwrap();
        assert_eq!(needed(&header, &message), 32 + 1 + 28 + 2);
    }
}

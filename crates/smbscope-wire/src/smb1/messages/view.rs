//! A response, complete as far as its counts say: parameter words, data bytes (MS-CIFS 2.2.3).

use super::super::{Block, Smb1Command, Smb1Header};
use super::WireText;
use crate::bytes::{array_at, before_terminator, u8_at, u16_at};
use crate::codec::FixedSizeField;

/// A response that is not what the specification allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{command} response: {what}")]
pub struct Malformed {
    /// The command that was answered.
    pub command: Smb1Command,
    /// What is wrong with it.
    pub what: &'static str,
}

/// One response.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    command: Smb1Command,
    /// The whole message.
    message: &'a [u8],
    words: &'a [u8],
    /// The data bytes, as far as ByteCount says and the message goes.
    pub(super) data: &'a [u8],
    data_offset: usize,
    pub(super) unicode: bool,
}

impl<'a> View<'a> {
    /// Checks that header, words and ByteCount are there, and that it answers `command`.
    pub(super) fn parse(message: &'a [u8], command: Smb1Command) -> Result<View<'a>, Malformed> {
        let wrong = |what| Malformed { command, what };
        let header = Smb1Header::parse(message).ok_or(wrong("header cut off"))?;
        if header.command != command {
            return Err(wrong("another command"));
        }
        let count = u8_at(message, Smb1Header::LENGTH).ok_or(wrong("no parameter count"))?;
        let words_at = Smb1Header::LENGTH + 1;
        let data_offset = words_at + 2 * usize::from(count) + 2;
        let words = message.get(words_at..data_offset - 2).ok_or(wrong("parameters cut off"))?;
        let length = u16_at(message, data_offset - 2).ok_or(wrong("no byte count"))?;
        let end = (data_offset + usize::from(length)).min(message.len());
        let data = &message[data_offset..end];
        Ok(View { command, message, words, data, data_offset, unicode: header.is_unicode() })
    }

    pub(super) fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { command: self.command, what }
    }

    pub(super) fn word_count(&self) -> usize {
        self.words.len() / 2
    }

    /// A field of the words.
    pub(super) fn value<T: FixedSizeField>(&self, offset: usize) -> Result<T, Malformed> {
        T::at(self.words, offset).ok_or(self.wrong(TOO_FEW))
    }

    /// `N` data bytes.
    pub(super) fn data_array<const N: usize>(&self, offset: usize) -> Result<[u8; N], Malformed> {
        array_at(self.data, offset).ok_or(self.wrong("data cut off"))
    }

    /// So many bytes of the data.
    pub(super) fn take(&self, at: &mut usize, length: u16) -> Result<&'a [u8], Malformed> {
        let start = *at;
        *at += usize::from(length);
        self.data.get(start..*at).ok_or(self.wrong("data cut off"))
    }

    /// All that is left of the data.
    pub(super) fn rest(&self, at: &mut usize) -> &'a [u8] {
        self.data.get(std::mem::replace(at, self.data.len())..).unwrap_or_default()
    }

    /// Bytes at an offset that counts from the header; an empty range may lie anywhere.
    pub(super) fn range(&self, offset: usize, length: usize) -> Result<&'a [u8], Malformed> {
        if length == 0 {
            return Ok(&[]);
        }
        let range = offset.checked_add(length).and_then(|end| self.message.get(offset..end));
        range.ok_or(self.wrong("data beyond the end of the message"))
    }

    /// A string in the data, up to its terminator or the end.
    pub(super) fn text(&self, at: &mut usize) -> WireText<'a> {
        if !self.unicode {
            return self.oem_text(at);
        }
        let start = *at + (self.data_offset + *at) % 2;
        let (text, _) = before_terminator(self.data.get(start..).unwrap_or_default(), true);
        *at = start + text.len() + 2;
        WireText::Utf16(text)
    }

    /// An OEM string, likewise.
    pub(super) fn oem_text(&self, at: &mut usize) -> WireText<'a> {
        let (text, _) = before_terminator(self.data.get(*at..).unwrap_or_default(), false);
        *at += text.len() + 1;
        WireText::Oem(text)
    }

    /// A string behind a buffer format byte (MS-CIFS 2.2.1.1.1).
    pub(super) fn formatted(&self, at: &mut usize) -> Result<WireText<'a>, Malformed> {
        if self.data.get(*at) != Some(&STRING) {
            return Err(self.wrong("no string"));
        }
        *at += 1;
        Ok(self.text(at))
    }
}

/// One command of a chain.
impl<'a> From<&Block<'a>> for View<'a> {
    fn from(block: &Block<'a>) -> View<'a> {
        let Block { command, words, data, unicode, .. } = *block;
        View { command, message: &[], words, data, data_offset: block.data_offset(), unicode }
    }
}

/// The buffer format of a terminated string.
pub(in crate::smb1) const STRING: u8 = 0x04;
const TOO_FEW: &str = "too few parameters";

#[cfg(test)]
mod tests {
    use super::super::testing::response;
    use super::*;

    #[test]
    fn a_response_that_is_cut_off_anywhere_is_refused_and_never_panics() {
        let whole = response(Smb1Command::ECHO, &[1, 0], &[9]);
        assert!(View::parse(&whole, Smb1Command::ECHO).is_ok());
        for length in 0..whole.len() - 1 {
            assert!(View::parse(&whole[..length], Smb1Command::ECHO).is_err(), "{length}");
        }
    }

    #[test]
    fn the_answer_to_another_command_is_refused() {
        let echo = response(Smb1Command::ECHO, &[1, 0], &[]);
        let error = View::parse(&echo, Smb1Command::CLOSE).unwrap_err();
        assert_eq!(error.to_string(), "SMB_COM_CLOSE response: another command");
    }
}

//! Parameter words and data bytes of a complete response (MS-CIFS 2.2.3), and typed access to them.

use super::super::{Block, Smb1Command, Smb1Header};
use super::WireText;
use crate::bytes::{array_at, before_terminator, u8_at, u16_at};
use crate::codec::FixedSizeField;

/// Error for a response that violates the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{command} response: {what}")]
pub struct Malformed {
    pub command: Smb1Command,
    /// Description of the violation.
    pub what: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    command: Smb1Command,
    message: &'a [u8],
    words: &'a [u8],
    /// Data bytes, up to ByteCount or the end of the message.
    pub(super) data: &'a [u8],
    data_offset: usize,
    pub(super) unicode: bool,
}

impl<'a> View<'a> {
    /// Checks that header, words and ByteCount are complete and that the response belongs to `command`.
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

    pub(super) fn value<T: FixedSizeField>(&self, offset: usize) -> Result<T, Malformed> {
        T::at(self.words, offset).ok_or(self.wrong(TOO_FEW))
    }

    pub(super) fn data_array<const N: usize>(&self, offset: usize) -> Result<[u8; N], Malformed> {
        array_at(self.data, offset).ok_or(self.wrong("data cut off"))
    }

    /// Takes the next `length` bytes of the data.
    pub(super) fn take(&self, at: &mut usize, length: u16) -> Result<&'a [u8], Malformed> {
        let start = *at;
        *at += usize::from(length);
        self.data.get(start..*at).ok_or(self.wrong("data cut off"))
    }

    /// Takes the rest of the data.
    pub(super) fn rest(&self, at: &mut usize) -> &'a [u8] {
        self.data.get(std::mem::replace(at, self.data.len())..).unwrap_or_default()
    }

    /// Returns bytes at an offset from the header. An empty range may have any offset.
    pub(super) fn range(&self, offset: usize, length: usize) -> Result<&'a [u8], Malformed> {
        if length == 0 {
            return Ok(&[]);
        }
        let range = offset.checked_add(length).and_then(|end| self.message.get(offset..end));
        range.ok_or(self.wrong("data beyond the end of the message"))
    }

    /// Takes a string up to its terminator or the end of the data.
    pub(super) fn text(&self, at: &mut usize) -> WireText<'a> {
        if !self.unicode {
            return self.oem_text(at);
        }
        let start = *at + (self.data_offset + *at) % 2;
        let (text, _) = before_terminator(self.data.get(start..).unwrap_or_default(), true);
        *at = start + text.len() + 2;
        WireText::Utf16(text)
    }

    /// Takes an OEM string up to its terminator or the end of the data.
    pub(super) fn oem_text(&self, at: &mut usize) -> WireText<'a> {
        let (text, _) = before_terminator(self.data.get(*at..).unwrap_or_default(), false);
        *at += text.len() + 1;
        WireText::Oem(text)
    }

    /// Takes a string that follows a buffer format byte (MS-CIFS 2.2.1.1.1).
    pub(super) fn formatted(&self, at: &mut usize) -> Result<WireText<'a>, Malformed> {
        if self.data.get(*at) != Some(&STRING) {
            return Err(self.wrong("no string"));
        }
        *at += 1;
        Ok(self.text(at))
    }
}

impl<'a> From<&Block<'a>> for View<'a> {
    fn from(block: &Block<'a>) -> View<'a> {
        let Block { command, words, data, unicode, .. } = *block;
        View { command, message: &[], words, data, data_offset: block.data_offset(), unicode }
    }
}

/// Buffer format of a terminated string.
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

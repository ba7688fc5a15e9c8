//! A response, complete as far as its counts say: parameter words, data bytes (MS-CIFS 2.2.3).

use super::super::{Command, Header};
use crate::bytes::{array_at, oem_text, u8_at, u16_at, u32_at, u64_at, utf16_text};

/// A response that is not what the specification allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{command} response: {what}")]
pub struct Malformed {
    /// The command that was answered.
    pub command: Command,
    /// What is wrong with it.
    pub what: &'static str,
}

/// One response.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    command: Command,
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
    pub(super) fn parse(message: &'a [u8], command: Command) -> Result<View<'a>, Malformed> {
        let wrong = |what| Malformed { command, what };
        let header = Header::parse(message).ok_or(wrong("header cut off"))?;
        if header.command != command {
            return Err(wrong("another command"));
        }
        let count = u8_at(message, Header::LENGTH).ok_or(wrong("no parameter count"))?;
        let words_at = Header::LENGTH + 1;
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

    pub(super) fn u8(&self, offset: usize) -> Result<u8, Malformed> {
        u8_at(self.words, offset).ok_or(self.wrong(TOO_FEW))
    }

    pub(super) fn u16(&self, offset: usize) -> Result<u16, Malformed> {
        u16_at(self.words, offset).ok_or(self.wrong(TOO_FEW))
    }

    pub(super) fn u32(&self, offset: usize) -> Result<u32, Malformed> {
        u32_at(self.words, offset).ok_or(self.wrong(TOO_FEW))
    }

    pub(super) fn u64(&self, offset: usize) -> Result<u64, Malformed> {
        u64_at(self.words, offset).ok_or(self.wrong(TOO_FEW))
    }

    /// `N` data bytes.
    pub(super) fn data_array<const N: usize>(&self, offset: usize) -> Result<[u8; N], Malformed> {
        array_at(self.data, offset).ok_or(self.wrong("data cut off"))
    }

    /// Bytes at an offset that counts from the header; an empty range may lie anywhere.
    pub(super) fn range(&self, offset: usize, length: usize) -> Result<&'a [u8], Malformed> {
        if length == 0 {
            return Ok(&[]);
        }
        let range = offset.checked_add(length).and_then(|end| self.message.get(offset..end));
        range.ok_or(self.wrong("data beyond the end of the message"))
    }

    /// A string at an offset of the data, up to its terminator or the end, and the offset behind it.
    pub(super) fn string(&self, offset: usize) -> (String, usize) {
        if !self.unicode {
            return self.oem(offset);
        }
        let start = offset + (self.data_offset + offset) % 2;
        let rest = self.data.get(start..).unwrap_or_default();
        let length = rest.chunks_exact(2).position(|unit| unit == [0, 0]).unwrap_or(rest.len() / 2);
        (utf16_text(&rest[..2 * length]), start + 2 * length + 2)
    }

    /// An OEM string, likewise.
    pub(super) fn oem(&self, offset: usize) -> (String, usize) {
        let rest = self.data.get(offset..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        (oem_text(&rest[..length]), offset + length + 1)
    }
}

const TOO_FEW: &str = "too few parameters";

#[cfg(test)]
mod tests {
    use super::super::testing::response;
    use super::*;

    #[test]
    fn a_response_that_is_cut_off_anywhere_is_refused_and_never_panics() {
        let whole = response(Command::ECHO, &[1, 0], &[9]);
        assert!(View::parse(&whole, Command::ECHO).is_ok());
        for length in 0..whole.len() - 1 {
            assert!(View::parse(&whole[..length], Command::ECHO).is_err(), "{length}");
        }
    }

    #[test]
    fn the_answer_to_another_command_is_refused() {
        let echo = response(Command::ECHO, &[1, 0], &[]);
        let error = View::parse(&echo, Command::CLOSE).unwrap_err();
        assert_eq!(error.to_string(), "SMB_COM_CLOSE response: another command");
    }
}

//! Writer for SMB1 messages: header, and for each command its counted parameter words and data bytes (MS-CIFS 2.2.3).

use super::super::{Smb1Command, Smb1Header};
use super::view::STRING;
use super::{Smb1Message, WireText};
use crate::codec::{FixedSizeField, Put};

/// Appends one message to a buffer, command by command. Parameters come first; [`Smb1MessageWriter::data`] ends them.
#[derive(Debug)]
pub struct Smb1MessageWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Position of the header in the buffer.
    start: usize,
    /// Position of the last command's parameters, if any.
    words: Option<usize>,
    /// Position of ByteCount, or zero before the data has begun.
    byte_count: usize,
    unicode: bool,
}

impl<'a> Smb1MessageWriter<'a> {
    pub fn new(header: &Smb1Header, out: &'a mut Vec<u8>) -> Smb1MessageWriter<'a> {
        let start = out.len();
        header.emit(out);
        Smb1MessageWriter { out, start, words: None, byte_count: 0, unicode: header.is_unicode() }
    }

    /// Adds a command and links the previous one to it, which must be an AndX command.
    pub fn add<M: Smb1Message + ?Sized>(&mut self, message: &M) {
        self.begin(M::COMMAND);
        message.body(self);
        self.end();
    }

    pub fn add_empty(&mut self, command: Smb1Command) {
        self.begin(command);
        self.end();
    }

    fn begin(&mut self, command: Smb1Command) {
        let offset = self.position() as u16;
        if let Some(before) = self.words {
            command.0.set(self.out, before);
            offset.set(self.out, before + 2);
        }
        self.out.push(0);
        self.words = Some(self.out.len());
        self.byte_count = 0;
    }

    fn end(&mut self) {
        if self.byte_count == 0 {
            self.data();
        }
        ((self.out.len() - self.byte_count - 2) as u16).set(self.out, self.byte_count);
    }

    /// Overwrites a field of the header.
    pub fn set(&mut self, position: usize, value: impl FixedSizeField) {
        value.set(self.out, self.start + position);
    }

    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.put(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.out.put(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.out.put(value);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.out.put_zeros(count);
    }

    /// Returns the data offset of a message whose only command has this many words.
    pub(super) const fn data_at(word_count: usize) -> u16 {
        (Smb1Header::LENGTH + 1 + 2 * word_count + 2) as u16
    }

    /// Returns the data offset of this command if this many words follow.
    pub(super) fn data_from_here(&self, word_count: usize) -> u16 {
        (self.position() + 2 * word_count + 2) as u16
    }

    /// Ends the parameters and begins the data.
    pub(super) fn data(&mut self) {
        let words = self.words.unwrap_or_default();
        // The count fits a byte: NT_CREATE_ANDX responses, with 34 words, have the longest parameters.
        self.out[words - 1] = ((self.out.len() - words) / 2) as u8;
        self.byte_count = self.out.len();
        self.u16(0);
    }

    /// Returns the offset from the header.
    pub(super) fn position(&self) -> usize {
        self.out.len() - self.start
    }

    /// Pads with zeros to a multiple of `alignment` from the header.
    pub(super) fn align(&mut self, alignment: usize) {
        self.out.pad(self.start, alignment);
    }

    /// Overwrites the words of this command when all fields are known.
    pub(super) fn set_words(&mut self, words: &[u8]) {
        let at = self.words.unwrap_or_default();
        self.out[at..at + words.len()].copy_from_slice(words);
    }

    /// Appends an aligned part of a transaction. Returns its offset from the header and its length.
    pub(super) fn part(&mut self, put: impl FnOnce(&mut Self)) -> (usize, usize) {
        self.align(4);
        let start = self.position();
        put(self);
        (start, self.position() - start)
    }

    /// Returns the encoded length of bytes, or of text without its terminator.
    pub(super) fn length_of(&self, data: impl EncodedLength) -> u16 {
        data.length(self.unicode) as u16
    }

    /// Appends a terminated string; UTF-16 is aligned.
    pub(super) fn terminated(&mut self, text: WireText<'_>) {
        match text {
            WireText::Str(text) => self.string(text),
            text => self.string(&text.to_string()),
        }
    }

    /// Appends a terminated string; UTF-16 is aligned.
    pub(super) fn string(&mut self, text: &str) {
        if self.unicode {
            self.align(2);
        }
        self.text(text);
        self.terminator();
    }

    /// Appends a terminated OEM string, whatever the header says.
    pub(super) fn oem(&mut self, text: WireText<'_>) {
        match text {
            WireText::Str(text) => self.oem_text(text),
            text => self.oem_text(&text.to_string()),
        }
        self.out.push(0);
    }

    /// Appends a terminated string after a buffer format byte (MS-CIFS 2.2.1.1.1).
    pub(super) fn formatted(&mut self, text: WireText<'_>) {
        self.out.push(STRING);
        self.terminated(text);
    }

    /// Appends a string without alignment and terminator.
    pub(super) fn text(&mut self, text: &str) {
        if self.unicode { self.out.put_utf16(text) } else { self.oem_text(text) }
    }

    pub(super) fn terminator(&mut self) {
        self.bytes(if self.unicode { &[0, 0] } else { &[0] });
    }

    /// Replaces non-ASCII characters, because the server's code page is unknown.
    fn oem_text(&mut self, text: &str) {
        self.out.extend(text.chars().map(|c| if c.is_ascii() { c as u8 } else { b'?' }));
    }
}

/// Data whose length is a field of the message.
pub(super) trait EncodedLength {
    /// Returns the length in bytes; for text, without the terminator.
    fn length(&self, unicode: bool) -> usize;
}

impl EncodedLength for &[u8] {
    fn length(&self, _unicode: bool) -> usize {
        self.len()
    }
}

impl EncodedLength for &str {
    fn length(&self, unicode: bool) -> usize {
        if unicode { 2 * self.encode_utf16().count() } else { self.chars().count() }
    }
}

impl EncodedLength for WireText<'_> {
    fn length(&self, unicode: bool) -> usize {
        match self {
            WireText::Str(text) => text.length(unicode),
            text => text.to_string().as_str().length(unicode),
        }
    }
}

//! Puts a message together: header; of each command parameter words and their count, data bytes and theirs (MS-CIFS 2.2.3).

use super::super::{Smb1Command, Smb1Header};
use super::view::STRING;
use super::{Smb1Message, WireText};
use crate::codec::{FixedSizeField, Put};

/// Appends one message to a buffer, command by command. Of each, parameters come first; `Writer::data` ends them.
#[derive(Debug)]
pub struct Smb1MessageWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Where the header is in the buffer.
    start: usize,
    /// Where the parameters of the last command are, behind their count, once there is one.
    words: Option<usize>,
    /// Where ByteCount is, once the data began.
    byte_count: usize,
    unicode: bool,
}

impl<'a> Smb1MessageWriter<'a> {
    /// Begins a message.
    pub fn new(header: &Smb1Header, out: &'a mut Vec<u8>) -> Smb1MessageWriter<'a> {
        let start = out.len();
        header.emit(out);
        Smb1MessageWriter { out, start, words: None, byte_count: 0, unicode: header.is_unicode() }
    }

    /// Adds a command, and links the one before with it, which must be one that others may follow (AndX).
    pub fn add<M: Smb1Message + ?Sized>(&mut self, message: &M) {
        self.begin(M::COMMAND);
        message.body(self);
        self.end();
    }

    /// Adds a command without parameters and data.
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
        // Of a large write, ByteCount holds the low half (MS-SMB 2.2.4.3.1).
        ((self.out.len() - self.byte_count - 2) as u16).set(self.out, self.byte_count);
    }

    /// Writes over a field of the header.
    pub fn set(&mut self, position: usize, value: impl FixedSizeField) {
        value.set(self.out, self.start + position);
    }

    /// What it appends to.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// One byte.
    pub(super) fn u8(&mut self, value: u8) {
        self.out.put(value);
    }

    /// Two bytes.
    pub(super) fn u16(&mut self, value: u16) {
        self.out.put(value);
    }

    /// Four bytes.
    pub(super) fn u32(&mut self, value: u32) {
        self.out.put(value);
    }

    /// Bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// So many zeros.
    pub(super) fn zeros(&mut self, count: usize) {
        self.out.put_zeros(count);
    }

    /// Where the data of a message's first command begin, were there this many words.
    pub(super) const fn data_at(word_count: usize) -> u16 {
        (Smb1Header::LENGTH + 1 + 2 * word_count + 2) as u16
    }

    /// Where the data of this command begin, with this many words to come.
    pub(super) fn data_from_here(&self, word_count: usize) -> u16 {
        (self.position() + 2 * word_count + 2) as u16
    }

    /// Ends the parameters and begins the data.
    pub(super) fn data(&mut self) {
        let words = self.words.unwrap_or_default();
        // The longest parameters are those of an answer to NT_CREATE_ANDX, 34 words.
        self.out[words - 1] = ((self.out.len() - words) / 2) as u8;
        self.byte_count = self.out.len();
        self.u16(0);
    }

    /// Bytes since the beginning of the header: what offsets count from.
    pub(super) fn position(&self) -> usize {
        self.out.len() - self.start
    }

    /// Zeros up to a multiple of `alignment` from the header.
    pub(super) fn align(&mut self, alignment: usize) {
        self.out.pad(self.start, alignment);
    }

    /// Writes the words of this command again, once all is known that they tell.
    pub(super) fn set_words(&mut self, words: &[u8]) {
        let at = self.words.unwrap_or_default();
        self.out[at..at + words.len()].copy_from_slice(words);
    }

    /// Appends a part of a transaction; where it is, from the header, and how long.
    pub(super) fn part(&mut self, put: impl FnOnce(&mut Self)) -> (usize, usize) {
        self.align(4);
        let start = self.position();
        put(self);
        (start, self.position() - start)
    }

    /// Bytes of data, or of text without its terminator.
    pub(super) fn length_of(&self, data: impl EncodedLength) -> u16 {
        data.length(self.unicode) as u16
    }

    /// A terminated string, aligned where it is UTF-16.
    pub(super) fn terminated(&mut self, text: WireText<'_>) {
        match text {
            WireText::Str(text) => self.string(text),
            text => self.string(&text.to_string()),
        }
    }

    /// A terminated string, aligned where it is UTF-16.
    pub(super) fn string(&mut self, text: &str) {
        if self.unicode {
            self.align(2);
        }
        self.text(text);
        self.terminator();
    }

    /// A terminated OEM string, whatever the header says.
    pub(super) fn oem(&mut self, text: WireText<'_>) {
        match text {
            WireText::Str(text) => self.oem_text(text),
            text => self.oem_text(&text.to_string()),
        }
        self.out.push(0);
    }

    /// A terminated string behind a buffer format byte (MS-CIFS 2.2.1.1.1).
    pub(super) fn formatted(&mut self, text: WireText<'_>) {
        self.out.push(STRING);
        self.terminated(text);
    }

    /// A string without alignment and terminator.
    pub(super) fn text(&mut self, text: &str) {
        if self.unicode { self.out.put_utf16(text) } else { self.oem_text(text) }
    }

    /// The end of a string.
    pub(super) fn terminator(&mut self) {
        self.bytes(if self.unicode { &[0, 0] } else { &[0] });
    }

    /// The code page of the server is not known: only ASCII goes through.
    fn oem_text(&mut self, text: &str) {
        self.out.extend(text.chars().map(|c| if c.is_ascii() { c as u8 } else { b'?' }));
    }
}

/// What another field tells the length of.
pub(super) trait EncodedLength {
    /// In bytes; of text without its terminator.
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

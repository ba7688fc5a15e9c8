//! Puts a message together: header, parameter words and their count, data bytes and theirs (MS-CIFS 2.2.3).

use super::super::{Command, Header};

/// Appends one message to a buffer. Parameters come first; `Writer::data` ends them.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Where the header is in the buffer.
    start: usize,
    /// Where ByteCount is, once the data began.
    byte_count: Option<usize>,
    unicode: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(header: &Header, out: &'a mut Vec<u8>) -> Writer<'a> {
        let start = out.len();
        header.emit(out);
        out.push(0);
        Writer { out, start, byte_count: None, unicode: header.is_unicode() }
    }

    /// One byte.
    pub(super) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Two bytes.
    pub(super) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Four bytes.
    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Where the parameters end, were there this many words: ByteCount follows.
    pub(super) const fn words_end(word_count: usize) -> usize {
        Header::LENGTH + 1 + 2 * word_count
    }

    /// AndXCommand, AndXReserved and AndXOffset of a chain's end.
    pub(super) fn no_andx(&mut self) {
        self.bytes(&[Command::NO_ANDX.0, 0, 0, 0]);
    }

    /// Ends the parameters and begins the data.
    pub(super) fn data(&mut self) {
        let words = self.start + Header::LENGTH;
        // The longest parameters are those of NT_CREATE_ANDX, 24 words.
        self.out[words] = ((self.out.len() - words - 1) / 2) as u8;
        self.byte_count = Some(self.out.len());
        self.u16(0);
    }

    /// Bytes since the beginning of the header: what offsets count from.
    pub(super) fn position(&self) -> usize {
        self.out.len() - self.start
    }

    /// Zeros up to a multiple of `alignment` from the header.
    pub(super) fn align(&mut self, alignment: usize) {
        while !self.position().is_multiple_of(alignment) {
            self.out.push(0);
        }
    }

    /// Whether strings are UTF-16.
    pub(super) fn is_unicode(&self) -> bool {
        self.unicode
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
    pub(super) fn oem(&mut self, text: &str) {
        self.oem_text(text);
        self.out.push(0);
    }

    /// A terminated string behind a buffer format byte (MS-CIFS 2.2.1.1.1).
    pub(super) fn formatted_string(&mut self, text: &str) {
        self.out.push(0x04);
        self.string(text);
    }

    /// A string without alignment and terminator.
    pub(super) fn text(&mut self, text: &str) {
        if self.unicode {
            for unit in text.encode_utf16() {
                self.u16(unit);
            }
        } else {
            self.oem_text(text);
        }
    }

    /// The end of a string.
    pub(super) fn terminator(&mut self) {
        self.bytes(if self.unicode { &[0, 0] } else { &[0] });
    }

    /// Replaces two bytes at a position counted from the header.
    pub(super) fn patch_u16(&mut self, position: usize, value: u16) {
        let at = self.start + position;
        self.out[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Ends the message.
    pub(super) fn end(mut self) {
        if self.byte_count.is_none() {
            self.data();
        }
        if let Some(at) = self.byte_count {
            // Of a large write, ByteCount holds the low half (MS-SMB 2.2.4.3.1).
            let count = (self.out.len() - at - 2) as u16;
            self.out[at..at + 2].copy_from_slice(&count.to_le_bytes());
        }
    }

    /// The code page of the server is not known: only ASCII goes through.
    fn oem_text(&mut self, text: &str) {
        self.out.extend(text.chars().map(|c| if c.is_ascii() { c as u8 } else { b'?' }));
    }
}

/// Bytes that a path takes without its terminator.
pub(super) fn text_length(text: &str, unicode: bool) -> usize {
    if unicode { 2 * text.encode_utf16().count() } else { text.chars().count() }
}

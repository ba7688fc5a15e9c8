//! Common machinery of all SMB1 messages: the macro that generates a message's type, parser and emitter from a table of
//! fields, the writer that it emits to and the view that it parses from (MS-CIFS 2.2.3).

use super::WireText;
use crate::bytes::{array_at, before_terminator, u8_at, u16_at};
use crate::codec::{FixedSizeField, Put};
use crate::smb1::header::STRING;
use crate::smb1::{Block, Smb1Command, Smb1Header};

pub trait Smb1Message {
    const COMMAND: Smb1Command;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>);

    /// Appends a complete message: the header with this command, parameters, data.
    fn emit(&self, header: &Smb1Header, out: &mut Vec<u8>) {
        Smb1MessageWriter::new(&Smb1Header { command: Self::COMMAND, ..*header }, out).add(self);
    }
}

/// Declares a message from its number of words and a table of fields with their offsets in the words. AndX fields need
/// no entry. `with` introduces the data in order: `text`, `formatted` (after a buffer format byte) and `oem` are
/// terminated strings, `bytes` is the rest. `bytes = 14` and `text = 5` name the offset of the field with their
/// length.
///
/// Each field gets a function of the same name that reads it from possibly truncated words; for data with a length,
/// the function returns the length.
macro_rules! message {
    ($(#[$meta:meta])* $name:ident<$life:lifetime>: $($rest:tt)*) => {
        message!(@define [$(#[$meta])*] $name [<$life>] [$life] $($rest)*);
    };
    ($(#[$meta:meta])* $name:ident: $($rest:tt)*) => {
        message!(@define [$(#[$meta])*] $name [] ['_] $($rest)*);
    };
    (
        @define [$($meta:tt)*] $name:ident [$($generics:tt)*] [$life:lifetime] $command:ident, $words:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty = $offset:literal, )*
        }
        $(with {
            $( $(#[$data_meta:meta])* $data:ident: $kind:ident $(= $length:literal)?, )*
        })?
    ) => {
        $($meta)*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name $($generics)* {
            $( $(#[$field_meta])* pub $field: $type, )*
            $($( $(#[$data_meta])* pub $data: message!(@type $kind $life), )*)?
        }

        impl $($generics)* $name $($generics)* {
            pub const WORDS: usize = $words;

            pub fn parse(message: &$life [u8]) -> Result<Self, $crate::smb1::messages::Malformed> {
                let command = $crate::smb1::Smb1Command::$command;
                Self::read(&$crate::smb1::messages::message::View::parse(message, command)?)
            }

            pub fn parse_block(block: &$crate::smb1::Block<$life>) -> Result<Self, $crate::smb1::messages::Malformed> {
                Self::read(&block.into())
            }

            #[allow(unused_variables)]
            fn read(
                view: &$crate::smb1::messages::message::View<$life>,
            ) -> Result<Self, $crate::smb1::messages::Malformed> {
                $(let mut at = 0; $(let $data = message!(@read $kind view at $($length)?);)*)?
                Ok($name { $( $field: view.value($offset)?, )* $($($data,)*)? })
            }

            $(
                #[doc = concat!("Reads `", stringify!($field), "` of possibly truncated words.")]
                #[inline]
                pub fn $field(words: &[u8]) -> Option<$type> {
                    $crate::codec::FixedSizeField::at(words, $offset)
                }
            )*

            $($($(
                #[doc = concat!("Reads the length of `", stringify!($data), "` of possibly truncated words.")]
                #[inline]
                pub fn $data(words: &[u8]) -> Option<u16> {
                    $crate::codec::FixedSizeField::at(words, $length)
                }
            )?)*)?

            /// Returns the words, with zero lengths of the data.
            fn words(&self) -> [u8; 2 * $words] {
                let mut words = [0; 2 * $words];
                $crate::smb1::messages::message::begin($crate::smb1::Smb1Command::$command, &mut words);
                $( $crate::codec::FixedSizeField::set(self.$field, &mut words, $offset); )*
                words
            }

            #[cfg(test)]
            #[allow(unused_variables)]
            pub(super) fn any(words: &[u8], text: &$life str, bytes: &$life [u8]) -> Self {
                $name {
                    $( $field: $crate::codec::FixedSizeField::at(words, $offset).expect("room for all words"), )*
                    $($( $data: message!(@any $kind text bytes), )*)?
                }
            }
        }

        impl $($generics)* $crate::smb1::messages::Smb1Message for $name $($generics)* {
            const COMMAND: $crate::smb1::Smb1Command = $crate::smb1::Smb1Command::$command;

            fn body(&self, writer: &mut $crate::smb1::messages::Smb1MessageWriter<'_>) {
                #[allow(unused_mut)]
                let mut words = self.words();
                $($($( $crate::codec::FixedSizeField::set(writer.length_of(self.$data), &mut words, $length); )?)*)?
                writer.bytes(&words);
                writer.data();
                $($( message!(@emit $kind self.$data, writer); )*)?
            }
        }
    };
    (@type bytes $life:lifetime) => { &$life [u8] };
    (@type $kind:ident $life:lifetime) => { $crate::smb1::messages::WireText<$life> };
    (@read bytes $view:ident $at:ident $length:literal) => { $view.take(&mut $at, $view.value::<u16>($length)?)? };
    (@read bytes $view:ident $at:ident) => { $view.rest(&mut $at) };
    (@read text $view:ident $at:ident $($length:literal)?) => { $view.text(&mut $at) };
    (@read oem $view:ident $at:ident) => { $view.oem_text(&mut $at) };
    (@read formatted $view:ident $at:ident) => { $view.formatted(&mut $at)? };
    (@any bytes $text:ident $bytes:ident) => { $bytes };
    (@any $kind:ident $text:ident $bytes:ident) => { $text.into() };
    (@emit bytes $self:ident.$data:ident, $writer:ident) => { $writer.bytes($self.$data) };
    (@emit text $self:ident.$data:ident, $writer:ident) => { $writer.terminated($self.$data) };
    (@emit oem $self:ident.$data:ident, $writer:ident) => { $writer.oem($self.$data) };
    (@emit formatted $self:ident.$data:ident, $writer:ident) => { $writer.formatted($self.$data) };
}

pub(super) use message;

/// Terminates the AndX chain in the words of an AndX command.
pub(super) fn begin(command: Smb1Command, words: &mut [u8]) {
    if let (true, [next, ..]) = (command.is_andx(), words) {
        *next = Smb1Command::NO_ANDX.0;
    }
}

/// Appends one message to a buffer, command by command. Parameters come first; `Smb1MessageWriter::data` ends them.
#[derive(Debug)]
pub struct Smb1MessageWriter<'a> {
    out: &'a mut Vec<u8>,
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

    pub(super) fn data(&mut self) {
        let words = self.words.unwrap_or_default();
        // The count fits a byte: NT_CREATE_ANDX responses, with 34 words, have the longest parameters.
        self.out[words - 1] = ((self.out.len() - words) / 2) as u8;
        self.byte_count = self.out.len();
        self.u16(0);
    }

    pub(super) fn position(&self) -> usize {
        self.out.len() - self.start
    }

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

    pub(super) fn length_of(&self, data: impl EncodedLength) -> u16 {
        data.length(self.unicode) as u16
    }

    pub(super) fn terminated(&mut self, text: WireText<'_>) {
        match text {
            WireText::Str(text) => self.string(text),
            text => self.string(&text.to_string()),
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        if self.unicode {
            self.align(2);
        }
        self.text(text);
        self.terminator();
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{command} response: {what}")]
pub struct Malformed {
    pub command: Smb1Command,
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

    pub(super) fn take(&self, at: &mut usize, length: u16) -> Result<&'a [u8], Malformed> {
        let start = *at;
        *at += usize::from(length);
        self.data.get(start..*at).ok_or(self.wrong("data cut off"))
    }

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

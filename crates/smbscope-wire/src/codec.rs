//! Building blocks of the message tables: fixed-size fields, and texts and lists whose length another field holds.
//!
//! A [`FixedSizeField`] is read and written at an offset; a [`Buffer`] is parsed from the offset and length that its
//! message states, and emitted after the fields.

use crate::bytes::{array_at, oem_text, u16_at, utf16_text};
use crate::names::{Fsctl, InfoLevel};
use std::fmt;

pub trait Put {
    fn put<T: FixedSizeField>(&mut self, value: T);
    fn put_u8(&mut self, value: u8) {
        self.put(value);
    }
    fn put_u16(&mut self, value: u16) {
        self.put(value);
    }
    fn put_u32(&mut self, value: u32) {
        self.put(value);
    }
    fn put_u64(&mut self, value: u64) {
        self.put(value);
    }
    fn put_bytes(&mut self, bytes: &[u8]);
    fn put_zeros(&mut self, count: usize);
    /// Appends UTF-16LE without a terminator.
    fn put_utf16(&mut self, text: &str);
    /// Appends zeros until the length since `start` is a multiple of `unit`.
    fn pad(&mut self, start: usize, unit: usize);
}

impl Put for Vec<u8> {
    fn put<T: FixedSizeField>(&mut self, value: T) {
        let at = self.len();
        self.resize(at + T::LENGTH, 0);
        value.set(self, at);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    fn put_utf16(&mut self, text: &str) {
        self.reserve(2 * text.len());
        text.encode_utf16().for_each(|unit| self.extend_from_slice(&unit.to_le_bytes()));
    }

    fn pad(&mut self, start: usize, unit: usize) {
        let length = (self.len() - start).next_multiple_of(unit);
        self.resize(start + length, 0);
    }
}

pub trait FixedSizeField: Copy {
    const LENGTH: usize;

    /// Reads the field. Returns `None` if its bytes are missing.
    fn at(bytes: &[u8], offset: usize) -> Option<Self>;

    /// Overwrites the field in place. Panics if the bytes do not exist yet.
    fn set(self, bytes: &mut [u8], offset: usize);
}

pub trait LengthField: FixedSizeField {
    /// Converts a length, saturating at the maximum. The peer rejects such a message, and no valid name is that long.
    fn from_usize(length: usize) -> Self;

    fn to_usize(self) -> usize;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FixedSizeField for $type {
            const LENGTH: usize = size_of::<$type>();

            #[inline]
            fn at(bytes: &[u8], offset: usize) -> Option<$type> {
                array_at(bytes, offset).map(<$type>::from_le_bytes)
            }

            #[inline]
            fn set(self, bytes: &mut [u8], offset: usize) {
                bytes[offset..offset + Self::LENGTH].copy_from_slice(&self.to_le_bytes());
            }
        }

        impl LengthField for $type {
            #[inline]
            fn from_usize(length: usize) -> $type {
                <$type>::try_from(length).unwrap_or(<$type>::MAX)
            }

            #[inline]
            fn to_usize(self) -> usize {
                usize::try_from(self).unwrap_or(usize::MAX)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

impl<const N: usize> FixedSizeField for [u8; N] {
    const LENGTH: usize = N;

    fn at(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
        array_at(bytes, offset)
    }

    fn set(self, bytes: &mut [u8], offset: usize) {
        bytes[offset..offset + N].copy_from_slice(&self);
    }
}

/// Times of creation, last access, last write and change, as FILETIME.
impl FixedSizeField for [u64; 4] {
    const LENGTH: usize = 32;

    fn at(bytes: &[u8], offset: usize) -> Option<[u64; 4]> {
        let time = |index: usize| u64::at(bytes, offset + 8 * index);
        Some([time(0)?, time(1)?, time(2)?, time(3)?])
    }

    fn set(self, bytes: &mut [u8], offset: usize) {
        self.iter().enumerate().for_each(|(index, time)| time.set(bytes, offset + 8 * index));
    }
}

impl FixedSizeField for Fsctl {
    const LENGTH: usize = 4;

    fn at(bytes: &[u8], offset: usize) -> Option<Fsctl> {
        u32::at(bytes, offset).map(Fsctl)
    }

    fn set(self, bytes: &mut [u8], offset: usize) {
        self.0.set(bytes, offset);
    }
}

/// InfoType and FileInfoClass (MS-SMB2 2.2.37, 2.2.39).
impl FixedSizeField for InfoLevel {
    const LENGTH: usize = 2;

    fn at(bytes: &[u8], offset: usize) -> Option<InfoLevel> {
        <[u8; 2]>::at(bytes, offset).map(|[info_type, class]| InfoLevel::from_wire(info_type, class))
    }

    fn set(self, bytes: &mut [u8], offset: usize) {
        <[u8; 2]>::from(self.to_wire()).set(bytes, offset);
    }
}

/// Part of a message whose length is stated by fields of the message.
pub trait Buffer<'a>: Sized {
    /// Parses a part at an offset from the header, with its length or count. Returns `None` if incomplete.
    fn parse(message: &'a [u8], offset: usize, length: usize) -> Option<Self>;

    /// Appends to a message whose header begins at `header`. Returns the length or count for the field.
    fn emit(&self, header: usize, out: &mut Vec<u8>) -> usize;

    fn is_empty(&self) -> bool;

    #[cfg(test)]
    fn any(bytes: &'a [u8]) -> Self {
        Self::parse(bytes, 0, bytes.len()).expect("all bytes are there")
    }
}

/// Returns `length` bytes at `offset` from the header.
pub(crate) fn buffer(message: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    if length == 0 {
        return Some(&[]);
    }
    message.get(offset..offset.checked_add(length)?)
}

impl<'a> Buffer<'a> for &'a [u8] {
    fn parse(message: &'a [u8], offset: usize, length: usize) -> Option<&'a [u8]> {
        buffer(message, offset, length)
    }

    fn emit(&self, _header: usize, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(self);
        self.len()
    }

    fn is_empty(&self) -> bool {
        <[u8]>::is_empty(self)
    }
}

/// Text without its terminator, borrowed from a message or about to be emitted.
#[derive(Debug, Clone, Copy)]
pub enum WireText<'a> {
    Str(&'a str),
    Utf16(&'a [u8]),
    /// Text of an SMB1 message in the server's code page.
    Oem(&'a [u8]),
}

impl Default for WireText<'_> {
    fn default() -> Self {
        WireText::Str("")
    }
}

impl<'a> From<&'a str> for WireText<'a> {
    fn from(text: &'a str) -> WireText<'a> {
        WireText::Str(text)
    }
}

impl PartialEq for WireText<'_> {
    fn eq(&self, other: &WireText<'_>) -> bool {
        match (self, other) {
            (WireText::Utf16(one), WireText::Utf16(other)) => one == other,
            _ => self.to_string() == other.to_string(),
        }
    }
}

impl Eq for WireText<'_> {}

impl fmt::Display for WireText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireText::Str(text) => f.pad(text),
            WireText::Utf16(bytes) => f.pad(&utf16_text(bytes)),
            WireText::Oem(bytes) => f.pad(&oem_text(bytes)),
        }
    }
}

/// Encodes as UTF-16LE.
impl<'a> Buffer<'a> for WireText<'a> {
    fn parse(message: &'a [u8], offset: usize, length: usize) -> Option<WireText<'a>> {
        buffer(message, offset, length).map(WireText::Utf16)
    }

    fn emit(&self, _header: usize, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        match self {
            WireText::Str(text) => out.put_utf16(text),
            WireText::Utf16(bytes) => out.extend_from_slice(bytes),
            WireText::Oem(bytes) => out.put_utf16(&oem_text(bytes)),
        }
        out.len() - start
    }

    fn is_empty(&self) -> bool {
        matches!(self, WireText::Str("") | WireText::Utf16([]) | WireText::Oem([]))
    }
}

/// List of values whose count is in the message, borrowed from a message or about to be emitted.
#[derive(Debug, Clone, Copy)]
pub enum List<'a, T> {
    Values(&'a [T]),
    Bytes(&'a [u8]),
}

impl<'a, T: FixedSizeField> List<'a, T> {
    pub fn iter(self) -> impl Iterator<Item = T> + use<'a, T> {
        let (values, bytes) = match self {
            List::Values(values) => (values, &[][..]),
            List::Bytes(bytes) => (&[][..], bytes),
        };
        values.iter().copied().chain(bytes.chunks_exact(T::LENGTH).filter_map(|value| T::at(value, 0)))
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        List::Values(&[])
    }
}

impl<'a, T> From<&'a [T]> for List<'a, T> {
    fn from(values: &'a [T]) -> List<'a, T> {
        List::Values(values)
    }
}

impl<T: FixedSizeField + PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: FixedSizeField + Eq> Eq for List<'_, T> {}

impl<'a, T: FixedSizeField> Buffer<'a> for List<'a, T> {
    fn parse(message: &'a [u8], offset: usize, count: usize) -> Option<List<'a, T>> {
        buffer(message, offset, count.checked_mul(T::LENGTH)?).map(List::Bytes)
    }

    fn emit(&self, _header: usize, out: &mut Vec<u8>) -> usize {
        self.iter().map(|value| out.put(value)).count()
    }

    fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    #[cfg(test)]
    fn any(bytes: &'a [u8]) -> Self {
        List::Bytes(&bytes[..bytes.len() / T::LENGTH * T::LENGTH])
    }
}

/// Appends a list prefixed with its count as a `u16`.
pub(crate) fn put_counted<T: FixedSizeField>(list: List<'_, T>, out: &mut Vec<u8>) {
    let at = out.len();
    out.put(0u16);
    let count = list.emit(at, out);
    u16::from_usize(count).set(out, at);
}

pub(crate) fn counted<T: FixedSizeField>(bytes: &[u8], offset: usize) -> Option<List<'_, T>> {
    List::parse(bytes, offset + 2, u16_at(bytes, offset)?.into())
}

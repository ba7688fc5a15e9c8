//! Little-endian fields and texts of a slice that may be too short: a field is `None` if its bytes are missing, and a
//! name states how much of it is.

use std::ops::Range;

pub fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(array_at(bytes, offset)?))
}

pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(array_at(bytes, offset)?))
}

pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(array_at(bytes, offset)?))
}

pub fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

/// Decodes UTF-16LE. Unpaired surrogates become U+FFFD; a trailing odd byte is dropped.
pub fn utf16_text(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Returns the text before the terminator, and true if there was a terminator; otherwise all of it and false.
pub fn before_terminator(bytes: &[u8], unicode: bool) -> (&[u8], bool) {
    let end = match unicode {
        true => bytes.chunks_exact(2).position(|unit| unit == [0, 0]).map(|units| 2 * units),
        false => bytes.iter().position(|byte| *byte == 0),
    };
    let all = if unicode { bytes.len() & !1 } else { bytes.len() };
    (&bytes[..end.unwrap_or(all)], end.is_some())
}

pub fn text(bytes: &[u8], unicode: bool) -> String {
    if unicode { utf16_text(bytes) } else { oem_text(bytes) }
}

/// Decodes OEM text. Non-ASCII bytes become U+FFFD, because the code page is not on the wire.
pub fn oem_text(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| if b.is_ascii() { char::from(b) } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// A name, possibly truncated by a snap length or a gap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedName {
    pub text: String,
    /// Upper bound for the number of bytes that hold the missing rest.
    pub missing: usize,
}

impl CapturedName {
    /// Returns a name that was not captured at all.
    pub fn hidden(missing: usize) -> CapturedName {
        CapturedName { text: String::new(), missing }
    }

    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Decodes a name from a range that may extend beyond the captured message.
    pub(crate) fn in_range(message: &[u8], range: Range<usize>, unicode: bool) -> CapturedName {
        let missing = if range.is_empty() { 0 } else { range.end.saturating_sub(message.len()) };
        let here = range.start.min(message.len())..range.end.min(message.len());
        CapturedName { text: text(message.get(here).unwrap_or_default(), unicode), missing }
    }
}

impl From<String> for CapturedName {
    fn from(text: String) -> CapturedName {
        CapturedName { text, missing: 0 }
    }
}

impl From<&str> for CapturedName {
    fn from(text: &str) -> CapturedName {
        CapturedName::from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_beyond_the_end_are_absent() {
        let bytes = [1, 2, 3, 4, 5];
        assert_eq!(u32_at(&bytes, 1), Some(0x0504_0302));
        assert_eq!(u32_at(&bytes, 2), None);
        assert_eq!(u16_at(&bytes, usize::MAX), None);
    }

    #[test]
    fn text_survives_bad_units() {
        assert_eq!(utf16_text(b"a\0\x00\xd8b\0c"), "a\u{fffd}b");
        assert_eq!(oem_text(b"A:\xe4"), "A:\u{fffd}");
    }
}

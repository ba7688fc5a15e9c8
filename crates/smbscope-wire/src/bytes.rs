//! Little-endian fields of a slice that may be too short: `None` if the bytes are missing.

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

/// Decodes UTF-16LE, or else text in an OEM code page.
pub fn text(bytes: &[u8], unicode: bool) -> String {
    if unicode { utf16_text(bytes) } else { oem_text(bytes) }
}

/// Decodes OEM text. Non-ASCII bytes become U+FFFD, because the code page is not on the wire.
pub fn oem_text(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| if b.is_ascii() { char::from(b) } else { char::REPLACEMENT_CHARACTER }).collect()
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

//! Minimal DER parser for security tokens (X.690 section 8): low tag numbers, definite lengths, truncated contents.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// Identifier octet: class, constructed bit and tag number.
    pub tag: u8,
    /// Contents, up to the end of the input.
    pub content: &'a [u8],
    pub whole: bool,
}

/// Returns the first element and the input after it. `None` for high tag numbers and indefinite lengths, which these
/// protocols do not use.
pub fn read(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (octets.iter().fold(0, |length, &octet| length << 8 | usize::from(octet)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at(length.min(rest.len()));
    Some((Element { tag, content, whole: content.len() == length }, rest))
}

pub fn expect(input: &[u8], tag: u8) -> Option<&[u8]> {
    read(input).filter(|(element, _)| element.tag == tag).map(|(element, _)| element.content)
}

pub fn find(input: &[u8], tag: u8) -> Option<&[u8]> {
    elements(input).find(|element| element.tag == tag).map(|element| element.content)
}

pub fn elements(mut input: &[u8]) -> impl Iterator<Item = Element<'_>> {
    std::iter::from_fn(move || {
        let (element, rest) = read(input)?;
        input = rest;
        Some(element)
    })
}

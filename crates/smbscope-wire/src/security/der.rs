//! Just enough DER to walk down a token (X.690 section 8): low tags, definite lengths, contents that may be cut off.

/// An element; `content` holds what there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// Identifier octet: class, constructed bit and tag number.
    pub tag: u8,
    /// The contents, up to where the input ends.
    pub content: &'a [u8],
    /// Whether the contents are all there.
    pub whole: bool,
}

/// The first element of `input` and what follows it. `None` for high tag numbers and indefinite lengths, which DER
/// tokens of these protocols have no use for.
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

/// The contents of the first element, if it has this tag.
pub fn expect(input: &[u8], tag: u8) -> Option<&[u8]> {
    read(input).filter(|(element, _)| element.tag == tag).map(|(element, _)| element.content)
}

/// The contents of the first element with this tag among the elements of `input`.
pub fn find(input: &[u8], tag: u8) -> Option<&[u8]> {
    elements(input).find(|element| element.tag == tag).map(|element| element.content)
}

/// The elements that stand in `input` one after the other.
pub fn elements(mut input: &[u8]) -> impl Iterator<Item = Element<'_>> {
    std::iter::from_fn(move || {
        let (element, rest) = read(input)?;
        input = rest;
        Some(element)
    })
}

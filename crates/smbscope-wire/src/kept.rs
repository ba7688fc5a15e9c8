//! Parts of a message that a slim copy of a capture retains: the fields that the analysis reads, and names, which an
//! anonymous copy replaces.
//!
//! Everything else is dropped: file content, passwords, challenge responses, signatures.

use std::ops::Range;

/// Limit for the parsed entries of a list.
pub(crate) const MAX_ENTRIES: usize = 64;

/// Byte ranges of a message, counted from its header. They may extend beyond the captured bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedRanges {
    /// Ranges copied unchanged.
    pub fields: Vec<Range<usize>>,
    pub names: Vec<NamePlace>,
    /// IPv4 addresses (4 bytes) and IPv6 addresses (16 bytes).
    pub addresses: Vec<Range<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePlace {
    /// Bytes without the terminator.
    pub range: Range<usize>,
    /// True for UTF-16, false for an OEM code page.
    pub unicode: bool,
    pub of: NameOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOf {
    /// Path relative to the share, or a search pattern.
    Path,
    /// `\\server\share`, possibly with a path.
    Unc,
    User,
    /// Domain or Kerberos realm.
    Domain,
    Host,
}

impl RetainedRanges {
    pub(crate) fn field(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.fields.push(range);
        }
    }

    pub(crate) fn name(&mut self, of: NameOf, unicode: bool, range: Range<usize>) {
        if !range.is_empty() {
            self.names.push(NamePlace { range, unicode, of });
        }
    }

    pub(crate) fn utf16(&mut self, of: NameOf, (start, length): (usize, usize)) {
        self.name(of, true, start..start.saturating_add(length));
    }

    /// Adds the ranges of a nested structure that begins at `start`.
    pub(crate) fn absorb(&mut self, other: RetainedRanges, start: usize) {
        let moved = |range: Range<usize>| range.start.saturating_add(start)..range.end.saturating_add(start);
        self.fields.extend(other.fields.into_iter().map(moved));
        self.addresses.extend(other.addresses.into_iter().map(moved));
        let names = other.names.into_iter().map(|name| NamePlace { range: moved(name.range.clone()), ..name });
        self.names.extend(names);
    }
}

/// Returns the position of `part`, a subslice of `whole`.
pub(crate) fn place_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len());
    start..start + part.len()
}

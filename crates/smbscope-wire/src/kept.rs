//! What has to stay of a message for the analysis to read the same of it: fields, and names, which may be replaced.
//!
//! Whatever is in none of the places is not looked at, or need not be kept: file content, passwords, answers to
//! challenges, signatures.

use std::ops::Range;

/// Places of a message, counted from its header. They may reach beyond what was captured of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedRanges {
    /// Bytes that stay as they are.
    pub fields: Vec<Range<usize>>,
    /// Texts that tell who, where and what.
    pub names: Vec<NamePlace>,
    /// Addresses of IPv4 (4 bytes) and IPv6 (16 bytes).
    pub addresses: Vec<Range<usize>>,
}

/// Where a name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePlace {
    /// Its bytes, without an end mark.
    pub range: Range<usize>,
    /// In UTF-16, or else in an OEM code page.
    pub unicode: bool,
    /// What it names.
    pub of: NameOf,
}

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOf {
    /// A file, from the root of its share on, or what its name must match.
    Path,
    /// `\\server\share`, and what may follow.
    Unc,
    /// Who logs on.
    User,
    /// A domain, or a Kerberos realm.
    Domain,
    /// A computer.
    Host,
}

impl RetainedRanges {
    /// Keeps bytes as they are.
    pub(crate) fn field(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.fields.push(range);
        }
    }

    /// Keeps a name.
    pub(crate) fn name(&mut self, of: NameOf, unicode: bool, range: Range<usize>) {
        if !range.is_empty() {
            self.names.push(NamePlace { range, unicode, of });
        }
    }

    /// Takes over places that count from `start`.
    pub(crate) fn absorb(&mut self, other: RetainedRanges, start: usize) {
        let moved = |range: Range<usize>| range.start.saturating_add(start)..range.end.saturating_add(start);
        self.fields.extend(other.fields.into_iter().map(moved));
        self.addresses.extend(other.addresses.into_iter().map(moved));
        let names = other.names.into_iter().map(|name| NamePlace { range: moved(name.range.clone()), ..name });
        self.names.extend(names);
    }
}

/// Where `part` is in `whole`, of which it is a part.
pub(crate) fn place_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len());
    start..start + part.len()
}

//! Parts of a message that outlive it: parameters of a request for a replay ([`RequestDetail`]), and the ranges that a slim
//! copy of a capture retains ([`RetainedRanges`]): the fields that the analysis reads, and names, which an anonymous copy
//! replaces. A slim copy drops everything else: file content, passwords, challenge responses, signatures.

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

/// Parameters of a request beyond the file it works on. Sections are MS-SMB2's, followed by MS-CIFS's for SMB1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestDetail {
    /// 2.2.13; 2.2.4.64, and 2.2.4.41 converted to NT terms.
    Create {
        desired_access: u32,
        share_access: u32,
        create_disposition: u32,
        create_options: u32,
        file_attributes: u32,
    },
    QueryDirectory {
        pattern: String,
        /// See [`flags`](crate::smb2::messages::query_directory::flags).
        flags: u8,
    },
    /// InformationLevel of an SMB1 TRANS2 request: find, query or set (2.2.6.2 to 2.2.6.9).
    Level(u16),
    /// 2.2.39: FileEndOfFileInformation; 2.2.6.9, and a core write of zero bytes (2.2.4.12).
    EndOfFile(u64),
    /// 2.2.39: FileDispositionInformation; 2.2.6.9.
    Delete(bool),
    /// 2.2.39: FileRenameInformation; 2.2.4.8.
    Rename {
        /// New path relative to the share.
        path: String,
        replace: bool,
    },
    /// 2.2.26; 2.2.4.32.
    Lock {
        count: u16,
        /// Flags of the first range: 1 shared, 2 exclusive, 4 unlock, 0x10 fail immediately.
        flags: u32,
    },
    QueryInfo {
        additional_information: u32,
    },
}

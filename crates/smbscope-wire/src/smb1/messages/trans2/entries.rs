//! Entries of a directory listing (MS-CIFS 2.2.8.1, MS-SMB 2.2.8.1), laid out as the classes of MS-FSCC 2.4 are.

use super::InformationLevel;
use crate::bytes::{oem_text, u32_at, u64_at, utf16_text};

/// What all levels but the one of names have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Bytes; zero where the level does not say.
    pub end_of_file: u64,
    /// MS-FSCC 2.6; zero where the level does not say.
    pub ext_file_attributes: u32,
    name: &'a [u8],
    unicode: bool,
}

impl DirectoryEntry<'_> {
    /// The name.
    pub fn file_name(&self) -> String {
        if self.unicode { utf16_text(self.name) } else { oem_text(self.name) }
    }

    /// Whether it is the directory itself, or the one above.
    pub fn is_dot(&self) -> bool {
        match self.unicode {
            true => matches!(self.name, [b'.', 0] | [b'.', 0, b'.', 0]),
            false => matches!(self.name, b"." | b".."),
        }
    }

    /// The name as it is on the wire, to go on behind it.
    pub fn raw_name(&self) -> &[u8] {
        self.name
    }
}

/// The entries in an answer's data. The list ends where an entry is cut off.
#[derive(Debug, Clone)]
pub struct DirectoryEntries<'a> {
    data: &'a [u8],
    next: Option<usize>,
    /// Where FileNameLength is, where the name is, and whether there are size and attributes.
    layout: (usize, usize, bool),
    unicode: bool,
}

impl<'a> DirectoryEntries<'a> {
    /// Of this data, which has `level`; no entries for a level that is none of [`find_level`](super::find_level).
    pub fn new(data: &'a [u8], level: InformationLevel, unicode: bool) -> DirectoryEntries<'a> {
        let layout = match level.0 {
            0x0101 => Some((60, 64, true)),
            0x0102 => Some((60, 68, true)),
            0x0103 => Some((8, 12, false)),
            0x0104 => Some((60, 94, true)),
            0x0105 => Some((60, 80, true)),
            0x0106 => Some((60, 104, true)),
            _ => None,
        };
        DirectoryEntries { data, next: layout.map(|_| 0), layout: layout.unwrap_or_default(), unicode }
    }
}

impl<'a> Iterator for DirectoryEntries<'a> {
    type Item = DirectoryEntry<'a>;

    fn next(&mut self) -> Option<DirectoryEntry<'a>> {
        let (length_at, name_at, with_attributes) = self.layout;
        let entry = self.data.get(self.next.take()?..)?;
        let length = u32_at(entry, length_at)? as usize;
        let mut name = entry.get(name_at..name_at.checked_add(length)?)?;
        // Old servers count the terminator.
        while let Some(shorter) = name.strip_suffix(if self.unicode { &[0u8, 0][..] } else { &[0] }) {
            name = shorter;
        }
        let step = u32_at(entry, 0)? as usize;
        self.next = (step >= name_at).then(|| self.data.len() - entry.len() + step);
        let (end_of_file, ext_file_attributes) =
            if with_attributes { (u64_at(entry, 40)?, u32_at(entry, 56)?) } else { (0, 0) };
        Some(DirectoryEntry { end_of_file, ext_file_attributes, name, unicode: self.unicode })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::utf16;
    use super::*;

    /// An entry of SMB_FIND_FILE_BOTH_DIRECTORY_INFO in the order of MS-CIFS 2.2.8.1.7.
    fn both(next: u32, size: u64, attributes: u32, name: &[u8]) -> Vec<u8> {
        let mut entry = next.to_le_bytes().to_vec();
        entry.resize(40, 0);
        entry.extend(size.to_le_bytes());
        entry.extend([0; 8]);
        entry.extend(attributes.to_le_bytes());
        entry.extend((name.len() as u32).to_le_bytes());
        // EaSize, ShortNameLength, Reserved, ShortName.
        entry.resize(94, 0);
        entry.extend(name);
        entry
    }

    #[test]
    fn entries_follow_each_other_by_their_offsets() {
        let mut data = both(100, 0, 0x10, &utf16("."));
        data.resize(100, 0);
        data.extend(both(0, 77, 0x20, &utf16("a.b")));
        let entries: Vec<_> = DirectoryEntries::new(&data, InformationLevel(0x0104), true).collect();
        assert_eq!(entries.len(), 2);
        assert!(entries[0].is_dot() && !entries[1].is_dot());
        assert_eq!((entries[1].file_name().as_str(), entries[1].end_of_file), ("a.b", 77));
        assert_eq!(entries[1].ext_file_attributes, 0x20);
    }

    #[test]
    fn damaged_lists_end_without_harm() {
        let whole = both(0, 1, 2, &utf16("name"));
        for length in 0..whole.len() {
            assert_eq!(DirectoryEntries::new(&whole[..length], InformationLevel(0x0104), true).count(), 0);
        }
        // An offset that leads back, one that leads out, and a level that is not known.
        let back = both(1, 1, 2, &utf16("name"));
        assert_eq!(DirectoryEntries::new(&back, InformationLevel(0x0104), true).count(), 1);
        let out = both(u32::MAX, 1, 2, &utf16("name"));
        assert_eq!(DirectoryEntries::new(&out, InformationLevel(0x0104), true).count(), 1);
        assert_eq!(DirectoryEntries::new(&whole, InformationLevel(0x0999), true).count(), 0);
    }

    #[test]
    fn names_may_be_oem_and_terminated() {
        let mut data = vec![0; 8];
        data.extend([4, 0, 0, 0]);
        data.extend(b"a.b\0");
        let entry = DirectoryEntries::new(&data, InformationLevel(0x0103), false).next().unwrap();
        assert_eq!((entry.file_name().as_str(), entry.end_of_file), ("a.b", 0));
    }
}

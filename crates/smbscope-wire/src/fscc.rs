//! File and directory structures of MS-FSCC, common to both protocols: entries of directory listings (2.4.8 to 2.4.28),
//! change notifications (2.7.1), and the changes made by SET_INFO and SMB1's TRANS2_SET_FILE_INFORMATION (2.4).

use crate::bytes::{text, u32_at, u64_at, utf16_text};
use crate::codec::{Buffer, FixedSizeField, Put, WireText};
use crate::names::InfoLevel;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Name in UTF-16LE, or in the code page of an old server.
    pub name: &'a [u8],
    /// Zero in classes that hold only names.
    pub end_of_file: u64,
    /// See MS-FSCC 2.6; zero in classes that hold only names.
    pub file_attributes: u32,
    unicode: bool,
}

impl DirectoryEntry<'_> {
    pub fn name_text(&self) -> String {
        text(self.name, self.unicode)
    }
}

/// Iterator over the entries of a response. Ends at the first truncated entry.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryEntries<'a> {
    rest: Option<&'a [u8]>,
    layout: DirectoryEntryLayout,
    unicode: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryEntryLayout {
    name_length: usize,
    name: usize,
    /// True if size and attributes exist, at offsets common to all classes.
    has_size: bool,
}

impl<'a> DirectoryEntries<'a> {
    /// Returns `None` for an unknown class.
    pub fn new(output: &'a [u8], level: InfoLevel) -> Option<DirectoryEntries<'a>> {
        let full = |name| DirectoryEntryLayout { name_length: 60, name, has_size: true };
        let layout = match level {
            InfoLevel::FILE_DIRECTORY_INFORMATION => full(64),
            InfoLevel::FILE_FULL_DIRECTORY_INFORMATION => full(68),
            InfoLevel::FILE_ID_FULL_DIRECTORY_INFORMATION => full(80),
            InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION => full(94),
            InfoLevel::FILE_ID_BOTH_DIRECTORY_INFORMATION => full(104),
            InfoLevel::FILE_NAMES_INFORMATION => DirectoryEntryLayout { name_length: 8, name: 12, has_size: false },
            _ => return None,
        };
        Some(DirectoryEntries { rest: Some(output), layout, unicode: true })
    }

    pub fn in_oem(self) -> DirectoryEntries<'a> {
        DirectoryEntries { unicode: false, ..self }
    }
}

impl<'a> Iterator for DirectoryEntries<'a> {
    type Item = DirectoryEntry<'a>;

    fn next(&mut self) -> Option<DirectoryEntry<'a>> {
        let entry = self.rest.take()?;
        let DirectoryEntryLayout { name_length, name: name_at, has_size } = self.layout;
        let length = u32_at(entry, name_length)? as usize;
        let mut name = entry.get(name_at..name_at.checked_add(length)?)?;
        // Old servers include the terminator in the length.
        while let Some(shorter) = name.strip_suffix(if self.unicode { &[0u8, 0][..] } else { &[0] }) {
            name = shorter;
        }
        let next = u32_at(entry, 0)? as usize;
        if next >= name_at {
            self.rest = entry.get(next..);
        }
        Some(DirectoryEntry {
            name,
            end_of_file: if has_size { u64_at(entry, 40)? } else { 0 },
            file_attributes: if has_size { u32_at(entry, 56)? } else { 0 },
            unicode: self.unicode,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNotifyInformation {
    /// 1 added, 2 removed, 3 modified, 4 renamed from, 5 renamed to.
    pub action: u32,
    pub name: String,
}

const NAME: usize = 12;

/// Iterates over a list of changes. Ends at the first truncated entry.
pub fn changes(list: &[u8]) -> impl Iterator<Item = FileNotifyInformation> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let entry = rest.take()?;
        let next = u32_at(entry, 0)? as usize;
        if next >= NAME {
            rest = entry.get(next..);
        }
        let length = u32_at(entry, 8)? as usize;
        let name = utf16_text(entry.get(NAME..NAME.checked_add(length)?)?);
        Some(FileNotifyInformation { action: u32_at(entry, 4)?, name })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data<'a> {
    /// FileBasicInformation (2.4.7). Zero leaves a time or the attributes unchanged.
    Basic {
        /// Creation, last access, last write and change, as FILETIME.
        times: [u64; 4],
        file_attributes: u32,
    },
    /// FileEndOfFileInformation (2.4.13).
    EndOfFile(u64),
    /// FileAllocationInformation (2.4.4).
    Allocation(u64),
    /// FileDispositionInformation (2.4.11).
    Disposition(bool),
    /// FileRenameInformation for SMB2 (2.4.42.2).
    Rename {
        /// Path relative to the share.
        path: WireText<'a>,
        replace: bool,
    },
}

impl Data<'_> {
    /// Offsets of FileNameLength and FileName in FileRenameInformation.
    const NAME_LENGTH: usize = 16;
    pub(crate) const NAME: usize = 20;

    pub fn level(&self) -> InfoLevel {
        match self {
            Data::Basic { .. } => InfoLevel::FILE_BASIC_INFORMATION,
            Data::EndOfFile(_) => InfoLevel::FILE_END_OF_FILE_INFORMATION,
            Data::Allocation(_) => InfoLevel::FILE_ALLOCATION_INFORMATION,
            Data::Disposition(_) => InfoLevel::FILE_DISPOSITION_INFORMATION,
            Data::Rename { .. } => InfoLevel::FILE_RENAME_INFORMATION,
        }
    }

    /// Returns the range of the new name in a possibly truncated message. `None` unless it lies within `buffer`.
    pub(crate) fn new_name(message: &[u8], buffer: Range<usize>) -> Option<Range<usize>> {
        let here = message.get(..buffer.end.min(message.len()))?;
        let length = u32_at(here, buffer.start + Self::NAME_LENGTH)? as usize;
        let start = buffer.start + Self::NAME;
        let end = start.checked_add(length).filter(|end| *end <= buffer.end)?;
        Some(start..end)
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Data::Basic { times, file_attributes } => {
                out.put(times);
                out.put(file_attributes);
                out.put(0u32);
            }
            Data::EndOfFile(size) | Data::Allocation(size) => out.put(size),
            Data::Disposition(delete) => out.put(u8::from(delete)),
            Data::Rename { path, replace } => {
                let start = out.len();
                out.put(u8::from(replace));
                out.put_zeros(Self::NAME - 1); // Reserved, RootDirectory, FileNameLength
                let length = path.emit(start, out);
                (length as u32).set(out, start + Self::NAME_LENGTH);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(next: u8, name_length: usize, name: usize, letter: u8) -> Vec<u8> {
        let mut bytes = vec![0; name + 2];
        bytes[0] = next;
        if name_length == 60 {
            bytes[40] = 5;
            bytes[56] = 0x10;
        }
        bytes[name_length] = 2;
        bytes[name] = letter;
        bytes
    }

    #[test]
    fn every_class_has_its_name_in_its_place() {
        // MS-FSCC 2.4.10, 2.4.14, 2.4.8, 2.4.17, 2.4.18, 2.4.28
        for (class, name_length, name) in
            [(1, 60, 64), (2, 60, 68), (3, 60, 94), (37, 60, 104), (38, 60, 80), (12, 8, 12)]
        {
            let bytes = entry(0, name_length, name, b'n');
            let read: Vec<_> = DirectoryEntries::new(&bytes, InfoLevel::File(class)).unwrap().collect();
            assert_eq!(read.len(), 1, "class {class}");
            assert_eq!(read[0].name_text(), "n");
            assert_eq!((read[0].end_of_file, read[0].file_attributes), if class == 12 { (0, 0) } else { (5, 0x10) });
        }
        assert!(DirectoryEntries::new(&[], InfoLevel::File(4)).is_none());
    }

    #[test]
    fn entries_end_where_one_is_cut_off() {
        let mut bytes = entry(16, 8, 12, b'a');
        bytes.resize(16, 0);
        bytes.extend(entry(0, 8, 12, b'b'));
        let names = |bytes: &[u8]| DirectoryEntries::new(bytes, InfoLevel::File(12)).unwrap().count();
        assert_eq!(names(&bytes), 2);
        assert_eq!(names(&bytes[..29]), 1);
        bytes[0] = 200;
        assert_eq!(names(&bytes), 1, "the next one is said to be beyond the end");
    }

    const BOTH: InfoLevel = InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION;

    fn entries(bytes: &[u8], level: InfoLevel) -> DirectoryEntries<'_> {
        DirectoryEntries::new(bytes, level).unwrap()
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// An SMB_FIND_FILE_BOTH_DIRECTORY_INFO entry (MS-CIFS 2.2.8.1.7).
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
        let entries: Vec<_> = entries(&data, BOTH).collect();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].name_text(), ".");
        assert_eq!((entries[1].name_text().as_str(), entries[1].end_of_file), ("a.b", 77));
        assert_eq!(entries[1].file_attributes, 0x20);
    }

    #[test]
    fn damaged_lists_end_without_harm() {
        let whole = both(0, 1, 2, &utf16("name"));
        for length in 0..whole.len() {
            assert_eq!(entries(&whole[..length], BOTH).count(), 0);
        }
        // Offsets that point back and beyond the end, and an unknown level.
        let back = both(1, 1, 2, &utf16("name"));
        assert_eq!(entries(&back, BOTH).count(), 1);
        let out = both(u32::MAX, 1, 2, &utf16("name"));
        assert_eq!(entries(&out, BOTH).count(), 1);
        assert!(DirectoryEntries::new(&whole, InfoLevel::File(0x99)).is_none());
    }

    #[test]
    fn names_may_be_oem_and_terminated() {
        let mut data = vec![0; 8];
        data.extend([4, 0, 0, 0]);
        data.extend(b"a.b\0");
        let entry = entries(&data, InfoLevel::FILE_NAMES_INFORMATION).in_oem().next().unwrap();
        assert_eq!((entry.name_text().as_str(), entry.end_of_file), ("a.b", 0));
    }

    #[test]
    fn changes_are_a_list() {
        let mut parameters = vec![16, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0];
        parameters.extend(b"a\0b\0");
        parameters.extend([0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'c', 0]);
        let change = |action, name: &str| FileNotifyInformation { action, name: name.into() };
        assert_eq!(changes(&parameters).collect::<Vec<_>>(), [change(1, "ab"), change(2, "c")]);
        let cut = changes(&parameters[..parameters.len() - 1]);
        assert_eq!(cut.collect::<Vec<_>>(), [change(1, "ab")]);
    }
}

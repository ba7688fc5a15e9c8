//! Metadata of files, directories and the file system (MS-FSCC 2.4 and 2.5): the same for every file.

use smbscope_wire::codec::{FixedSizeField, Put};
use smbscope_wire::names::InfoLevel;

/// 2021-01-01 00:00 UTC as FILETIME, used for all times.
pub(super) const FILETIME: u64 = 132_539_328_000_000_000;
const DIRECTORY: u32 = 0x10;
const ARCHIVE: u32 = 0x20;
const CLUSTER: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) is_directory: bool,
    /// EndOfFile of files.
    pub(super) size: u64,
    pub(super) index: u64,
}

impl Node {
    pub(super) fn end_of_file(&self) -> u64 {
        if self.is_directory { 0 } else { self.size }
    }

    pub(super) fn allocation(&self) -> u64 {
        self.end_of_file().next_multiple_of(CLUSTER)
    }

    pub(super) fn attributes(&self) -> u32 {
        if self.is_directory { DIRECTORY } else { ARCHIVE }
    }

    /// CreationTime, LastAccessTime, LastWriteTime, ChangeTime.
    pub(super) const TIMES: [u64; 4] = [FILETIME; 4];

    /// Appends the structure of an information class. Returns `None` for an unsupported class.
    pub(super) fn put_info(&self, level: InfoLevel, out: &mut Vec<u8>) -> Option<()> {
        match level {
            InfoLevel::File(class) => self.put_file(class, out),
            InfoLevel::FileSystem(class) => put_file_system(class, out),
            // A self-relative descriptor without owner, group and lists (MS-DTYP 2.4.6).
            InfoLevel::Security => {
                out.put_bytes(&[1, 0, 0, 0x80]);
                out.put_zeros(16);
                Some(())
            }
            _ => None,
        }
    }

    fn put_file(&self, class: u8, out: &mut Vec<u8>) -> Option<()> {
        match InfoLevel::File(class) {
            InfoLevel::FILE_BASIC_INFORMATION => {
                out.put(Node::TIMES);
                out.put_u32(self.attributes());
                out.put_u32(0);
            }
            InfoLevel::FILE_STANDARD_INFORMATION => {
                out.put_u64(self.allocation());
                out.put_u64(self.end_of_file());
                out.put_u32(1);
                out.put_u8(0);
                out.put_u8(self.is_directory.into());
                out.put_u16(0);
            }
            InfoLevel::FILE_INTERNAL_INFORMATION => out.put_u64(self.index),
            InfoLevel::FILE_EA_INFORMATION => out.put_u32(0),
            InfoLevel::FILE_ACCESS_INFORMATION => out.put_u32(0x001f_01ff),
            InfoLevel::FILE_POSITION_INFORMATION => out.put_u64(0),
            InfoLevel::FILE_MODE_INFORMATION | InfoLevel::FILE_ALIGNMENT_INFORMATION => out.put_u32(0),
            InfoLevel::FILE_NAME_INFORMATION
            | InfoLevel::FILE_ALTERNATE_NAME_INFORMATION
            | InfoLevel::FILE_NORMALIZED_NAME_INFORMATION => put_name("FILE.TXT", out),
            InfoLevel::FILE_ALL_INFORMATION => {
                for class in [4, 5, 6, 7, 8, 14, 16, 17, 9] {
                    self.put_file(class, out)?;
                }
            }
            InfoLevel::FILE_STREAM_INFORMATION => {
                out.put_u32(0);
                out.put_u32(14);
                out.put_u64(self.end_of_file());
                out.put_u64(self.allocation());
                out.put_utf16("::$DATA");
            }
            InfoLevel::FILE_COMPRESSION_INFORMATION => {
                out.put_u64(self.end_of_file());
                out.put_zeros(8);
            }
            InfoLevel::FILE_NETWORK_OPEN_INFORMATION => {
                out.put(Node::TIMES);
                out.put_u64(self.allocation());
                out.put_u64(self.end_of_file());
                out.put_u32(self.attributes());
                out.put_u32(0);
            }
            InfoLevel::FILE_ATTRIBUTE_TAG_INFORMATION => {
                out.put_u32(self.attributes());
                out.put_u32(0);
            }
            InfoLevel::FILE_ID_INFORMATION => {
                out.put_u64(u64::from(SERIAL));
                out.put_u64(self.index);
                out.put_u64(0);
            }
            _ => return None,
        }
        Some(())
    }

    /// Appends a directory entry with a NextEntryOffset of zero (MS-FSCC 2.4.10 to 2.4.18).
    pub(super) fn put_entry(&self, class: u8, name: &str, out: &mut Vec<u8>) -> Option<()> {
        let level = InfoLevel::File(class);
        let has_ids = [InfoLevel::FILE_ID_BOTH_DIRECTORY_INFORMATION, InfoLevel::FILE_ID_FULL_DIRECTORY_INFORMATION];
        let has_short = [InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION, InfoLevel::FILE_ID_BOTH_DIRECTORY_INFORMATION];
        let known = [
            InfoLevel::FILE_DIRECTORY_INFORMATION,
            InfoLevel::FILE_FULL_DIRECTORY_INFORMATION,
            InfoLevel::FILE_NAMES_INFORMATION,
        ];
        if !known.contains(&level) && !has_ids.contains(&level) && !has_short.contains(&level) {
            return None;
        }
        out.put_u64(0);
        if level != InfoLevel::FILE_NAMES_INFORMATION {
            out.put(Node::TIMES);
            out.put_u64(self.end_of_file());
            out.put_u64(self.allocation());
            out.put_u32(self.attributes());
        }
        out.put_u32(2 * name.encode_utf16().count() as u32);
        if level != InfoLevel::FILE_NAMES_INFORMATION && level != InfoLevel::FILE_DIRECTORY_INFORMATION {
            out.put_u32(0);
        }
        if has_short.contains(&level) {
            out.put_zeros(26);
        }
        match level {
            InfoLevel::FILE_ID_BOTH_DIRECTORY_INFORMATION => {
                out.put_u16(0);
                out.put_u64(self.index);
            }
            InfoLevel::FILE_ID_FULL_DIRECTORY_INFORMATION => {
                out.put_u32(0);
                out.put_u64(self.index);
            }
            _ => {}
        }
        out.put_utf16(name);
        Some(())
    }
}

const SERIAL: u32 = 0x5eed_5eed;

fn put_name(name: &str, out: &mut Vec<u8>) {
    out.put_u32(2 * name.len() as u32);
    out.put_utf16(name);
}

/// Appends volume information: 1 TiB, half of it free, in clusters of 4 KiB.
fn put_file_system(class: u8, out: &mut Vec<u8>) -> Option<()> {
    const UNITS: u64 = (1 << 40) / CLUSTER;
    match InfoLevel::FileSystem(class) {
        InfoLevel::FILE_FS_VOLUME_INFORMATION => {
            out.put_u64(FILETIME);
            out.put_u32(SERIAL);
            out.put_u32(16);
            out.put_u16(0);
            out.put_utf16("SCRIPTED");
        }
        InfoLevel::FILE_FS_SIZE_INFORMATION => {
            out.put_u64(UNITS);
            out.put_u64(UNITS / 2);
            out.put_u32(8);
            out.put_u32(512);
        }
        InfoLevel::FILE_FS_DEVICE_INFORMATION => {
            out.put_u32(7);
            out.put_u32(0x20);
        }
        InfoLevel::FILE_FS_ATTRIBUTE_INFORMATION => {
            out.put_u32(0x0001_002f);
            out.put_u32(255);
            put_name("NTFS", out);
        }
        InfoLevel::FILE_FS_FULL_SIZE_INFORMATION => {
            out.put_u64(UNITS);
            out.put_u64(UNITS / 2);
            out.put_u64(UNITS / 2);
            out.put_u32(8);
            out.put_u32(512);
        }
        InfoLevel::FILE_FS_OBJECT_ID_INFORMATION => out.put_zeros(64),
        InfoLevel::FILE_FS_SECTOR_SIZE_INFORMATION => {
            for value in [512, 4096, 4096, 4096, 3, 0, 0] {
                out.put_u32(value);
            }
        }
        _ => return None,
    }
    Some(())
}

/// Directory listing: ".", ".." and the script's number of files, or a single name if the pattern has no wildcard.
pub(super) struct Listing<'a> {
    pub(super) pattern: &'a str,
    pub(super) entries: usize,
    pub(super) file_size: u64,
    pub(super) nested: bool,
}

impl Listing<'_> {
    fn is_one_name(&self) -> bool {
        !self.pattern.contains(['*', '?', '<', '>', '"'])
    }

    fn count(&self) -> usize {
        if self.is_one_name() { 1 } else { self.entries.saturating_add(2) }
    }

    /// Appends up to `most` entries from `position` on that fit in `room` bytes, and returns the position after them,
    /// which is unchanged at the end. Returns `None` for an unsupported class or if not even one entry fits.
    pub(super) fn put(&self, class: u8, position: usize, room: usize, most: usize, out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        let mut last = None;
        let mut at = position;
        while at < self.count() && at - position < most {
            let before = out.len();
            out.pad(start, 8);
            let entry = out.len();
            self.put_one(class, at, out)?;
            if out.len() - start > room {
                out.truncate(before);
                break;
            }
            if let Some(previous) = last.replace(entry) {
                ((entry - previous) as u32).set(out, previous);
            }
            at += 1;
        }
        (at > position || position >= self.count()).then_some(at)
    }

    fn put_one(&self, class: u8, position: usize, out: &mut Vec<u8>) -> Option<()> {
        let node = |is_directory| Node { is_directory, size: self.file_size, index: 100 + position as u64 };
        if self.is_one_name() {
            return node(false).put_entry(class, self.pattern, out);
        }
        match position {
            0 => node(true).put_entry(class, ".", out),
            1 => node(true).put_entry(class, "..", out),
            _ if self.nested => node(true).put_entry(class, &format!("dir{:05}", position - 2), out),
            _ => node(false).put_entry(class, &format!("file{:05}.txt", position - 2), out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Node = Node { is_directory: false, size: 5000, index: 9 };

    #[test]
    fn classes_have_the_sizes_of_the_specification() {
        // MS-FSCC 2.4.7, 2.4.41, 2.4.29, 2.5.8, 2.5.4.
        let sizes = [
            (InfoLevel::FILE_BASIC_INFORMATION, 40),
            (InfoLevel::FILE_STANDARD_INFORMATION, 24),
            (InfoLevel::FILE_NETWORK_OPEN_INFORMATION, 56),
            (InfoLevel::FILE_FS_SIZE_INFORMATION, 24),
            (InfoLevel::FILE_FS_FULL_SIZE_INFORMATION, 32),
        ];
        for (level, size) in sizes {
            let mut out = Vec::new();
            FILE.put_info(level, &mut out).unwrap();
            assert_eq!(out.len(), size, "{level}");
        }
        assert_eq!(FILE.put_info(InfoLevel::File(200), &mut Vec::new()), None);
    }

    #[test]
    fn listings_stop_where_there_is_no_room_and_go_on_there() {
        let listing = Listing { pattern: "*", entries: 10, file_size: 1, nested: false };
        let mut out = Vec::new();
        // FileIdBothDirectoryInformation: 104 bytes and the name; "." and ".." take 112 each.
        let middle = listing.put(37, 0, 300, 100, &mut out).unwrap();
        assert_eq!((middle, out.len()), (2, 112 + 108));
        assert_eq!(listing.put(37, middle, 65_536, 100, &mut out), Some(12));
        assert_eq!(listing.put(37, 12, 65_536, 100, &mut out), Some(12));
        assert_eq!(listing.put(37, 0, 50, 100, &mut out), None, "no room for one");
    }
}

//! Values in loadfile lines: information levels and ranges of queues.
//!
//! Levels are those of SMB1 and map to information classes (MS-CIFS 2.2.2.3, MS-FSCC 2.4 and 2.5). A level of 1000 or
//! more is a pass-through class (MS-SMB 2.2.2.3.5). Ranges are written as `0+65536*16 4194304+512`: 16 contiguous
//! ranges of 64 KiB and one of 512 bytes.

use smbscope_client::{FileRange, Info};
use std::fmt::Write;

/// Maps a QUERY_PATH_INFORMATION or QUERY_FILE_INFORMATION level (MS-CIFS 2.2.2.3.3).
pub(super) fn file_level(level: u32) -> Option<Info> {
    Some(match level {
        // SMB_INFO_STANDARD has times, sizes and attributes, which later dialects combine in this class.
        0x0001 => Info::FILE_NETWORK_OPEN_INFORMATION,
        0x0002 | 0x0103 => Info::FILE_EA_INFORMATION,
        0x0101 => Info::FILE_BASIC_INFORMATION,
        0x0102 => Info::FILE_STANDARD_INFORMATION,
        // SMB_QUERY_FILE_NAME_INFO: in SMB2 the name is available only in FileAllInformation (MS-SMB2 3.3.5.20.1).
        0x0104 | 0x0107 => Info::FILE_ALL_INFORMATION,
        0x0108 => Info::FILE_ALTERNATE_NAME_INFORMATION,
        0x0109 => Info::FILE_STREAM_INFORMATION,
        0x010b => Info::FILE_COMPRESSION_INFORMATION,
        _ => Info::File(passed_through(level)?),
    })
}

/// Maps a QUERY_FS_INFORMATION level (MS-CIFS 2.2.2.3.2).
pub(super) fn file_system_level(level: u32) -> Option<Info> {
    Some(match level {
        0x0001 | 0x0103 => Info::FILE_FS_SIZE_INFORMATION,
        0x0002 | 0x0102 => Info::FILE_FS_VOLUME_INFORMATION,
        0x0104 => Info::FILE_FS_DEVICE_INFORMATION,
        0x0105 => Info::FILE_FS_ATTRIBUTE_INFORMATION,
        _ => Info::FileSystem(passed_through(level)?),
    })
}

/// Maps a FIND_FIRST level (MS-CIFS 2.2.2.3.1).
pub(super) fn find_level(level: u32) -> Option<Info> {
    Some(match level {
        0x0001..=0x0003 | 0x0101 => Info::FILE_DIRECTORY_INFORMATION,
        0x0102 => Info::FILE_FULL_DIRECTORY_INFORMATION,
        0x0103 => Info::FILE_NAMES_INFORMATION,
        0x0104 => Info::FILE_BOTH_DIRECTORY_INFORMATION,
        0x0105 => Info::FILE_ID_FULL_DIRECTORY_INFORMATION,
        0x0106 => Info::FILE_ID_BOTH_DIRECTORY_INFORMATION,
        _ => return None,
    })
}

/// Returns true if a SET_FILE_INFORMATION level sets times and attributes. Only these work without a value, as a no-op
/// (MS-CIFS 2.2.2.3.4).
pub(super) fn sets_basic(level: u32) -> bool {
    matches!(level, 0x0001 | 0x0101 | 1004)
}

fn passed_through(level: u32) -> Option<u8> {
    level.checked_sub(1000).and_then(|class| u8::try_from(class).ok()).filter(|class| *class != 0)
}

/// Queued ranges of a recording; more are refused.
pub(super) const QUEUED_MAX: usize = 1_000_000;

/// Parses up to `most` ranges. Returns the first malformed or excess part as the error.
pub(super) fn parse_ranges(text: &str, most: usize) -> Result<Vec<FileRange>, &str> {
    let mut ranges = Vec::new();
    for part in text.split_whitespace() {
        let (offset, length, count) = run(part).ok_or(part)?;
        if count > most.saturating_sub(ranges.len()) as u64 {
            return Err(part);
        }
        ranges.extend((0..count).map(|n| FileRange { offset: offset + n * u64::from(length), length }));
    }
    Ok(ranges)
}

/// Parses offset, length and count. The end must fit a signed 64-bit file offset.
fn run(text: &str) -> Option<(u64, u32, u64)> {
    let (offset, rest) = text.split_once('+')?;
    let (length, count) = rest.split_once('*').unwrap_or((rest, "1"));
    let (offset, length, count): (u64, u32, u32) = (offset.parse().ok()?, length.parse().ok()?, count.parse().ok()?);
    let count = u64::from(count);
    let end = count.checked_mul(length.into())?.checked_add(offset)?;
    (i64::try_from(end).is_ok()).then_some((offset, length, count))
}

pub fn ranges_text(ranges: &[FileRange]) -> String {
    let mut text = String::new();
    let follows =
        |a: &FileRange, b: &FileRange| a.length == b.length && a.offset.checked_add(a.length.into()) == Some(b.offset);
    for run in ranges.chunk_by(follows) {
        let FileRange { offset, length } = run[0];
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{offset}+{length}");
        if run.len() > 1 {
            let _ = write!(text, "*{}", run.len());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_classes_of_the_same_meaning() {
        // MS-CIFS 2.2.2.3 and MS-FSCC 2.4: the levels in the Debian package's client.txt.
        assert_eq!(file_level(258), Some(Info::FILE_STANDARD_INFORMATION));
        assert_eq!(file_level(0x107), Some(Info::FILE_ALL_INFORMATION));
        assert_eq!(file_level(1004), Some(Info::FILE_BASIC_INFORMATION));
        assert_eq!(file_level(1005), Some(Info::FILE_STANDARD_INFORMATION));
        assert_eq!(file_level(1035), Some(Info::FILE_ATTRIBUTE_TAG_INFORMATION));
        assert_eq!(file_system_level(259), Some(Info::FILE_FS_SIZE_INFORMATION));
        assert_eq!(find_level(260), Some(Info::FILE_BOTH_DIRECTORY_INFORMATION));
    }

    #[test]
    fn levels_that_mean_nothing_have_no_class() {
        assert_eq!(file_level(1000), None);
        assert_eq!(file_level(2000), None);
        assert_eq!(file_level(0x777), None);
        assert_eq!(find_level(1003), None);
        assert!(!sets_basic(1010));
    }

    #[test]
    fn text_and_ranges_are_the_same() {
        let text = "0+65536*16 4194304+512 0+1";
        let ranges = parse_ranges(text, 18).unwrap();
        assert_eq!((ranges.len(), ranges[15]), (18, FileRange { offset: 15 << 16, length: 1 << 16 }));
        assert_eq!(ranges_text(&ranges), text);
        assert_eq!(parse_ranges(text, 17).unwrap_err(), "0+1");
    }

    #[test]
    fn what_no_file_can_have_is_refused() {
        for text in ["", "5", "-1+5", "0+4294967296", "9223372036854775807+1", "0+4294967295*4294967295 x", "1+1*-1"] {
            let parsed = parse_ranges(text, 10);
            assert!(parsed.is_err() || text.is_empty(), "{text}");
        }
    }
}

//! Maps the SMB1 information levels in loadfiles to information classes (MS-CIFS 2.2.2.3, MS-FSCC 2.4 and 2.5). A level
//! of 1000 or more is a pass-through class (MS-SMB 2.2.2.3.5).

use smbscope_client::Info;

/// Maps a QUERY_PATH_INFORMATION or QUERY_FILE_INFORMATION level (MS-CIFS 2.2.2.3.3).
pub(super) fn query_file(level: u32) -> Option<Info> {
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
pub(super) fn query_file_system(level: u32) -> Option<Info> {
    Some(match level {
        0x0001 | 0x0103 => Info::FILE_FS_SIZE_INFORMATION,
        0x0002 | 0x0102 => Info::FILE_FS_VOLUME_INFORMATION,
        0x0104 => Info::FILE_FS_DEVICE_INFORMATION,
        0x0105 => Info::FILE_FS_ATTRIBUTE_INFORMATION,
        _ => Info::FileSystem(passed_through(level)?),
    })
}

/// Maps a FIND_FIRST level (MS-CIFS 2.2.2.3.1).
pub(super) fn find(level: u32) -> Option<Info> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_classes_of_the_same_meaning() {
        // MS-CIFS 2.2.2.3 and MS-FSCC 2.4: the levels in the Debian package's client.txt.
        assert_eq!(query_file(258), Some(Info::FILE_STANDARD_INFORMATION));
        assert_eq!(query_file(0x107), Some(Info::FILE_ALL_INFORMATION));
        assert_eq!(query_file(1004), Some(Info::FILE_BASIC_INFORMATION));
        assert_eq!(query_file(1005), Some(Info::FILE_STANDARD_INFORMATION));
        assert_eq!(query_file(1035), Some(Info::FILE_ATTRIBUTE_TAG_INFORMATION));
        assert_eq!(query_file_system(259), Some(Info::FILE_FS_SIZE_INFORMATION));
        assert_eq!(find(260), Some(Info::FILE_BOTH_DIRECTORY_INFORMATION));
    }

    #[test]
    fn levels_that_mean_nothing_have_no_class() {
        assert_eq!(query_file(1000), None);
        assert_eq!(query_file(2000), None);
        assert_eq!(query_file(0x777), None);
        assert_eq!(find(1003), None);
        assert!(!sets_basic(1010));
    }
}

//! Information levels (MS-CIFS 2.2.2.3, MS-SMB 2.2.2.3) and the equivalent classes of MS-FSCC.

use crate::fscc::Data;
use crate::names::InfoLevel;

/// Level of a query, a change or a directory listing. Each of the three has its own numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InformationLevel(pub u16);

impl InformationLevel {
    /// Offset added to a pass-through class of MS-FSCC (MS-SMB 2.2.2.3.5).
    const PASS_THROUGH: u16 = 1000;

    /// Returns the level that passes through a class of MS-FSCC. The server needs CAP_INFOLEVEL_PASSTHRU.
    pub fn pass_through(class: u8) -> InformationLevel {
        InformationLevel(InformationLevel::PASS_THROUGH + u16::from(class))
    }

    /// Returns true if the level needs a server with CAP_INFOLEVEL_PASSTHRU.
    pub fn is_pass_through(self) -> bool {
        self.0 >= InformationLevel::PASS_THROUGH
    }
}

/// Returns the query level for a class of MS-FSCC 2.4 (MS-CIFS 2.2.2.3.3).
pub fn query_file_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        4 => 0x0101,  // SMB_QUERY_FILE_BASIC_INFO
        5 => 0x0102,  // SMB_QUERY_FILE_STANDARD_INFO
        7 => 0x0103,  // SMB_QUERY_FILE_EA_INFO
        9 => 0x0104,  // SMB_QUERY_FILE_NAME_INFO
        18 => 0x0107, // SMB_QUERY_FILE_ALL_INFO
        21 => 0x0108, // SMB_QUERY_FILE_ALT_NAME_INFO
        22 => 0x0109, // SMB_QUERY_FILE_STREAM_INFO
        28 => 0x010b, // SMB_QUERY_FILE_COMPRESSION_INFO
        other => return InformationLevel::pass_through(other),
    })
}

/// Returns the set level for a class of MS-FSCC 2.4 (MS-CIFS 2.2.2.3.4).
pub fn set_file_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        4 => 0x0101,  // SMB_SET_FILE_BASIC_INFO
        13 => 0x0102, // SMB_SET_FILE_DISPOSITION_INFO
        19 => 0x0103, // SMB_SET_FILE_ALLOCATION_INFO
        20 => 0x0104, // SMB_SET_FILE_END_OF_FILE_INFO
        other => return InformationLevel::pass_through(other),
    })
}

/// Returns the query level for a class of MS-FSCC 2.5 (MS-CIFS 2.2.2.3.2).
pub fn query_fs_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        1 => 0x0102, // SMB_QUERY_FS_VOLUME_INFO
        3 => 0x0103, // SMB_QUERY_FS_SIZE_INFO
        4 => 0x0104, // SMB_QUERY_FS_DEVICE_INFO
        5 => 0x0105, // SMB_QUERY_FS_ATTRIBUTE_INFO
        other => return InformationLevel::pass_through(other),
    })
}

pub fn set_level(change: &Data<'_>) -> InformationLevel {
    set_file_level(change.level().to_wire().1)
}

/// Classes of MS-FSCC 2.4 whose entries the listing levels use, from SMB_FIND_FILE_DIRECTORY_INFO on: directory, full,
/// names, both, id full, id both (MS-CIFS 2.2.2.3.1, MS-SMB 2.2.2.3.1). Listings cannot be passed through.
const FIND_CLASSES: [u8; 6] = [1, 2, 12, 3, 38, 37];
const FIRST_FIND_LEVEL: u16 = 0x0101;

/// Returns the listing level for a class.
pub fn find_level(class: u8) -> Option<InformationLevel> {
    let index = FIND_CLASSES.iter().position(|known| *known == class)?;
    Some(InformationLevel(FIRST_FIND_LEVEL + index as u16))
}

/// Returns the class for a listing level.
pub fn find_class(level: InformationLevel) -> Option<InfoLevel> {
    let index = usize::from(level.0.checked_sub(FIRST_FIND_LEVEL)?);
    FIND_CLASSES.get(index).copied().map(InfoLevel::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_a_level_of_their_own_are_passed_through() {
        // FileNetworkOpenInformation is class 34, FileFsFullSizeInformation 7, FileRenameInformation 10.
        assert_eq!(query_file_level(34), InformationLevel(1034));
        assert_eq!(query_fs_level(7), InformationLevel(0x03ef));
        assert_eq!(set_file_level(10), InformationLevel(0x03f2));
        assert!(set_file_level(10).is_pass_through() && !set_file_level(20).is_pass_through());
        assert_eq!(find_level(60), None);
    }
}

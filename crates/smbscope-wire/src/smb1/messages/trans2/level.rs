//! Information levels (MS-CIFS 2.2.2.3, MS-SMB 2.2.2.3) and which of them mean what a class of MS-FSCC means.

use crate::fscc::Data;
use crate::names::InfoLevel;

/// The level of a query, of a change, or of a directory listing; each of the three has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InformationLevel(pub u16);

impl InformationLevel {
    /// What a class of MS-FSCC is raised by to be passed through (MS-SMB 2.2.2.3.5).
    const PASS_THROUGH: u16 = 1000;

    /// A class of MS-FSCC as it is: for servers with CAP_INFOLEVEL_PASSTHRU.
    pub fn pass_through(class: u8) -> InformationLevel {
        InformationLevel(InformationLevel::PASS_THROUGH + u16::from(class))
    }

    /// Whether it is one that only servers with CAP_INFOLEVEL_PASSTHRU understand.
    pub fn is_pass_through(self) -> bool {
        self.0 >= InformationLevel::PASS_THROUGH
    }
}

/// The level that asks for what a class of MS-FSCC 2.4 is about (MS-CIFS 2.2.2.3.3).
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

/// The level that changes what a class of MS-FSCC 2.4 is about (MS-CIFS 2.2.2.3.4).
pub fn set_file_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        4 => 0x0101,  // SMB_SET_FILE_BASIC_INFO
        13 => 0x0102, // SMB_SET_FILE_DISPOSITION_INFO
        19 => 0x0103, // SMB_SET_FILE_ALLOCATION_INFO
        20 => 0x0104, // SMB_SET_FILE_END_OF_FILE_INFO
        other => return InformationLevel::pass_through(other),
    })
}

/// The level that asks for what a class of MS-FSCC 2.5 is about (MS-CIFS 2.2.2.3.2).
pub fn query_fs_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        1 => 0x0102, // SMB_QUERY_FS_VOLUME_INFO
        3 => 0x0103, // SMB_QUERY_FS_SIZE_INFO
        4 => 0x0104, // SMB_QUERY_FS_DEVICE_INFO
        5 => 0x0105, // SMB_QUERY_FS_ATTRIBUTE_INFO
        other => return InformationLevel::pass_through(other),
    })
}

/// The level that carries a change.
pub fn set_level(change: &Data<'_>) -> InformationLevel {
    set_file_level(change.level().to_wire().1)
}

/// The class of MS-FSCC 2.4 whose entries each level of a listing has, from SMB_FIND_FILE_DIRECTORY_INFO on: full, names,
/// both, id full, id both (MS-CIFS 2.2.2.3.1, MS-SMB 2.2.2.3.1). Listings can't be passed through.
const FIND_CLASSES: [u8; 6] = [1, 2, 12, 3, 38, 37];
const FIRST_FIND_LEVEL: u16 = 0x0101;

/// The level that lists a directory with the entries of a class.
pub fn find_level(class: u8) -> Option<InformationLevel> {
    let index = FIND_CLASSES.iter().position(|known| *known == class)?;
    Some(InformationLevel(FIRST_FIND_LEVEL + index as u16))
}

/// The class whose entries a level has.
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

//! What TRANS2_SET_FILE_INFORMATION and TRANS2_SET_PATH_INFORMATION change: levels of MS-CIFS 2.2.8.4, and
//! FileRenameInformation as SMB1 passes it through (MS-FSCC 2.4.37).

use super::super::Writer;
use super::{InformationLevel, set_file_level};

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetInformation<'a> {
    /// SMB_SET_FILE_BASIC_INFO; zero leaves a time or the attributes as they are.
    Basic {
        /// FILETIME
        creation_time: u64,
        /// FILETIME
        last_access_time: u64,
        /// FILETIME
        last_write_time: u64,
        /// FILETIME
        change_time: u64,
        /// MS-FSCC 2.6
        ext_file_attributes: u32,
    },
    /// SMB_SET_FILE_DISPOSITION_INFO: whether the file goes with its last close.
    Disposition {
        /// DeletePending
        delete_pending: bool,
    },
    /// SMB_SET_FILE_ALLOCATION_INFO
    Allocation(u64),
    /// SMB_SET_FILE_END_OF_FILE_INFO
    EndOfFile(u64),
    /// FileRenameInformation, passed through. The new name has no path: the file stays in its directory.
    Rename {
        /// ReplaceIfExists
        replace_if_exists: bool,
        /// The new name.
        file_name: &'a str,
    },
}

impl SetInformation<'_> {
    /// The level of [`SetInformation::Rename`], which is passed through.
    pub const RENAME_LEVEL: InformationLevel = InformationLevel(1010);

    /// The level that carries it.
    pub fn information_level(&self) -> InformationLevel {
        set_file_level(match self {
            SetInformation::Basic { .. } => 4,
            SetInformation::Disposition { .. } => 13,
            SetInformation::Allocation(_) => 19,
            SetInformation::EndOfFile(_) => 20,
            SetInformation::Rename { .. } => 10,
        })
    }

    pub(super) fn data(&self, writer: &mut Writer<'_>) {
        match *self {
            SetInformation::Basic {
                creation_time,
                last_access_time,
                last_write_time,
                change_time,
                ext_file_attributes,
            } => {
                for time in [creation_time, last_access_time, last_write_time, change_time] {
                    writer.u64(time);
                }
                writer.u32(ext_file_attributes);
                writer.u32(0);
            }
            SetInformation::Disposition { delete_pending } => writer.u8(delete_pending.into()),
            SetInformation::Allocation(size) | SetInformation::EndOfFile(size) => writer.u64(size),
            SetInformation::Rename { replace_if_exists, file_name } => {
                writer.u32(replace_if_exists.into());
                writer.u32(0);
                writer.u32(writer.length_of(file_name).into());
                writer.text(file_name);
            }
        }
    }
}

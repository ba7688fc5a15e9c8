//! What SET_INFO changes, and SMB1's TRANS2_SET_FILE_INFORMATION (MS-FSCC 2.4).

use crate::bytes::u32_at;
use crate::codec::{Buffer, FixedSizeField, Put, WireText};
use crate::names::InfoLevel;
use std::ops::Range;

/// What to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data<'a> {
    /// FileBasicInformation (MS-FSCC 2.4.7): creation, last access, last write and change, as FILETIME; zero leaves a
    /// time as it is, and so does zero with the attributes.
    Basic {
        /// The four times, in that order.
        times: [u64; 4],
        /// MS-FSCC 2.6.
        file_attributes: u32,
    },
    /// FileEndOfFileInformation (2.4.13)
    EndOfFile(u64),
    /// FileAllocationInformation (2.4.4)
    Allocation(u64),
    /// FileDispositionInformation (2.4.11)
    Disposition(bool),
    /// FileRenameInformation for SMB2 (2.4.42.2)
    Rename {
        /// From the root of the share on.
        path: WireText<'a>,
        /// Whether a file that is there gives way.
        replace: bool,
    },
}

impl Data<'_> {
    /// Where FileRenameInformation has the length of the name, and where the name begins.
    const NAME_LENGTH: usize = 16;
    pub(crate) const NAME: usize = 20;

    /// Its class.
    pub fn level(&self) -> InfoLevel {
        match self {
            Data::Basic { .. } => InfoLevel::FILE_BASIC_INFORMATION,
            Data::EndOfFile(_) => InfoLevel::FILE_END_OF_FILE_INFORMATION,
            Data::Allocation(_) => InfoLevel::FILE_ALLOCATION_INFORMATION,
            Data::Disposition(_) => InfoLevel::FILE_DISPOSITION_INFORMATION,
            Data::Rename { .. } => InfoLevel::FILE_RENAME_INFORMATION,
        }
    }

    /// Where the new name is, in a message that may be cut: within the bytes of FileRenameInformation.
    pub(crate) fn new_name(message: &[u8], buffer: Range<usize>) -> Option<Range<usize>> {
        let here = message.get(..buffer.end.min(message.len()))?;
        let length = u32_at(here, buffer.start + Self::NAME_LENGTH)? as usize;
        let start = buffer.start + Self::NAME;
        let end = start.checked_add(length).filter(|end| *end <= buffer.end)?;
        Some(start..end)
    }

    /// Appends it as SMB2 has it.
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
                out.put_zeros(Self::NAME - 1); // Reserved, RootDirectory, and the length
                let length = path.emit(start, out);
                (length as u32).set(out, start + Self::NAME_LENGTH);
            }
        }
    }
}

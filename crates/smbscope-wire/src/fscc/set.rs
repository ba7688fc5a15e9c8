//! Changes made by SET_INFO and SMB1's TRANS2_SET_FILE_INFORMATION (MS-FSCC 2.4).

use crate::bytes::u32_at;
use crate::codec::{Buffer, FixedSizeField, Put, WireText};
use crate::names::InfoLevel;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data<'a> {
    /// FileBasicInformation (2.4.7). Zero leaves a time or the attributes unchanged.
    Basic {
        /// Creation, last access, last write and change, as FILETIME.
        times: [u64; 4],
        /// See MS-FSCC 2.6.
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
        /// True if an existing target is replaced.
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

    /// Appends the SMB2 encoding.
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

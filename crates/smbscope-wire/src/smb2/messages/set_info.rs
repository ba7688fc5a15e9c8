//! SET_INFO (MS-SMB2 2.2.39) with the classes of MS-FSCC 2.4 that a client of files needs.

use super::Body;
use super::put::Put;
use crate::names::InfoLevel;
use crate::smb2::{Command, FileReference};

/// Where the buffer begins.
const BUFFER: u16 = 96;

/// Changes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The open.
    pub file: FileReference,
    /// What to change.
    pub data: Data<'a>,
}

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
        path: &'a str,
        /// Whether a file that is there gives way.
        replace: bool,
    },
}

impl Data<'_> {
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

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Data::Basic { times, file_attributes } => {
                times.iter().for_each(|time| out.put_u64(*time));
                out.put_u32(*file_attributes);
                out.put_u32(0);
            }
            Data::EndOfFile(size) | Data::Allocation(size) => out.put_u64(*size),
            Data::Disposition(delete) => out.put_u8((*delete).into()),
            Data::Rename { path, replace } => {
                out.put_u8((*replace).into());
                out.put_zeros(7 + 8); // Reserved, RootDirectory
                let length = out.len();
                out.put_u32(0);
                let bytes = out.put_utf16(path);
                out.set_u32(length, bytes);
            }
        }
    }
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::SET_INFO;

    fn emit(&self, out: &mut Vec<u8>) {
        let body = out.len();
        let (info_type, class) = self.data.level().to_wire();
        out.put_u16(33);
        out.put_u8(info_type);
        out.put_u8(class);
        out.put_u32(0);
        out.put_u16(BUFFER);
        out.put_u16(0);
        out.put_u32(0); // AdditionalInformation
        out.put_file(self.file);
        let start = out.len();
        self.data.emit(out);
        out.set_u32(body + 4, out.len() - start);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;
    use crate::smb2;

    const FILE: FileReference = FileReference { persistent: 1, volatile: 2 };

    #[test]
    fn a_rename_carries_the_new_path() {
        let message = request(&Request { file: FILE, data: Data::Rename { path: r"d\new", replace: true } });
        assert_eq!(message[64..72], [33, 0, 1, 10, 30, 0, 0, 0]);
        assert_eq!(message[96..120], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, b'd', 0, b'\\', 0]);
        let new_name = Some(r"d\new".into());
        let expected = smb2::Request::Info { file: FILE, level: InfoLevel::FILE_RENAME_INFORMATION, new_name };
        assert_eq!(smb2::Request::parse(Command::SET_INFO, &message), expected);
    }

    #[test]
    fn buffers_have_the_lengths_of_their_classes() {
        // MS-FSCC 2.4.7, 2.4.13, 2.4.4, 2.4.11
        let basic = Data::Basic { times: [0; 4], file_attributes: 0x20 };
        for (data, length) in
            [(basic, 40), (Data::EndOfFile(5), 8), (Data::Allocation(5), 8), (Data::Disposition(true), 1)]
        {
            let message = request(&Request { file: FILE, data });
            assert_eq!(message.len(), 96 + length, "{data:?}");
            assert_eq!(usize::from(message[68]), length);
        }
    }
}

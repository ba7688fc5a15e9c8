//! SET_INFO (MS-SMB2 2.2.39, 2.2.40) with the classes of MS-FSCC 2.4 that a client of files needs.

use super::Body;
use super::message::message;
use crate::bytes::u32_at;
use crate::codec::{Buffer, Put, Text, Value};
use crate::names::InfoLevel;
use crate::smb2::FileReference;
use std::ops::Range;

message! {
    /// Changes a file.
    request Request<'a>: SET_INFO, 33 {
        /// What to change.
        level: InfoLevel = 2,
        /// The open.
        file: FileReference = 16,
    } with {
        /// The bytes of the class.
        information: Information<'a> = [u16 @ 8, u32 @ 4],
    }
}

impl<'a> Request<'a> {
    /// A change of an open.
    pub fn new(file: FileReference, data: Data<'a>) -> Request<'a> {
        Request { level: data.level(), file, information: Information::Data(data) }
    }
}

impl Body for Request<'_> {}

message! {
    /// It is changed.
    response Response: SET_INFO, 2 {}
}

/// What a class says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Information<'a> {
    /// As it was read.
    Bytes(&'a [u8]),
    /// To be written.
    Data(Data<'a>),
}

impl Default for Information<'_> {
    fn default() -> Self {
        Information::Bytes(&[])
    }
}

impl<'a> Buffer<'a> for Information<'a> {
    fn parse(message: &'a [u8], offset: usize, length: usize) -> Option<Information<'a>> {
        Buffer::parse(message, offset, length).map(Information::Bytes)
    }

    fn emit(&self, _header: usize, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        match self {
            Information::Bytes(bytes) => out.put_bytes(bytes),
            Information::Data(data) => data.emit(out),
        }
        out.len() - start
    }

    fn is_empty(&self) -> bool {
        matches!(self, Information::Bytes([]))
    }
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
        path: Text<'a>,
        /// Whether a file that is there gives way.
        replace: bool,
    },
}

impl Data<'_> {
    /// Where FileRenameInformation has the length of the name, and where the name begins.
    const NAME_LENGTH: usize = 16;
    const NAME: usize = 20;

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
    pub(in crate::smb2) fn new_name(message: &[u8], buffer: Range<usize>) -> Option<Range<usize>> {
        let here = message.get(..buffer.end.min(message.len()))?;
        let length = u32_at(here, buffer.start + Self::NAME_LENGTH)? as usize;
        let start = buffer.start + Self::NAME;
        let end = start.checked_add(length).filter(|end| *end <= buffer.end)?;
        Some(start..end)
    }

    fn emit(&self, out: &mut Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;
    use crate::smb2::{self, Command};

    const FILE: FileReference = FileReference { persistent: 1, volatile: 2 };

    #[test]
    fn a_rename_carries_the_new_path() {
        let message = request(&Request::new(FILE, Data::Rename { path: r"d\new".into(), replace: true }));
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
            let message = request(&Request::new(FILE, data));
            assert_eq!(message.len(), 96 + length, "{data:?}");
            assert_eq!(usize::from(message[68]), length);
        }
    }
}

//! SET_INFO (MS-SMB2 2.2.39, 2.2.40) with the classes of MS-FSCC 2.4 that the client needs.

use super::Smb2RequestMessage;
use super::message::message;
use crate::codec::{Buffer, Put};
pub use crate::fscc::Data;
use crate::names::InfoLevel;
use crate::smb2::FileReference;

message! {
    request Request<'a>: SET_INFO, 33 {
        level: InfoLevel = 2,
        file: FileReference = 16,
    } with {
        information: Information<'a> = [u16 @ 8, u32 @ 4],
    }
}

impl<'a> Request<'a> {
    pub fn new(file: FileReference, data: Data<'a>) -> Request<'a> {
        Request { level: data.level(), file, information: Information::Data(data) }
    }
}

impl Smb2RequestMessage for Request<'_> {}

message! {
    response Response: SET_INFO, 2 {}
}

/// Contents of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Information<'a> {
    /// Encoded data from a message.
    Bytes(&'a [u8]),
    /// Change to emit.
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

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;
    use crate::smb2::{self, Smb2Command};

    const FILE: FileReference = FileReference { persistent: 1, volatile: 2 };

    #[test]
    fn a_rename_carries_the_new_path() {
        let message = request(&Request::new(FILE, Data::Rename { path: r"d\new".into(), replace: true }));
        assert_eq!(message[64..72], [33, 0, 1, 10, 30, 0, 0, 0]);
        assert_eq!(message[96..120], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, b'd', 0, b'\\', 0]);
        let new_name = Some(r"d\new".into());
        let expected = smb2::Smb2Request::Info { file: FILE, level: InfoLevel::FILE_RENAME_INFORMATION, new_name };
        assert_eq!(smb2::Smb2Request::parse(Smb2Command::SET_INFO, &message), expected);
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

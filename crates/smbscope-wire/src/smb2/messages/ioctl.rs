//! IOCTL (MS-SMB2 2.2.31, 2.2.32): file system control codes; what they carry has files of its own.

use super::put::Put;
use super::{Body, buffer};
use crate::bytes::{u16_at, u32_at};
use crate::names::Fsctl;
use crate::smb2::{Command, FileReference};

/// Where the input begins.
const BUFFER: u32 = 120;
/// SMB2_0_IOCTL_IS_FSCTL
const IS_FSCTL: u32 = 1;

/// A control code with its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// What to do.
    pub code: Fsctl,
    /// The open; [`FileReference::NONE`] for codes that need none.
    pub file: FileReference,
    /// What the code takes.
    pub input: &'a [u8],
    /// Most bytes to get.
    pub max_output: u32,
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::IOCTL;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(57);
        out.put_u16(0);
        out.put_u32(self.code.0);
        out.put_file(self.file);
        out.put_u32(if self.input.is_empty() { 0 } else { BUFFER });
        out.put_u32(self.input.len() as u32);
        out.put_u32(0); // MaxInputResponse
        out.put_u64(0); // output of a request: none
        out.put_u32(self.max_output);
        out.put_u32(IS_FSCTL);
        out.put_u32(0);
        match self.input {
            [] => out.put_u8(0), // the buffer must not be empty
            input => out.extend_from_slice(input),
        }
    }

    fn payload(&self) -> usize {
        self.input.len()
    }

    fn expected(&self) -> usize {
        self.max_output as usize
    }
}

/// What the code gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// The code.
    pub code: Fsctl,
    /// What it gave.
    pub output: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Response<'a>> {
        if u16_at(message, 64)? != 49 {
            return None;
        }
        let output = buffer(message, u32_at(message, 96)? as usize, u32_at(message, 100)? as usize)?;
        Some(Response { code: Fsctl(u32_at(message, 68)?), output })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2;

    #[test]
    fn a_code_without_a_file_has_all_ones() {
        let code = Fsctl::QUERY_NETWORK_INTERFACE_INFO;
        let message = request(&Request { code, file: FileReference::NONE, input: &[], max_output: 0x1_0000 });
        assert_eq!(message[64..72], [57, 0, 0, 0, 0xfc, 1, 0x14, 0]);
        assert_eq!(message[72..88], [0xff; 16]);
        assert_eq!(message[108..116], [0, 0, 1, 0, 1, 0, 0, 0]);
        assert_eq!(message.len(), 64 + 57);
        let read = smb2::Request::parse(Command::IOCTL, &message);
        assert_eq!(read, smb2::Request::Ioctl { file: FileReference::NONE, code });
    }

    #[test]
    fn the_output_is_where_its_offset_says() {
        let mut message = response(Command::IOCTL);
        message.extend([49, 0, 0, 0, 4, 2, 0x14, 0]);
        message.extend([0xff; 16]);
        message.extend([112, 0, 0, 0, 0, 0, 0, 0, 112, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(b"ok");
        let expected = Response { code: Fsctl::VALIDATE_NEGOTIATE_INFO, output: b"ok" };
        assert_eq!(Response::parse(&message), Some(expected));
        assert_eq!(Response::parse(&message[..113]), None);
    }
}

//! IOCTL (MS-SMB2 2.2.31, 2.2.32). Inputs and outputs of control codes are in `copy_chunk`, `network_interface` and
//! `validate_negotiate`.

use super::Smb2RequestMessage;
use super::message::message;
use crate::names::Fsctl;
use crate::smb2::FileReference;

message! {
    request Request<'a>: IOCTL, 57 {
        code: Fsctl = 4,
        /// [`FileReference::NONE`] for codes without a file.
        file: FileReference = 8,
        max_output: u32 = 44,
        flags: u32 = 48,
    } with {
        input: &'a [u8] = [u32 @ 24, u32 @ 28, optional],
    }
}

impl<'a> Request<'a> {
    /// SMB2_0_IOCTL_IS_FSCTL.
    pub const IS_FSCTL: u32 = 1;

    /// Creates a request for a file system control code.
    pub fn new(code: Fsctl, file: FileReference, input: &'a [u8], max_output: u32) -> Request<'a> {
        Request { code, file, max_output, flags: Self::IS_FSCTL, input }
    }
}

impl Smb2RequestMessage for Request<'_> {
    fn payload(&self) -> usize {
        self.input.len()
    }

    fn expected(&self) -> usize {
        self.max_output as usize
    }
}

message! {
    response Response<'a>: IOCTL, 49 {
        code: Fsctl = 4,
        file: FileReference = 8,
    } with {
        /// Empty for all codes used here.
        input: &'a [u8] = [u32 @ 24, u32 @ 28],
        output: &'a [u8] = [u32 @ 32, u32 @ 36],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::{self, Smb2Command};

    #[test]
    fn a_code_without_a_file_has_all_ones() {
        let code = Fsctl::QUERY_NETWORK_INTERFACE_INFO;
        let message = request(&Request::new(code, FileReference::NONE, &[], 0x1_0000));
        assert_eq!(message[64..72], [57, 0, 0, 0, 0xfc, 1, 0x14, 0]);
        assert_eq!(message[72..88], [0xff; 16]);
        assert_eq!(message[108..116], [0, 0, 1, 0, 1, 0, 0, 0]);
        assert_eq!(message.len(), 64 + 57);
        let read = smb2::Smb2Request::parse(Smb2Command::IOCTL, &message);
        assert_eq!(read, smb2::Smb2Request::Ioctl { file: FileReference::NONE, code });
    }

    #[test]
    fn the_output_is_where_its_offset_says() {
        let mut message = response(Smb2Command::IOCTL);
        message.extend([49, 0, 0, 0, 4, 2, 0x14, 0]);
        message.extend([0xff; 16]);
        message.extend([112, 0, 0, 0, 0, 0, 0, 0, 112, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(b"ok");
        let (code, file) = (Fsctl::VALIDATE_NEGOTIATE_INFO, FileReference::NONE);
        let expected = Response { code, file, input: b"", output: b"ok" };
        assert_eq!(Response::parse(&message), Some(expected));
        assert_eq!(Response::parse(&message[..113]), None);
    }
}

//! TREE_CONNECT (MS-SMB2 2.2.9, 2.2.10).

use super::Smb2RequestMessage;
use super::message::message;
use crate::codec::WireText;

message! {
    request Request<'a>: TREE_CONNECT, 9 {} with {
        /// `\\server\share`.
        path: WireText<'a> = [u16 @ 4, u16 @ 6],
    }
}

impl Smb2RequestMessage for Request<'_> {}

message! {
    response Response: TREE_CONNECT, 16 {
        /// 1 disk, 2 pipe, 3 printer.
        share_type: u8 = 2,
        share_flags: u32 = 4,
        capabilities: u32 = 8,
        maximal_access: u32 = 12,
    }
}

impl Response {
    const ENCRYPT_DATA: u32 = 0x0000_8000;

    /// Returns true if the server requires encryption on this share.
    pub fn encrypts_data(&self) -> bool {
        self.share_flags & Response::ENCRYPT_DATA != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::{self, Smb2Command};

    #[test]
    fn the_path_is_a_unc_name() {
        let message = request(&Request { path: r"\\s\data".into() });
        assert_eq!(message[64..72], [9, 0, 0, 0, 72, 0, 16, 0]);
        let read = smb2::Smb2Request::parse(Smb2Command::TREE_CONNECT, &message);
        assert_eq!(read, smb2::Smb2Request::TreeConnect(r"\\s\data".into()));
    }

    #[test]
    fn a_share_can_ask_for_encryption() {
        let mut message = response(Smb2Command::TREE_CONNECT);
        message.extend([16, 0, 1, 0, 0, 0x80, 0, 0, 0x10, 0, 0, 0, 0xff, 1, 0x1f, 0]);
        let read = Response::parse(&message).unwrap();
        assert!(read.encrypts_data());
        assert_eq!((read.share_type, read.capabilities, read.maximal_access), (1, 0x10, 0x001f_01ff));
    }
}

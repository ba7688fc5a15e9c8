//! TREE_CONNECT (MS-SMB2 2.2.9, 2.2.10).

use super::Body;
use super::put::Put;
use crate::bytes::{u8_at, u16_at, u32_at};
use crate::smb2::Command;

/// Connects to a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The server in `\\server\share`.
    pub server: &'a str,
    /// The share in it.
    pub share: &'a str,
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::TREE_CONNECT;

    fn emit(&self, out: &mut Vec<u8>) {
        let body = out.len();
        out.put_u16(9);
        out.put_u16(0); // Flags
        out.put_u16(72);
        out.put_u16(0);
        let length = [r"\\", self.server, r"\", self.share].map(|part| out.put_utf16(part)).iter().sum();
        out.set_u16(body + 6, length);
    }
}

/// What the share is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// 1 disk, 2 pipe, 3 printer.
    pub share_type: u8,
    /// ShareFlags.
    pub share_flags: u32,
    /// Capabilities.
    pub capabilities: u32,
    /// MaximalAccess.
    pub maximal_access: u32,
}

impl Response {
    /// SMB2_SHAREFLAG_ENCRYPT_DATA
    const ENCRYPT_DATA: u32 = 0x0000_8000;

    /// Reads the message from its header on.
    pub fn parse(message: &[u8]) -> Option<Response> {
        if u16_at(message, 64)? != 16 {
            return None;
        }
        Some(Response {
            share_type: u8_at(message, 66)?,
            share_flags: u32_at(message, 68)?,
            capabilities: u32_at(message, 72)?,
            maximal_access: u32_at(message, 76)?,
        })
    }

    /// The server wants everything on this share encrypted.
    pub fn encrypts_data(&self) -> bool {
        self.share_flags & Response::ENCRYPT_DATA != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2;

    #[test]
    fn the_path_is_a_unc_name() {
        let message = request(&Request { server: "s", share: "data" });
        assert_eq!(message[64..72], [9, 0, 0, 0, 72, 0, 16, 0]);
        let read = smb2::Request::parse(Command::TREE_CONNECT, &message);
        assert_eq!(read, smb2::Request::TreeConnect(r"\\s\data".into()));
    }

    #[test]
    fn a_share_can_ask_for_encryption() {
        let mut message = response(Command::TREE_CONNECT);
        message.extend([16, 0, 1, 0, 0, 0x80, 0, 0, 0x10, 0, 0, 0, 0xff, 1, 0x1f, 0]);
        let read = Response::parse(&message).unwrap();
        assert!(read.encrypts_data());
        assert_eq!((read.share_type, read.capabilities, read.maximal_access), (1, 0x10, 0x001f_01ff));
    }
}

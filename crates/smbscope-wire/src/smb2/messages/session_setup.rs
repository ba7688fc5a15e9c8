//! SESSION_SETUP (MS-SMB2 2.2.5, 2.2.6).

use super::Smb2RequestMessage;
use super::message::message;

message! {
    request Request<'a>: SESSION_SETUP, 25 {
        flags: u8 = 2,
        security_mode: u8 = 3,
        /// Only DFS is defined here.
        capabilities: u32 = 4,
        /// Session that this one replaces.
        previous_session_id: u64 = 16,
    } with {
        /// GSS token.
        token: &'a [u8] = [u16 @ 12, u16 @ 14],
    }
}

impl Request<'_> {
    /// SMB2_SESSION_FLAG_BINDING: binds the connection to the session in the header.
    pub const BINDING: u8 = 0x01;
}

impl Smb2RequestMessage for Request<'_> {}

message! {
    response Response<'a>: SESSION_SETUP, 9 {
        session_flags: u16 = 2,
    } with {
        /// GSS token.
        token: &'a [u8] = [u16 @ 4, u16 @ 6],
    }
}

impl Response<'_> {
    pub const GUEST: u16 = 0x0001;
    pub const NULL: u16 = 0x0002;
    pub const ENCRYPT_DATA: u16 = 0x0004;
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::{self, Smb2Command};

    #[test]
    fn the_token_stands_behind_the_fields() {
        let setup = Request {
            flags: Request::BINDING,
            security_mode: 1,
            capabilities: 1,
            previous_session_id: 5,
            token: &[0x60, 0x48],
        };
        let message = request(&setup);
        let fields = [25, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 88, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x60, 0x48];
        assert_eq!(message[64..], fields);
        let read = smb2::Smb2Request::parse(Smb2Command::SESSION_SETUP, &message);
        assert_eq!(read, smb2::Smb2Request::SessionSetup { binding: true, identity: None });
    }

    #[test]
    fn the_response_has_flags_and_a_token() {
        let mut message = response(Smb2Command::SESSION_SETUP);
        message.extend([9, 0, 1, 0, 72, 0, 3, 0]);
        message.extend(b"tok");
        assert_eq!(Response::parse(&message), Some(Response { session_flags: Response::GUEST, token: b"tok" }));
        assert_eq!(Response::parse(&message[..74]), None, "the token is cut off");
    }
}

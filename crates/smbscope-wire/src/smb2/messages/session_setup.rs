//! SESSION_SETUP (MS-SMB2 2.2.5, 2.2.6).

use super::put::Put;
use super::{Body, buffer};
use crate::bytes::u16_at;
use crate::smb2::Command;

/// SMB2_SESSION_FLAG_BINDING
const BINDING: u8 = 0x01;
/// Where the token begins.
const BUFFER: u16 = 88;

/// A step of the authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Binds the connection to the session that the header names.
    pub binding: bool,
    /// SecurityMode of NEGOTIATE.
    pub security_mode: u8,
    /// Capabilities: DFS is the only one that is defined here.
    pub capabilities: u32,
    /// A session to be replaced by this one.
    pub previous_session_id: u64,
    /// GSS token.
    pub token: &'a [u8],
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::SESSION_SETUP;

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u16(25);
        out.put_u8(if self.binding { BINDING } else { 0 });
        out.put_u8(self.security_mode);
        out.put_u32(self.capabilities);
        out.put_u32(0); // Channel
        out.put_u16(BUFFER);
        out.put_u16(self.token.len() as u16);
        out.put_u64(self.previous_session_id);
        out.extend_from_slice(self.token);
    }
}

/// The server's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// SessionFlags.
    pub session_flags: u16,
    /// GSS token.
    pub token: &'a [u8],
}

impl<'a> Response<'a> {
    /// SMB2_SESSION_FLAG_IS_GUEST
    pub const GUEST: u16 = 0x0001;
    /// SMB2_SESSION_FLAG_IS_NULL
    pub const NULL: u16 = 0x0002;
    /// SMB2_SESSION_FLAG_ENCRYPT_DATA
    pub const ENCRYPT_DATA: u16 = 0x0004;

    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Response<'a>> {
        if u16_at(message, 64)? != 9 {
            return None;
        }
        let token = buffer(message, u16_at(message, 68)?.into(), u16_at(message, 70)?.into())?;
        Some(Response { session_flags: u16_at(message, 66)?, token })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2;

    #[test]
    fn the_token_stands_behind_the_fields() {
        let setup =
            Request { binding: true, security_mode: 1, capabilities: 1, previous_session_id: 5, token: &[0x60, 0x48] };
        let message = request(&setup);
        let fields = [25, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 88, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x60, 0x48];
        assert_eq!(message[64..], fields);
        let read = smb2::Request::parse(Command::SESSION_SETUP, &message);
        assert_eq!(read, smb2::Request::SessionSetup { binding: true, token: &[0x60, 0x48] });
    }

    #[test]
    fn the_response_has_flags_and_a_token() {
        let mut message = response(Command::SESSION_SETUP);
        message.extend([9, 0, 1, 0, 72, 0, 3, 0]);
        message.extend(b"tok");
        assert_eq!(Response::parse(&message), Some(Response { session_flags: Response::GUEST, token: b"tok" }));
        assert_eq!(Response::parse(&message[..74]), None, "the token is cut off");
    }
}

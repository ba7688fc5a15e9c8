//! NEGOTIATE (MS-SMB2 2.2.3, 2.2.4).

use super::negotiate_context::{Contexts, Offer};
use super::put::Put;
use super::{Body, buffer};
use crate::bytes::{array_at, u16_at, u32_at};
use crate::smb2::{Command, Header};

/// SecurityMode.
pub mod security_mode {
    /// SMB2_NEGOTIATE_SIGNING_ENABLED
    pub const SIGNING_ENABLED: u16 = 0x0001;
    /// SMB2_NEGOTIATE_SIGNING_REQUIRED
    pub const SIGNING_REQUIRED: u16 = 0x0002;
}

/// Capabilities.
pub mod capabilities {
    /// SMB2_GLOBAL_CAP_DFS
    pub const DFS: u32 = 0x0000_0001;
    /// SMB2_GLOBAL_CAP_LEASING
    pub const LEASING: u32 = 0x0000_0002;
    /// SMB2_GLOBAL_CAP_LARGE_MTU
    pub const LARGE_MTU: u32 = 0x0000_0004;
    /// SMB2_GLOBAL_CAP_MULTI_CHANNEL
    pub const MULTI_CHANNEL: u32 = 0x0000_0008;
    /// SMB2_GLOBAL_CAP_PERSISTENT_HANDLES
    pub const PERSISTENT_HANDLES: u32 = 0x0000_0010;
    /// SMB2_GLOBAL_CAP_DIRECTORY_LEASING
    pub const DIRECTORY_LEASING: u32 = 0x0000_0020;
    /// SMB2_GLOBAL_CAP_ENCRYPTION
    pub const ENCRYPTION: u32 = 0x0000_0040;
}

/// What a client offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// See [`security_mode`].
    pub security_mode: u16,
    /// See [`capabilities`]; of clients that speak SMB 3.
    pub capabilities: u32,
    /// The client, of those that speak 2.1 or later.
    pub client_guid: [u8; 16],
    /// Dialect revisions.
    pub dialects: &'a [u16],
    /// The contexts of 3.1.1.
    pub contexts: Option<Offer<'a>>,
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::NEGOTIATE;

    fn emit(&self, out: &mut Vec<u8>) {
        let body = out.len();
        let header = body.saturating_sub(Header::LENGTH);
        out.put_u16(36);
        out.put_u16(self.dialects.len() as u16);
        out.put_u16(self.security_mode);
        out.put_u16(0);
        out.put_u32(self.capabilities);
        out.extend_from_slice(&self.client_guid);
        out.put_u64(0); // ClientStartTime, or offset and count of the contexts
        for dialect in self.dialects {
            out.put_u16(*dialect);
        }
        if let Some(offer) = &self.contexts {
            out.pad_to_8(header);
            out.set_u32(body + 28, out.len() - header);
            let count = offer.emit(header, out);
            out.set_u16(body + 32, count);
        }
    }
}

/// What the server chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// See [`security_mode`].
    pub security_mode: u16,
    /// The dialect revision.
    pub dialect: u16,
    /// The server.
    pub server_guid: [u8; 16],
    /// See [`capabilities`].
    pub capabilities: u32,
    /// Largest buffer of QUERY_INFO, QUERY_DIRECTORY, SET_INFO, CHANGE_NOTIFY and IOCTL.
    pub max_transact_size: u32,
    /// Largest READ.
    pub max_read_size: u32,
    /// Largest WRITE.
    pub max_write_size: u32,
    /// What the server's authentication offers: a GSS token; may be empty.
    pub security_buffer: &'a [u8],
    /// The contexts of 3.1.1; empty for others.
    pub contexts: Contexts<'a>,
}

impl<'a> Response<'a> {
    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Response<'a>> {
        let m = message;
        if u16_at(m, 64)? != 65 {
            return None;
        }
        let dialect = u16_at(m, 68)?;
        let contexts = match dialect {
            0x0311 => Contexts::new(m, u32_at(m, 124)? as usize, u16_at(m, 70)?),
            _ => Contexts::default(),
        };
        Some(Response {
            security_mode: u16_at(m, 66)?,
            dialect,
            server_guid: array_at(m, 72)?,
            capabilities: u32_at(m, 88)?,
            max_transact_size: u32_at(m, 92)?,
            max_read_size: u32_at(m, 96)?,
            max_write_size: u32_at(m, 100)?,
            security_buffer: buffer(m, u16_at(m, 120)?.into(), u16_at(m, 122)?.into())?,
            contexts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::negotiate_context::Context;
    use super::super::tests::{request, response};
    use super::*;

    #[test]
    fn one_dialect_is_offered_without_contexts() {
        let offer =
            Request { security_mode: 1, capabilities: 0, client_guid: [0; 16], dialects: &[0x0202], contexts: None };
        let mut expected = vec![36, 0, 1, 0, 1, 0];
        expected.extend([0; 2 + 4 + 16 + 8]);
        expected.extend([0x02, 0x02]);
        assert_eq!(request(&offer)[64..], expected);
    }

    #[test]
    fn contexts_of_3_1_1_begin_at_multiples_of_eight() {
        let contexts = Offer { salt: &[7; 32], ciphers: &[2, 1], signing_algorithms: &[1], net_name: "srv" };
        let offer = Request {
            security_mode: 1,
            capabilities: 0x7f,
            client_guid: [3; 16],
            dialects: &[0x0311],
            contexts: Some(contexts),
        };
        let message = request(&offer);
        // 64 header + 36 + 2, padded to 104; offset and count stand where ClientStartTime was (2.2.3).
        assert_eq!(message[92..100], [104, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(message[100..104], [0x11, 0x03, 0, 0]);
        let read: Vec<Context> = Contexts::new(&message, 104, 4).collect();
        // 2.2.3.1.1: one hash algorithm, a salt of 32 bytes, SHA-512, and the salt.
        let mut preauth = vec![1, 0, 32, 0, 1, 0];
        preauth.extend([7; 32]);
        assert_eq!(read[0], Context { context_type: 1, data: &preauth });
        assert_eq!(read[1], Context { context_type: 2, data: &[2, 0, 2, 0, 1, 0] });
        assert_eq!(read[2], Context { context_type: 8, data: &[1, 0, 1, 0] });
        assert_eq!(read[3], Context { context_type: 5, data: b"s\0r\0v\0" });
    }

    #[test]
    fn the_response_says_what_was_chosen() {
        let mut message = response(Command::NEGOTIATE);
        message.extend([65, 0, 3, 0, 0x11, 3, 1, 0]);
        message.extend([9; 16]);
        message.extend([0x2f, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x40, 0]);
        message.extend([0; 16]);
        message.extend([128, 0, 2, 0, 136, 0, 0, 0]);
        message.extend(b"gs\0\0\0\0\0\0");
        message.extend([2, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0]);
        let read = Response::parse(&message).unwrap();
        assert_eq!((read.dialect, read.security_mode, read.capabilities), (0x0311, 3, 0x2f));
        assert_eq!(
            (read.max_transact_size, read.max_read_size, read.max_write_size),
            (0x10_0000, 0x20_0000, 0x40_0000)
        );
        assert_eq!(read.security_buffer, b"gs");
        assert_eq!(read.contexts.cipher(), Some(2));
        assert_eq!(Response::parse(&message[..127]), None);
    }
}

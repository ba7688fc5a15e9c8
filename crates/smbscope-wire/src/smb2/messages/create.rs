//! CREATE (MS-SMB2 2.2.13, 2.2.14).

use super::Body;
use super::create_context::{Context, Granted};
use super::put::Put;
use crate::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::smb2::{Command, FileReference, Header};

/// RequestedOplockLevel and OplockLevel.
pub mod oplock {
    /// SMB2_OPLOCK_LEVEL_NONE
    pub const NONE: u8 = 0x00;
    /// SMB2_OPLOCK_LEVEL_II
    pub const LEVEL_II: u8 = 0x01;
    /// SMB2_OPLOCK_LEVEL_EXCLUSIVE
    pub const EXCLUSIVE: u8 = 0x08;
    /// SMB2_OPLOCK_LEVEL_BATCH
    pub const BATCH: u8 = 0x09;
    /// SMB2_OPLOCK_LEVEL_LEASE
    pub const LEASE: u8 = 0xff;
}

/// Impersonation, what every client asks for.
const IMPERSONATION: u32 = 2;

/// Opens or creates a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Below the share, with backslashes; empty for its root.
    pub name: &'a str,
    /// See [`oplock`].
    pub oplock_level: u8,
    /// DesiredAccess.
    pub desired_access: u32,
    /// MS-FSCC 2.6.
    pub file_attributes: u32,
    /// ShareAccess.
    pub share_access: u32,
    /// CreateDisposition.
    pub create_disposition: u32,
    /// CreateOptions.
    pub create_options: u32,
    /// What else is asked for.
    pub contexts: &'a [Context],
}

impl Body for Request<'_> {
    const COMMAND: Command = Command::CREATE;

    fn emit(&self, out: &mut Vec<u8>) {
        let body = out.len();
        let header = body.saturating_sub(Header::LENGTH);
        out.put_u16(57);
        out.put_u8(0); // SecurityFlags
        out.put_u8(self.oplock_level);
        out.put_u32(IMPERSONATION);
        out.put_zeros(16); // SmbCreateFlags, Reserved
        out.put_u32(self.desired_access);
        out.put_u32(self.file_attributes);
        out.put_u32(self.share_access);
        out.put_u32(self.create_disposition);
        out.put_u32(self.create_options);
        out.put_u16(120);
        out.put_u16(0);
        out.put_u64(0); // offset and length of the contexts
        let length = out.put_utf16(self.name);
        out.set_u16(body + 46, length);
        if !self.contexts.is_empty() {
            out.pad_to_8(header);
            let start = out.len();
            out.set_u32(body + 48, start - header);
            Context::emit_all(self.contexts, out);
            out.set_u32(body + 52, out.len() - start);
        } else if length == 0 {
            // The buffer must not be empty.
            out.put_u8(0);
        }
    }
}

/// The open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// See [`oplock`].
    pub oplock_level: u8,
    /// 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub create_action: u32,
    /// EndOfFile.
    pub end_of_file: u64,
    /// MS-FSCC 2.6.
    pub file_attributes: u32,
    /// The open.
    pub file: FileReference,
    /// What the server granted of the contexts.
    pub contexts: Granted<'a>,
}

impl<'a> Response<'a> {
    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Response<'a>> {
        let m = message;
        if u16_at(m, 64)? != 89 {
            return None;
        }
        Some(Response {
            oplock_level: u8_at(m, 66)?,
            create_action: u32_at(m, 68)?,
            end_of_file: u64_at(m, 112)?,
            file_attributes: u32_at(m, 120)?,
            file: FileReference { persistent: u64_at(m, 128)?, volatile: u64_at(m, 136)? },
            contexts: Granted::new(m, u32_at(m, 144)? as usize, u32_at(m, 148)? as usize)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::create_context::Lease;
    use super::super::tests::{request, response};
    use super::*;

    const OPEN: Request<'static> = Request {
        name: "a",
        oplock_level: oplock::BATCH,
        desired_access: 0x0012_0089,
        file_attributes: 0x80,
        share_access: 7,
        create_disposition: 1,
        create_options: 0x40,
        contexts: &[],
    };

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let message = request(&OPEN);
        let mut expected = vec![57, 0, 0, 9, 2, 0, 0, 0];
        expected.extend([0; 16]);
        expected.extend([0x89, 0, 0x12, 0, 0x80, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0x40, 0, 0, 0]);
        expected.extend([120, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'a', 0]);
        assert_eq!(message[64..], expected);
        assert_eq!(request(&Request { name: "", ..OPEN }).len(), 64 + 57, "the buffer has at least a byte (2.2.13)");
    }

    #[test]
    fn contexts_follow_the_name_at_a_multiple_of_eight() {
        let lease = Context::LeaseV1(Lease { key: [1; 16], state: 7, ..Lease::default() });
        let message = request(&Request { contexts: &[lease, Context::DurableHandle], ..OPEN });
        // The name ends at 122; the lease has 24 + 32 bytes, the durable handle 24 + 16.
        assert_eq!(message[112..120], [128, 0, 0, 0, 96, 0, 0, 0]);
        assert_eq!(message.len(), 128 + 96);
        assert_eq!(message[128..132], [56, 0, 0, 0]);
    }

    #[test]
    fn the_response_names_the_open() {
        let mut message = response(Command::CREATE);
        message.extend([89, 0, 9, 0, 2, 0, 0, 0]);
        message.resize(112, 0);
        message.extend([10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0]);
        message.extend([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        message.extend([0; 8]);
        let read = Response::parse(&message).unwrap();
        assert_eq!(read.file, FileReference { persistent: 1, volatile: 2 });
        assert_eq!((read.create_action, read.end_of_file, read.file_attributes), (2, 10, 0x20));
        assert_eq!((read.oplock_level, read.contexts.lease()), (9, None));
        assert_eq!(Response::parse(&message[..150]), None);
    }
}

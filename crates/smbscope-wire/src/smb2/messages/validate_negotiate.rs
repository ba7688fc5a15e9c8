//! FSCTL_VALIDATE_NEGOTIATE_INFO (MS-SMB2 2.2.31.4, 2.2.32.6): what was negotiated, once more and signed, so that
//! nobody can have changed it on the way.

use crate::codec::{List, Put, Value, counted, put_counted};

/// What the client had offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Capabilities of the NEGOTIATE request.
    pub capabilities: u32,
    /// ClientGuid of it.
    pub guid: [u8; 16],
    /// SecurityMode of it.
    pub security_mode: u16,
    /// Dialects of it.
    pub dialects: List<'a, u16>,
}

impl<'a> Request<'a> {
    /// Appends the input of the IOCTL.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put(self.capabilities);
        out.put(self.guid);
        out.put(self.security_mode);
        put_counted(self.dialects, out);
    }

    /// Reads the input of the IOCTL.
    pub fn parse(input: &'a [u8]) -> Option<Request<'a>> {
        Some(Request {
            capabilities: Value::at(input, 0)?,
            guid: Value::at(input, 4)?,
            security_mode: Value::at(input, 20)?,
            dialects: counted(input, 22)?,
        })
    }
}

/// What the server had answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Capabilities of the NEGOTIATE response.
    pub capabilities: u32,
    /// ServerGuid of it.
    pub guid: [u8; 16],
    /// SecurityMode of it.
    pub security_mode: u16,
    /// DialectRevision of it.
    pub dialect: u16,
}

impl Response {
    /// Bytes of it.
    pub const LENGTH: u32 = 24;

    /// Reads the output of the IOCTL.
    pub fn parse(output: &[u8]) -> Option<Response> {
        Some(Response {
            capabilities: Value::at(output, 0)?,
            guid: Value::at(output, 4)?,
            security_mode: Value::at(output, 20)?,
            dialect: Value::at(output, 22)?,
        })
    }

    /// Appends the output of the IOCTL.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put(self.capabilities);
        out.put(self.guid);
        out.put(self.security_mode);
        out.put(self.dialect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let mut out = Vec::new();
        Request { capabilities: 0x7f, guid: [1; 16], security_mode: 1, dialects: List::Values(&[0x0300]) }
            .emit(&mut out);
        assert_eq!(out[..4], [0x7f, 0, 0, 0]);
        assert_eq!(out[20..], [1, 0, 1, 0, 0, 3]);
        out.drain(22..24);
        let expected = Response { capabilities: 0x7f, guid: [1; 16], security_mode: 1, dialect: 0x0300 };
        assert_eq!(Response::parse(&out), Some(expected));
        assert_eq!(Response::parse(&out[..23]), None);
    }
}

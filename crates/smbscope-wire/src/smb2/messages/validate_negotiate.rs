//! FSCTL_VALIDATE_NEGOTIATE_INFO (MS-SMB2 2.2.31.4, 2.2.32.6): repeats the negotiation in a signed exchange to detect
//! tampering.

use crate::codec::{FixedSizeField, List, Put, counted, put_counted};

/// Fields of the client's NEGOTIATE request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidateNegotiateRequest<'a> {
    pub capabilities: u32,
    pub guid: [u8; 16],
    pub security_mode: u16,
    pub dialects: List<'a, u16>,
}

impl<'a> ValidateNegotiateRequest<'a> {
    /// Appends the input of the IOCTL.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put(self.capabilities);
        out.put(self.guid);
        out.put(self.security_mode);
        put_counted(self.dialects, out);
    }

    /// Parses the input of the IOCTL.
    pub fn parse(input: &'a [u8]) -> Option<ValidateNegotiateRequest<'a>> {
        Some(ValidateNegotiateRequest {
            capabilities: FixedSizeField::at(input, 0)?,
            guid: FixedSizeField::at(input, 4)?,
            security_mode: FixedSizeField::at(input, 20)?,
            dialects: counted(input, 22)?,
        })
    }
}

/// Fields of the server's NEGOTIATE response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidateNegotiateResponse {
    pub capabilities: u32,
    pub guid: [u8; 16],
    pub security_mode: u16,
    pub dialect: u16,
}

impl ValidateNegotiateResponse {
    pub const LENGTH: u32 = 24;

    /// Parses the output of the IOCTL.
    pub fn parse(output: &[u8]) -> Option<ValidateNegotiateResponse> {
        Some(ValidateNegotiateResponse {
            capabilities: FixedSizeField::at(output, 0)?,
            guid: FixedSizeField::at(output, 4)?,
            security_mode: FixedSizeField::at(output, 20)?,
            dialect: FixedSizeField::at(output, 22)?,
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
        ValidateNegotiateRequest {
            capabilities: 0x7f,
            guid: [1; 16],
            security_mode: 1,
            dialects: List::Values(&[0x0300]),
        }
        .emit(&mut out);
        assert_eq!(out[..4], [0x7f, 0, 0, 0]);
        assert_eq!(out[20..], [1, 0, 1, 0, 0, 3]);
        out.drain(22..24);
        let expected =
            ValidateNegotiateResponse { capabilities: 0x7f, guid: [1; 16], security_mode: 1, dialect: 0x0300 };
        assert_eq!(ValidateNegotiateResponse::parse(&out), Some(expected));
        assert_eq!(ValidateNegotiateResponse::parse(&out[..23]), None);
    }
}

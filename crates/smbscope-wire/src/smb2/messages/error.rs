//! ERROR response (MS-SMB2 2.2.2) and its error data.

use crate::bytes::{u8_at, u16_at, u32_at, utf16_text};
use crate::codec::{Put, buffer};
use crate::smb2::Smb2Header;

const SIZE: u16 = 9;
const SYMLINK_ERROR_TAG: u32 = 0x4c4d_5953;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Smb2ErrorResponse<'a> {
    /// ErrorData of the first context, or all of it before 3.1.1.
    pub data: &'a [u8],
}

/// Target of a STATUS_STOPPED_ON_SYMLINK error (2.2.2.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symlink {
    /// Length in bytes of the path after the link.
    pub unparsed_path_length: u16,
    pub substitute_name: String,
    /// True if the target is relative to the link's directory.
    pub relative: bool,
}

impl<'a> Smb2ErrorResponse<'a> {
    /// Returns true if a possibly truncated message is an error response.
    pub(in crate::smb2) fn is_error_response(message: &[u8]) -> Option<bool> {
        u16_at(message, Smb2Header::LENGTH).map(|size| size == SIZE)
    }

    pub fn parse(message: &'a [u8]) -> Option<Smb2ErrorResponse<'a>> {
        let at = Smb2Header::LENGTH;
        if !Smb2ErrorResponse::is_error_response(message)? {
            return None;
        }
        let contexts = u8_at(message, at + 2)?;
        let data = buffer(message, at + 8, u32_at(message, at + 4)? as usize)?;
        // 2.2.2.1: each context has length and id before its data.
        let data = match contexts {
            0 => data,
            _ => buffer(data, 8, u32_at(data, 0)? as usize)?,
        };
        Some(Smb2ErrorResponse { data })
    }

    /// Appends the body without contexts. ErrorData has at least one byte.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put(SIZE);
        out.put(0u16);
        out.put(self.data.len() as u32);
        out.put_bytes(if self.data.is_empty() { &[0] } else { self.data });
    }

    /// Returns the required buffer size of STATUS_BUFFER_TOO_SMALL (2.2.2).
    pub fn needed(&self) -> Option<u32> {
        u32_at(self.data, 0).filter(|_| self.data.len() == 4)
    }

    pub fn symlink(&self) -> Option<Symlink> {
        if u32_at(self.data, 4)? != SYMLINK_ERROR_TAG {
            return None;
        }
        let names = self.data.get(28..)?;
        let start = usize::from(u16_at(self.data, 16)?);
        let end = start + usize::from(u16_at(self.data, 18)?);
        Some(Symlink {
            unparsed_path_length: u16_at(self.data, 14)?,
            substitute_name: utf16_text(names.get(start..end)?),
            relative: u32_at(self.data, 24)? & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::response;
    use super::*;
    use crate::smb2::Smb2Command;

    /// A relative link to `t` with 4 bytes of unparsed path (2.2.2.2.1).
    fn symlink() -> Vec<u8> {
        let mut data = vec![28, 0, 0, 0, b'S', b'Y', b'M', b'L', 0x0c, 0, 0, 0xa0, 16, 0, 4, 0];
        data.extend([0, 0, 2, 0, 2, 0, 2, 0, 1, 0, 0, 0, b't', 0, b'p', 0]);
        data
    }

    fn error(contexts: u8, data: &[u8]) -> Vec<u8> {
        let mut message = response(Smb2Command::CREATE);
        message.extend([9, 0, contexts, 0, data.len() as u8, 0, 0, 0]);
        message.extend(data);
        message
    }

    #[test]
    fn a_symlink_is_read_with_and_without_contexts() {
        let expected = Symlink { unparsed_path_length: 4, substitute_name: "t".to_owned(), relative: true };
        let plain = error(0, &symlink());
        assert_eq!(Smb2ErrorResponse::parse(&plain).unwrap().symlink(), Some(expected.clone()));
        let mut context = vec![32, 0, 0, 0, 0, 0, 0, 0];
        context.extend(symlink());
        let contexts = error(1, &context);
        assert_eq!(Smb2ErrorResponse::parse(&contexts).unwrap().symlink(), Some(expected));
        assert_eq!(Smb2ErrorResponse::parse(&contexts[..90]), None);
    }

    #[test]
    fn the_length_that_was_needed_is_read() {
        assert_eq!(Smb2ErrorResponse::parse(&error(0, &[0x90, 1, 0, 0])).unwrap().needed(), Some(0x190));
        assert_eq!(Smb2ErrorResponse::parse(&error(0, &[])).unwrap().needed(), None);
    }
}

//! The ERROR response (MS-SMB2 2.2.2): what a server sends in place of an answer, and what it tells with it.

use crate::bytes::{u8_at, u16_at, u32_at, utf16_text};
use crate::codec::{Put, buffer};
use crate::smb2::Smb2Header;

const SIZE: u16 = 9;
const SYMLINK_ERROR_TAG: u32 = 0x4c4d_5953;

/// An error response, to any command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Smb2ErrorResponse<'a> {
    /// ErrorData of the first context, or all of it before 3.1.1.
    pub data: &'a [u8],
}

/// Where STATUS_STOPPED_ON_SYMLINK points to (2.2.2.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symlink {
    /// Bytes at the end of the path that were not looked at.
    pub unparsed_path_length: u16,
    /// What the link holds.
    pub substitute_name: String,
    /// It counts from the directory that holds the link.
    pub relative: bool,
}

impl<'a> Smb2ErrorResponse<'a> {
    /// Whether a message that may be cut is one.
    pub(in crate::smb2) fn is_one(message: &[u8]) -> Option<bool> {
        u16_at(message, Smb2Header::LENGTH).map(|size| size == SIZE)
    }

    /// Reads the message from its header on.
    pub fn parse(message: &'a [u8]) -> Option<Smb2ErrorResponse<'a>> {
        let at = Smb2Header::LENGTH;
        if !Smb2ErrorResponse::is_one(message)? {
            return None;
        }
        let contexts = u8_at(message, at + 2)?;
        let data = buffer(message, at + 8, u32_at(message, at + 4)? as usize)?;
        // 2.2.2.1: length and id before the data of each context.
        let data = match contexts {
            0 => data,
            _ => buffer(data, 8, u32_at(data, 0)? as usize)?,
        };
        Some(Smb2ErrorResponse { data })
    }

    /// Appends the body without contexts; there is a byte of data at least.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put(SIZE);
        out.put(0u16);
        out.put(self.data.len() as u32);
        out.put_bytes(if self.data.is_empty() { &[0] } else { self.data });
    }

    /// The bytes that would have been needed, of STATUS_BUFFER_TOO_SMALL (2.2.2).
    pub fn needed(&self) -> Option<u32> {
        u32_at(self.data, 0).filter(|_| self.data.len() == 4)
    }

    /// The link, of STATUS_STOPPED_ON_SYMLINK.
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

    /// 2.2.2.2.1: a link to `t`, relative, with 4 bytes of the path left.
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

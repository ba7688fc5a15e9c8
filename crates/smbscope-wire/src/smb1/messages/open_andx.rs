//! SMB_COM_OPEN_ANDX (MS-CIFS 2.2.4.41): how clients opened files before NT_CREATE_ANDX.

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// Opens or creates a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenAndx<'a> {
    /// Bit 1 asks for an exclusive oplock, bit 2 for a batch oplock.
    pub flags: u16,
    /// Bits 0 to 2: 0 read, 1 write, 2 both; bits 4 to 6: what others may do.
    pub access_mode: u16,
    /// Which attributes a file may have to be found.
    pub search_attributes: u16,
    /// Of a new file.
    pub file_attributes: u16,
    /// Bits 0 and 1: 0 fail, 1 open, 2 truncate where the file exists; bit 4: create where it does not.
    pub open_mode: u16,
    /// Of a new file.
    pub allocation_size: u32,
    /// From the root of the share, with a backslash at the beginning.
    pub name: &'a str,
}

impl Request for OpenAndx<'_> {
    const COMMAND: Command = Command::OPEN_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u16(self.flags);
        writer.u16(self.access_mode);
        writer.u16(self.search_attributes);
        writer.u16(self.file_attributes);
        writer.u32(0);
        writer.u16(self.open_mode);
        writer.u32(self.allocation_size);
        writer.u64(0);
        writer.data();
        writer.string(self.name);
    }
}

/// What was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenAndxResponse {
    /// For what follows.
    pub fid: u16,
    /// SMB_FILE_ATTRIBUTES.
    pub file_attributes: u16,
    /// Bytes.
    pub file_data_size: u32,
    /// What was granted, as in the request's AccessMode.
    pub access_rights: u16,
    /// Bits 0 and 1: 1 opened, 2 created, 3 truncated; bit 15: an oplock was granted.
    pub open_results: u16,
}

impl OpenAndxResponse {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<OpenAndxResponse, Malformed> {
        let view = View::parse(message, Command::OPEN_ANDX)?;
        Ok(OpenAndxResponse {
            fid: view.u16(4)?,
            file_attributes: view.u16(6)?,
            file_data_size: view.u32(12)?,
            access_rights: view.u16(16)?,
            open_results: view.u16(22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn fifteen_words_and_the_name() {
        let open = OpenAndx {
            flags: 2,
            access_mode: 0x42,
            search_attributes: 6,
            file_attributes: 0x20,
            open_mode: 0x11,
            allocation_size: 0x0102,
            name: "\\a",
        };
        let mut expected = vec![15, 0xff, 0, 0, 0, 2, 0, 0x42, 0, 6, 0, 0x20, 0, 0, 0, 0, 0, 0x11, 0, 2, 1, 0, 0];
        expected.extend([0; 8]);
        // The data begins at 32 + 1 + 30 + 2 = 65: one byte of padding.
        expected.extend([7, 0, 0, b'\\', 0, b'a', 0, 0, 0]);
        assert_eq!(emitted(&open), expected);
    }

    #[test]
    fn fields_of_the_answer_are_where_the_specification_puts_them() {
        let mut words = vec![0xff, 0, 0, 0, 0x34, 0x12, 0x20, 0, 1, 1, 1, 1, 0x10, 0x27, 0, 0, 2, 0];
        words.extend([0, 0, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0]);
        let answer = OpenAndxResponse::parse(&response(Command::OPEN_ANDX, &words, &[])).unwrap();
        let expected = OpenAndxResponse {
            fid: 0x1234,
            file_attributes: 0x20,
            file_data_size: 10_000,
            access_rights: 2,
            open_results: 0x8002,
        };
        assert_eq!(answer, expected);
    }
}

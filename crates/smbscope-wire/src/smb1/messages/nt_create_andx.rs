//! SMB_COM_NT_CREATE_ANDX (MS-CIFS 2.2.4.64).

use super::super::Command;
use super::writer::text_length;
use super::{Malformed, Request, View, Writer};

/// Flags of the request.
pub mod create_flags {
    /// NT_CREATE_REQUEST_OPLOCK: an exclusive oplock.
    pub const REQUEST_OPLOCK: u32 = 0x0000_0002;
    /// NT_CREATE_REQUEST_OPBATCH: a batch oplock.
    pub const REQUEST_OPBATCH: u32 = 0x0000_0004;
}

/// Opens or creates a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtCreateAndx<'a> {
    /// See [`create_flags`].
    pub flags: u32,
    /// As in MS-SMB2 2.2.13.1.
    pub desired_access: u32,
    /// Of a new file.
    pub allocation_size: u64,
    /// MS-FSCC 2.6.
    pub ext_file_attributes: u32,
    /// FILE_SHARE_READ 1, FILE_SHARE_WRITE 2, FILE_SHARE_DELETE 4.
    pub share_access: u32,
    /// What to do where the file exists, or does not.
    pub create_disposition: u32,
    /// As in MS-SMB2 2.2.13.
    pub create_options: u32,
    /// From the root of the share, with a backslash at the beginning.
    pub name: &'a str,
}

impl Request for NtCreateAndx<'_> {
    const COMMAND: Command = Command::NT_CREATE_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u8(0);
        writer.u16(text_length(self.name, writer.is_unicode()) as u16);
        writer.u32(self.flags);
        writer.u32(0);
        writer.u32(self.desired_access);
        writer.u64(self.allocation_size);
        writer.u32(self.ext_file_attributes);
        writer.u32(self.share_access);
        writer.u32(self.create_disposition);
        writer.u32(self.create_options);
        // SEC_IMPERSONATE, and the security context does not change under way.
        writer.u32(2);
        writer.u8(0);
        writer.data();
        writer.string(self.name);
    }
}

/// What was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtCreateAndxResponse {
    /// 0 none, 1 exclusive, 2 batch, 3 level II.
    pub oplock_level: u8,
    /// For what follows.
    pub fid: u16,
    /// 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub create_action: u32,
    /// FILETIME
    pub last_write_time: u64,
    /// MS-FSCC 2.6.
    pub ext_file_attributes: u32,
    /// Bytes on the disk.
    pub allocation_size: u64,
    /// Bytes.
    pub end_of_file: u64,
    /// 0 disk, 1 and 2 pipes.
    pub resource_type: u16,
    /// Whether it is a directory.
    pub directory: bool,
}

impl NtCreateAndxResponse {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<NtCreateAndxResponse, Malformed> {
        let view = View::parse(message, Command::NT_CREATE_ANDX)?;
        Ok(NtCreateAndxResponse {
            oplock_level: view.u8(4)?,
            fid: view.u16(5)?,
            create_action: view.u32(7)?,
            last_write_time: view.u64(27)?,
            ext_file_attributes: view.u32(43)?,
            allocation_size: view.u64(47)?,
            end_of_file: view.u64(55)?,
            resource_type: view.u16(63)?,
            directory: view.u8(67)? != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, emitted_oem, response, utf16};
    use super::*;

    const CREATE: NtCreateAndx<'_> = NtCreateAndx {
        flags: 0x16,
        desired_access: 0x0012_019f,
        allocation_size: 0,
        ext_file_attributes: 0x80,
        share_access: 3,
        create_disposition: 5,
        create_options: 0x40,
        name: r"\a.b",
    };

    #[test]
    fn the_name_has_a_length_and_is_terminated_all_the_same() {
        let mut expected = vec![24, 0xff, 0, 0, 0, 0, 8, 0, 0x16, 0, 0, 0, 0, 0, 0, 0, 0x9f, 0x01, 0x12, 0];
        expected.extend([0; 8]);
        expected.extend([0x80, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 0x40, 0, 0, 0, 2, 0, 0, 0, 0]);
        // The data begins at 32 + 1 + 48 + 2 = 83: one byte of padding.
        expected.extend([11, 0, 0]);
        expected.extend(utf16("\\a.b\0"));
        assert_eq!(emitted(&CREATE), expected);
    }

    #[test]
    fn oem_names_are_not_aligned() {
        let bytes = emitted_oem(&CREATE);
        assert_eq!(bytes[6..8], [4, 0]);
        assert_eq!(bytes[49..], *b"\x05\x00\\a.b\0");
    }

    #[test]
    fn fields_of_the_answer_are_where_the_specification_puts_them() {
        let mut words = vec![0xff, 0, 0, 0, 2, 0xcd, 0xab, 1, 0, 0, 0];
        for time in 1..=4u64 {
            words.extend(time.to_le_bytes());
        }
        words.extend([0x20, 0, 0, 0]);
        words.extend(4096u64.to_le_bytes());
        words.extend(1234u64.to_le_bytes());
        words.extend([0, 0, 7, 0, 1]);
        assert_eq!(words.len(), 68);
        let answer = NtCreateAndxResponse::parse(&response(Command::NT_CREATE_ANDX, &words, &[])).unwrap();
        assert_eq!((answer.oplock_level, answer.fid, answer.create_action), (2, 0xabcd, 1));
        assert_eq!((answer.last_write_time, answer.allocation_size, answer.end_of_file), (3, 4096, 1234));
        assert_eq!((answer.ext_file_attributes, answer.directory), (0x20, true));
        let short = response(Command::NT_CREATE_ANDX, &words[..66], &[]);
        assert_eq!(NtCreateAndxResponse::parse(&short).unwrap_err().what, "too few parameters");
    }
}

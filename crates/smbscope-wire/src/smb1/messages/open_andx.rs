//! SMB_COM_OPEN_ANDX (MS-CIFS 2.2.4.41), which preceded NT_CREATE_ANDX.

use super::message::message;

message! {
    OpenAndx<'a>: OPEN_ANDX, 15 {
        /// Bit 1 requests an exclusive oplock, bit 2 a batch oplock.
        flags: u16 = 4,
        /// Bits 0 to 2: 0 read, 1 write, 2 both. Bits 4 to 6: sharing mode.
        access_mode: u16 = 6,
        /// Attributes that an existing file may have.
        search_attributes: u16 = 8,
        /// Attributes of a new file.
        file_attributes: u16 = 10,
        /// Bits 0 and 1, if the file exists: 0 fail, 1 open, 2 truncate. Bit 4: create it otherwise.
        open_mode: u16 = 16,
        /// Initial allocation of a new file.
        allocation_size: u32 = 18,
    } with {
        name: text,
    }
}

message! {
    OpenAndxResponse: OPEN_ANDX, 15 {
        fid: u16 = 4,
        /// SMB_FILE_ATTRIBUTES.
        file_attributes: u16 = 6,
        /// UTIME.
        last_write_time: u32 = 8,
        file_data_size: u32 = 12,
        /// Granted access, encoded like AccessMode.
        access_rights: u16 = 16,
        /// Bits 0 and 1: 1 opened, 2 created, 3 truncated. Bit 15: oplock granted.
        open_results: u16 = 22,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;
    use crate::smb1::Smb1Command;

    #[test]
    fn fifteen_words_and_the_name() {
        let open = OpenAndx {
            flags: 2,
            access_mode: 0x42,
            search_attributes: 6,
            file_attributes: 0x20,
            open_mode: 0x11,
            allocation_size: 0x0102,
            name: "\\a".into(),
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
        let answer = OpenAndxResponse::parse(&response(Smb1Command::OPEN_ANDX, &words, &[])).unwrap();
        let expected = OpenAndxResponse {
            fid: 0x1234,
            file_attributes: 0x20,
            last_write_time: 0x0101_0101,
            file_data_size: 10_000,
            access_rights: 2,
            open_results: 0x8002,
        };
        assert_eq!(answer, expected);
    }
}

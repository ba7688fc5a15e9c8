//! SMB_COM_TREE_CONNECT_ANDX (MS-CIFS 2.2.4.55, MS-SMB 2.2.4.7).

use super::message::message;

/// TREE_CONNECT_ANDX_EXTENDED_RESPONSE: the client accepts [`TreeConnectAndxExtendedResponse`].
pub const EXTENDED_RESPONSE: u16 = 0x0008;

message! {
    TreeConnectAndx<'a>: TREE_CONNECT_ANDX, 4 {
        flags: u16 = 4,
    } with {
        /// One zero byte with user-level access control.
        password: bytes = 6,
        /// `\\server\share`.
        path: text,
        /// `?????` for any service, `A:` for disks, `IPC` for pipes.
        service: oem,
    }
}

message! {
    /// Response. The tree is the TID of its header.
    TreeConnectAndxResponse<'a>: TREE_CONNECT_ANDX, 3 {
        optional_support: u16 = 4,
    } with {
        /// `A:` or another of MS-CIFS 2.2.4.55.1.
        service: oem,
        native_file_system: text,
    }
}

message! {
    /// Response that includes the maximum rights of the user and of guests.
    TreeConnectAndxExtendedResponse<'a>: TREE_CONNECT_ANDX, 7 {
        optional_support: u16 = 4,
        maximal_access: u32 = 6,
        guest_maximal_access: u32 = 10,
    } with {
        service: oem,
        native_file_system: text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response, utf16};
    use super::*;
    use crate::smb1::Smb1Command;

    #[test]
    fn the_path_is_utf_16_and_the_service_is_not() {
        let connect = TreeConnectAndx { flags: 0, password: &[0], path: r"\\h\s".into(), service: "?????".into() };
        let mut expected = vec![4, 0xff, 0, 0, 0, 0, 0, 1, 0, 19, 0, 0];
        // 32 + 1 + 8 + 2 = 43, plus the password: the path begins at 44.
        expected.extend(utf16("\\\\h\\s\0"));
        expected.extend(b"?????\0");
        assert_eq!(emitted(&connect), expected);
    }

    #[test]
    fn the_answer_names_service_and_file_system() {
        // Three words: the data begins at 32 + 1 + 6 + 2 = 41, "A:" ends at 44.
        let data = [b"A:\0".to_vec(), utf16("NTFS\0")].concat();
        let bytes = response(Smb1Command::TREE_CONNECT_ANDX, &[0xff, 0, 0, 0, 1, 0], &data);
        let answer = TreeConnectAndxResponse::parse(&bytes).unwrap();
        assert_eq!(
            (answer.service.to_string().as_str(), answer.native_file_system.to_string().as_str()),
            ("A:", "NTFS")
        );
    }
}

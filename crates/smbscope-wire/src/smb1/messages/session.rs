//! Sessions and tree connects: SMB_COM_SESSION_SETUP_ANDX with GSS tokens (MS-SMB 2.2.4.6) and without (MS-CIFS
//! 2.2.4.53), SMB_COM_TREE_CONNECT_ANDX (MS-CIFS 2.2.4.55, MS-SMB 2.2.4.7) and SMB_COM_ECHO (MS-CIFS 2.2.4.39).

use super::message::message;

message! {
    /// One step of a logon with GSS tokens.
    SessionSetupAndx<'a>: SESSION_SETUP_ANDX, 12 {
        max_buffer_size: u16 = 4,
        max_mpx_count: u16 = 6,
        /// Zero would close other connections of the same client.
        vc_number: u16 = 8,
        session_key: u32 = 10,
        capabilities: u32 = 20,
    } with {
        blob: bytes = 14,
        native_os: text,
        native_lan_man: text,
    }
}

message! {
    SessionSetupAndxResponse<'a>: SESSION_SETUP_ANDX, 4 {
        /// Bit 0: logged on as a guest.
        action: u16 = 4,
    } with {
        blob: bytes = 6,
        native_os: text,
        native_lan_man: text,
    }
}

message! {
    /// Logon with responses to the challenge in NEGOTIATE.
    SessionSetupAndxPlain<'a>: SESSION_SETUP_ANDX, 13 {
        max_buffer_size: u16 = 4,
        max_mpx_count: u16 = 6,
        vc_number: u16 = 8,
        session_key: u32 = 10,
        capabilities: u32 = 22,
    } with {
        /// LM response.
        oem_password: bytes = 14,
        /// NT response.
        unicode_password: bytes = 16,
        /// Empty for an anonymous logon.
        account_name: text,
        primary_domain: text,
        native_os: text,
        native_lan_man: text,
    }
}

message! {
    SessionSetupAndxLanMan<'a>: SESSION_SETUP_ANDX, 10 {} with {
        password: bytes = 14,
        account_name: text,
        primary_domain: text,
    }
}

message! {
    /// Response to either logon without GSS tokens.
    SessionSetupAndxPlainResponse<'a>: SESSION_SETUP_ANDX, 3 {
        action: u16 = 4,
    } with {
        native_os: text,
        native_lan_man: text,
    }
}

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

message! {
    Echo<'a>: ECHO, 1 {
        echo_count: u16 = 0,
    } with {
        data: bytes,
    }
}

message! {
    EchoResponse<'a>: ECHO, 1 {
        /// Number of this response, from 1.
        sequence_number: u16 = 0,
    } with {
        data: bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response, utf16};
    use super::*;
    use crate::smb1::Smb1Command;

    #[test]
    fn the_token_is_followed_by_aligned_strings() {
        let setup = SessionSetupAndx {
            max_buffer_size: 0xffff,
            max_mpx_count: 50,
            vc_number: 1,
            session_key: 0x0403_0201,
            capabilities: 0x8000_00d4,
            blob: b"tok",
            native_os: "U".into(),
            native_lan_man: "s".into(),
        };
        let mut expected = vec![12, 0xff, 0, 0, 0, 0xff, 0xff, 50, 0, 1, 0, 1, 2, 3, 4, 3, 0, 0, 0, 0, 0];
        expected.extend([0xd4, 0, 0, 0x80, 11, 0]);
        // The data begins at 32 + 1 + 24 + 2 = 59; three bytes of token end at the even offset 62.
        expected.extend(b"tokU\0\0\0s\0\0\0");
        assert_eq!(emitted(&setup), expected);
    }

    #[test]
    fn an_anonymous_logon_has_empty_names_and_a_zero_byte_for_a_password() {
        // MS-CIFS 3.2.4.2.4: no account, and an OEM password of one zero byte.
        let setup = SessionSetupAndxPlain {
            max_buffer_size: 4356,
            max_mpx_count: 2,
            vc_number: 1,
            session_key: 0,
            capabilities: 0xd4,
            oem_password: &[0],
            ..SessionSetupAndxPlain::default()
        };
        let bytes = emitted(&setup);
        assert_eq!(bytes[0], 13);
        assert_eq!(bytes[15..19], [1, 0, 0, 0]);
        // After 32 + 1 + 26 + 2 = 61 and the password, the strings begin at the even offset 62.
        assert_eq!(bytes[27..], [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_response_marks_guests() {
        let words = [0xff, 0, 0, 0, 1, 0, 2, 0];
        let data = [b"ab".to_vec(), utf16("Unix\0")].concat();
        let bytes = response(Smb1Command::SESSION_SETUP_ANDX, &words, &data);
        let answer = SessionSetupAndxResponse::parse(&bytes).unwrap();
        assert_eq!((answer.action, answer.blob), (1, &b"ab"[..]));
        let cut = response(Smb1Command::SESSION_SETUP_ANDX, &[0xff, 0, 0, 0, 1, 0, 9, 0], b"ab");
        assert_eq!(SessionSetupAndxResponse::parse(&cut).unwrap_err().what, "data cut off");
    }

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

    #[test]
    fn one_answer_is_asked_for() {
        assert_eq!(emitted(&Echo { echo_count: 1, data: b"hi" }), [1, 1, 0, 2, 0, b'h', b'i']);
    }

    #[test]
    fn the_answer_is_numbered() {
        let bytes = response(Smb1Command::ECHO, &[1, 0], b"hi");
        assert_eq!(EchoResponse::parse(&bytes), Ok(EchoResponse { sequence_number: 1, data: b"hi" }));
    }
}

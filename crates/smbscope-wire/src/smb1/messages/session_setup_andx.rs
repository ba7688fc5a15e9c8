//! SMB_COM_SESSION_SETUP_ANDX, with GSS tokens (MS-SMB 2.2.4.6) and without (MS-CIFS 2.2.4.53).

use super::message::message;

message! {
    /// One step of a logon with GSS tokens.
    SessionSetupAndx<'a>: SESSION_SETUP_ANDX, 12 {
        /// Maximum message size that the client accepts.
        max_buffer_size: u16 = 4,
        /// Maximum number of outstanding requests.
        max_mpx_count: u16 = 6,
        /// Zero would close other connections of the same client.
        vc_number: u16 = 8,
        /// SessionKey from the server.
        session_key: u32 = 10,
        /// See [`capabilities`](super::capabilities).
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
    /// Logon of a LAN Manager client.
    SessionSetupAndxLanMan<'a>: SESSION_SETUP_ANDX, 10 {} with {
        /// LM response.
        password: bytes = 14,
        /// Empty for an anonymous logon.
        account_name: text,
        primary_domain: text,
    }
}

message! {
    /// Response to either logon without GSS tokens.
    SessionSetupAndxPlainResponse<'a>: SESSION_SETUP_ANDX, 3 {
        /// Bit 0: logged on as a guest.
        action: u16 = 4,
    } with {
        native_os: text,
        native_lan_man: text,
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
    fn the_answer_says_whether_one_is_a_guest() {
        let words = [0xff, 0, 0, 0, 1, 0, 2, 0];
        let data = [b"ab".to_vec(), utf16("Unix\0")].concat();
        let bytes = response(Smb1Command::SESSION_SETUP_ANDX, &words, &data);
        let answer = SessionSetupAndxResponse::parse(&bytes).unwrap();
        assert_eq!((answer.action, answer.blob), (1, &b"ab"[..]));
        let cut = response(Smb1Command::SESSION_SETUP_ANDX, &[0xff, 0, 0, 0, 1, 0, 9, 0], b"ab");
        assert_eq!(SessionSetupAndxResponse::parse(&cut).unwrap_err().what, "data cut off");
    }
}

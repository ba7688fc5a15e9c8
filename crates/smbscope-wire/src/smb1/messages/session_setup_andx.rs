//! SMB_COM_SESSION_SETUP_ANDX, with GSS tokens (MS-SMB 2.2.4.6) and without (MS-CIFS 2.2.4.53).

use super::message::message;

message! {
    /// One leg of a logon by GSS tokens.
    SessionSetupAndx<'a>: SESSION_SETUP_ANDX, 12 {
        /// Largest message that the client takes.
        max_buffer_size: u16 = 4,
        /// Requests that the client has outstanding at most (MaxMpxCount).
        max_mpx_count: u16 = 6,
        /// Zero closes other connections of the same client; so not zero.
        vc_number: u16 = 8,
        /// As the server gave it.
        session_key: u32 = 10,
        /// See [`capabilities`](super::capabilities).
        capabilities: u32 = 20,
    } with {
        /// SecurityBlob.
        blob: bytes = 14,
        /// NativeOS.
        native_os: text,
        /// NativeLanMan.
        native_lan_man: text,
    }
}

message! {
    /// The answer to a leg.
    SessionSetupAndxResponse<'a>: SESSION_SETUP_ANDX, 4 {
        /// Bit 0: logged on as a guest.
        action: u16 = 4,
    } with {
        /// SecurityBlob.
        blob: bytes = 6,
        /// NativeOS.
        native_os: text,
        /// NativeLanMan.
        native_lan_man: text,
    }
}

message! {
    /// A logon with answers to the challenge of the negotiation.
    SessionSetupAndxPlain<'a>: SESSION_SETUP_ANDX, 13 {
        /// Largest message that the client takes.
        max_buffer_size: u16 = 4,
        /// Requests that the client has outstanding at most (MaxMpxCount).
        max_mpx_count: u16 = 6,
        /// Zero closes other connections of the same client; so not zero.
        vc_number: u16 = 8,
        /// As the server gave it.
        session_key: u32 = 10,
        /// See [`capabilities`](super::capabilities).
        capabilities: u32 = 22,
    } with {
        /// OEMPassword: the LM answer.
        oem_password: bytes = 14,
        /// UnicodePassword: the NT answer.
        unicode_password: bytes = 16,
        /// Empty for an anonymous logon.
        account_name: text,
        /// PrimaryDomain.
        primary_domain: text,
        /// NativeOS.
        native_os: text,
        /// NativeLanMan.
        native_lan_man: text,
    }
}

message! {
    /// A logon of LAN Manager.
    SessionSetupAndxLanMan<'a>: SESSION_SETUP_ANDX, 10 {} with {
        /// The LM answer to the challenge.
        password: bytes = 14,
        /// Empty for an anonymous logon.
        account_name: text,
        /// PrimaryDomain.
        primary_domain: text,
    }
}

message! {
    /// The answer to either.
    SessionSetupAndxPlainResponse<'a>: SESSION_SETUP_ANDX, 3 {
        /// Bit 0: logged on as a guest.
        action: u16 = 4,
    } with {
        /// NativeOS.
        native_os: text,
        /// NativeLanMan.
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
        // MS-CIFS 3.2.4.2.4: no account, an OEM password of one zero byte.
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
        // Behind 32 + 1 + 26 + 2 = 61 and the password, the strings begin at the even offset 62.
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

//! SMB_COM_SESSION_SETUP_ANDX, with GSS tokens (MS-SMB 2.2.4.6) and without (MS-CIFS 2.2.4.53).

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// One leg of a logon by GSS tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSetupAndx<'a> {
    /// Largest message that the client takes.
    pub max_buffer_size: u16,
    /// Requests that the client has under way at most.
    pub max_mpx_count: u16,
    /// Zero closes other connections of the same client; so not zero.
    pub vc_number: u16,
    /// As the server gave it.
    pub session_key: u32,
    /// See [`capabilities`](super::capabilities).
    pub capabilities: u32,
    /// SecurityBlob.
    pub blob: &'a [u8],
    /// NativeOS.
    pub native_os: &'a str,
    /// NativeLanMan.
    pub native_lan_man: &'a str,
}

impl Request for SessionSetupAndx<'_> {
    const COMMAND: Command = Command::SESSION_SETUP_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u16(self.max_buffer_size);
        writer.u16(self.max_mpx_count);
        writer.u16(self.vc_number);
        writer.u32(self.session_key);
        writer.u16(self.blob.len() as u16);
        writer.u32(0);
        writer.u32(self.capabilities);
        writer.data();
        writer.bytes(self.blob);
        writer.string(self.native_os);
        writer.string(self.native_lan_man);
    }
}

/// The answer to a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSetupAndxResponse<'a> {
    /// Bit 0: logged on as a guest.
    pub action: u16,
    /// SecurityBlob.
    pub blob: &'a [u8],
}

impl SessionSetupAndxResponse<'_> {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<SessionSetupAndxResponse<'_>, Malformed> {
        let view = View::parse(message, Command::SESSION_SETUP_ANDX)?;
        let length = usize::from(view.u16(6)?);
        let blob = view.data.get(..length).ok_or(view.wrong("security blob cut off"))?;
        Ok(SessionSetupAndxResponse { action: view.u16(4)?, blob })
    }
}

/// A logon with answers to the challenge of the negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSetupAndxPlain<'a> {
    /// Largest message that the client takes.
    pub max_buffer_size: u16,
    /// Requests that the client has under way at most.
    pub max_mpx_count: u16,
    /// Zero closes other connections of the same client; so not zero.
    pub vc_number: u16,
    /// As the server gave it.
    pub session_key: u32,
    /// See [`capabilities`](super::capabilities).
    pub capabilities: u32,
    /// OEMPassword: the LM answer.
    pub oem_password: &'a [u8],
    /// UnicodePassword: the NT answer.
    pub unicode_password: &'a [u8],
    /// Empty for an anonymous logon.
    pub account_name: &'a str,
    /// PrimaryDomain.
    pub primary_domain: &'a str,
    /// NativeOS.
    pub native_os: &'a str,
    /// NativeLanMan.
    pub native_lan_man: &'a str,
}

impl Request for SessionSetupAndxPlain<'_> {
    const COMMAND: Command = Command::SESSION_SETUP_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u16(self.max_buffer_size);
        writer.u16(self.max_mpx_count);
        writer.u16(self.vc_number);
        writer.u32(self.session_key);
        writer.u16(self.oem_password.len() as u16);
        writer.u16(self.unicode_password.len() as u16);
        writer.u32(0);
        writer.u32(self.capabilities);
        writer.data();
        writer.bytes(self.oem_password);
        writer.bytes(self.unicode_password);
        for text in [self.account_name, self.primary_domain, self.native_os, self.native_lan_man] {
            writer.string(text);
        }
    }
}

/// Its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSetupAndxPlainResponse {
    /// Bit 0: logged on as a guest.
    pub action: u16,
}

impl SessionSetupAndxPlainResponse {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<SessionSetupAndxPlainResponse, Malformed> {
        let view = View::parse(message, Command::SESSION_SETUP_ANDX)?;
        Ok(SessionSetupAndxPlainResponse { action: view.u16(4)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response, utf16};
    use super::*;

    #[test]
    fn the_token_is_followed_by_aligned_strings() {
        let setup = SessionSetupAndx {
            max_buffer_size: 0xffff,
            max_mpx_count: 50,
            vc_number: 1,
            session_key: 0x0403_0201,
            capabilities: 0x8000_00d4,
            blob: b"tok",
            native_os: "U",
            native_lan_man: "s",
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
            unicode_password: &[],
            account_name: "",
            primary_domain: "",
            native_os: "",
            native_lan_man: "",
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
        let bytes = response(Command::SESSION_SETUP_ANDX, &words, &data);
        let expected = SessionSetupAndxResponse { action: 1, blob: b"ab" };
        assert_eq!(SessionSetupAndxResponse::parse(&bytes), Ok(expected));
        let cut = response(Command::SESSION_SETUP_ANDX, &[0xff, 0, 0, 0, 1, 0, 9, 0], b"ab");
        assert_eq!(SessionSetupAndxResponse::parse(&cut).unwrap_err().what, "security blob cut off");
    }
}

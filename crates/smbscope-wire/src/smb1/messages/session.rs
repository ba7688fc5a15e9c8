//! Negotiation, sessions and tree connects: SMB_COM_NEGOTIATE (MS-CIFS 2.2.4.52, MS-SMB 2.2.4.5) with the response for
//! dialect NT LM 0.12, SMB_COM_SESSION_SETUP_ANDX with GSS tokens (MS-SMB 2.2.4.6) and without (MS-CIFS 2.2.4.53),
//! SMB_COM_TREE_CONNECT_ANDX (MS-CIFS 2.2.4.55, MS-SMB 2.2.4.7) and SMB_COM_ECHO (MS-CIFS 2.2.4.39).

use super::super::{Block, Smb1Command};
use super::WireText;
use super::message::{Malformed, Smb1Message, Smb1MessageWriter, View, message};

/// Bits of Capabilities of both sides (MS-CIFS 2.2.4.52.2, MS-SMB 2.2.4.5.2.1).
pub mod capabilities {
    pub const RAW_MODE: u32 = 0x0000_0001;
    pub const UNICODE: u32 = 0x0000_0004;
    pub const LARGE_FILES: u32 = 0x0000_0008;
    pub const NT_SMBS: u32 = 0x0000_0010;
    pub const STATUS32: u32 = 0x0000_0040;
    pub const LEVEL_II_OPLOCKS: u32 = 0x0000_0080;
    /// TRANS2_FIND_FIRST2 information levels of Windows NT.
    pub const NT_FIND: u32 = 0x0000_0200;
    /// Classes of MS-FSCC plus 1000 (MS-SMB 2.2.2.3.5).
    pub const INFOLEVEL_PASSTHRU: u32 = 0x0000_2000;
    /// READ_ANDX larger than MaxBufferSize.
    pub const LARGE_READX: u32 = 0x0000_4000;
    /// WRITE_ANDX larger than MaxBufferSize.
    pub const LARGE_WRITEX: u32 = 0x0000_8000;
    /// GSS tokens in SESSION_SETUP_ANDX.
    pub const EXTENDED_SECURITY: u32 = 0x8000_0000;
}

/// Bits of SecurityMode (MS-CIFS 2.2.4.52.2).
pub mod security_mode {
    /// User-level access control; share-level if clear.
    pub const USER: u8 = 0x01;
    /// Challenge and response instead of plain-text passwords.
    pub const ENCRYPT_PASSWORDS: u8 = 0x02;
    pub const SIGNATURES_ENABLED: u8 = 0x04;
    pub const SIGNATURES_REQUIRED: u8 = 0x08;
}

/// Request. Extended security is requested in Flags2 of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// In the order to which the response's index refers.
    pub dialects: &'a [&'a str],
}

/// Buffer format of a dialect (MS-CIFS 2.2.4.52.1).
const DIALECT: u8 = 0x02;
/// Dialects of an SMB1 NEGOTIATE; the rest is ignored.
const MAX_DIALECTS: usize = 64;

/// Dialect of Windows NT and all later servers.
pub const NT_LM_0_12: &str = "NT LM 0.12";

impl Smb1Message for Negotiate<'_> {
    const COMMAND: Smb1Command = Smb1Command::NEGOTIATE;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.data();
        for dialect in self.dialects {
            writer.u8(DIALECT);
            writer.oem((*dialect).into());
        }
    }
}

impl Negotiate<'_> {
    /// Returns the complete dialect names of a possibly truncated request.
    pub(in crate::smb1) fn dialects(block: &Block<'_>) -> Vec<String> {
        let mut names = Vec::new();
        let mut offset = 0;
        while names.len() < MAX_DIALECTS && block.data.get(offset) == Some(&DIALECT) {
            let Some((name, next)) = block.oem(offset + 1) else { break };
            names.push(name);
            offset = next;
        }
        names
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NegotiateResponse<'a> {
    NoDialect,
    NtLm012(NtLm012<'a>),
}

message! {
    NoDialect: NEGOTIATE, 1 {
        dialect_index: u16 = 0,
    }
}

impl NoDialect {
    pub const INDEX: u16 = 0xffff;
}

message! {
    NtLm012Fields: NEGOTIATE, 17 {
        dialect_index: u16 = 0,
        security_mode: u8 = 2,
        max_mpx_count: u16 = 3,
        max_number_vcs: u16 = 5,
        max_buffer_size: u32 = 7,
        max_raw_size: u32 = 11,
        session_key: u32 = 15,
        capabilities: u32 = 19,
        system_time: u64 = 23,
        challenge_length: u8 = 33,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtLm012<'a> {
    pub dialect_index: u16,
    pub security_mode: u8,
    /// Maximum number of outstanding requests.
    pub max_mpx_count: u16,
    /// Maximum message size that the server accepts.
    pub max_buffer_size: u32,
    pub max_raw_size: u32,
    /// Value to repeat in SESSION_SETUP_ANDX.
    pub session_key: u32,
    pub capabilities: u32,
    pub system_time: u64,
    pub security: Security<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security<'a> {
    /// GSS tokens, with the server's first one, which may be empty.
    Extended {
        server_guid: [u8; 16],
        blob: &'a [u8],
    },
    Challenge {
        challenge: &'a [u8],
        domain: WireText<'a>,
    },
}

impl NtLm012<'_> {
    pub fn can(&self, capabilities: u32) -> bool {
        self.capabilities & capabilities == capabilities
    }
}

impl Smb1Message for NtLm012<'_> {
    const COMMAND: Smb1Command = Smb1Command::NEGOTIATE;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let challenge_length = match self.security {
            Security::Extended { .. } => 0,
            Security::Challenge { challenge, .. } => challenge.len() as u8,
        };
        let fields = NtLm012Fields {
            dialect_index: self.dialect_index,
            security_mode: self.security_mode,
            max_mpx_count: self.max_mpx_count,
            max_number_vcs: 1,
            max_buffer_size: self.max_buffer_size,
            max_raw_size: self.max_raw_size,
            session_key: self.session_key,
            capabilities: self.capabilities,
            system_time: self.system_time,
            challenge_length,
        };
        fields.body(writer);
        match self.security {
            Security::Extended { server_guid, blob } => {
                writer.bytes(&server_guid);
                writer.bytes(blob);
            }
            Security::Challenge { challenge, domain } => {
                writer.bytes(challenge);
                writer.terminated(domain);
            }
        }
    }
}

impl NegotiateResponse<'_> {
    /// Parses the response to [`Negotiate`] with [`NT_LM_0_12`] as the only dialect.
    pub fn parse(message: &[u8]) -> Result<NegotiateResponse<'_>, Malformed> {
        let view = View::parse(message, Smb1Command::NEGOTIATE)?;
        match view.value::<u16>(0)? {
            NoDialect::INDEX => return Ok(NegotiateResponse::NoDialect),
            0 if view.word_count() >= 17 => {}
            0 => return Err(view.wrong("too few parameters for NT LM 0.12")),
            _ => return Err(view.wrong("a dialect that was not offered")),
        }
        let fields = NtLm012Fields::read(&view)?;
        let security = if fields.capabilities & capabilities::EXTENDED_SECURITY != 0 {
            Security::Extended { server_guid: view.data_array(0)?, blob: &view.data[16..] }
        } else {
            let mut at = 0;
            let challenge = view.take(&mut at, fields.challenge_length.into())?;
            Security::Challenge { challenge, domain: view.text(&mut at) }
        };
        Ok(NegotiateResponse::NtLm012(NtLm012 {
            dialect_index: fields.dialect_index,
            security_mode: fields.security_mode,
            max_mpx_count: fields.max_mpx_count,
            max_buffer_size: fields.max_buffer_size,
            max_raw_size: fields.max_raw_size,
            session_key: fields.session_key,
            capabilities: fields.capabilities,
            system_time: fields.system_time,
            security,
        }))
    }
}

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

    /// 17 words in the order of MS-CIFS 2.2.4.52.2.
    fn words(capabilities: u32, challenge_length: u8) -> Vec<u8> {
        let mut words = vec![0, 0, 0x0f, 50, 0, 1, 0];
        words.extend(16_644u32.to_le_bytes());
        words.extend(65_536u32.to_le_bytes());
        words.extend(0x1234_5678u32.to_le_bytes());
        words.extend(capabilities.to_le_bytes());
        words.extend(0x01d9_0000_0000_0001u64.to_le_bytes());
        words.extend([0x3c, 0, challenge_length]);
        words
    }

    #[test]
    fn one_dialect_is_offered() {
        assert_eq!(emitted(&Negotiate { dialects: &[NT_LM_0_12] }), b"\x00\x0c\x00\x02NT LM 0.12\0");
    }

    #[test]
    fn extended_security_brings_guid_and_token() {
        let mut data = vec![7; 16];
        data.extend(b"token");
        let bytes = response(Smb1Command::NEGOTIATE, &words(0x8000_e3fd, 0), &data);
        let NegotiateResponse::NtLm012(answer) = NegotiateResponse::parse(&bytes).unwrap() else { panic!() };
        assert_eq!(answer.security, Security::Extended { server_guid: [7; 16], blob: b"token" });
        assert_eq!((answer.max_mpx_count, answer.max_buffer_size, answer.session_key), (50, 16_644, 0x1234_5678));
        assert_eq!(answer.security_mode, 0x0f);
        assert!(answer.can(capabilities::LARGE_READX | capabilities::INFOLEVEL_PASSTHRU));
        assert!(!answer.can(2));
    }

    #[test]
    fn without_extended_security_there_is_a_challenge() {
        let bytes = response(Smb1Command::NEGOTIATE, &words(0x0000_e3fd, 8), b"12345678L\0A\0B\0\0\0");
        let NegotiateResponse::NtLm012(answer) = NegotiateResponse::parse(&bytes).unwrap() else { panic!() };
        assert!(matches!(answer.security, Security::Challenge { challenge: b"12345678", .. }));
        let cut = response(Smb1Command::NEGOTIATE, &words(0, 8), b"123");
        assert_eq!(NegotiateResponse::parse(&cut).unwrap_err().what, "data cut off");
    }

    #[test]
    fn a_server_without_the_dialect_says_so() {
        // MS-CIFS 3.3.5.42: 0xffff if no dialect was acceptable.
        let bytes = response(Smb1Command::NEGOTIATE, &[0xff, 0xff], &[]);
        assert_eq!(NegotiateResponse::parse(&bytes), Ok(NegotiateResponse::NoDialect));
    }

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

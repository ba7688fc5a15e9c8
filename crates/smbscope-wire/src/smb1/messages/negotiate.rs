//! SMB_COM_NEGOTIATE (MS-CIFS 2.2.4.52, MS-SMB 2.2.4.5), with the response for dialect NT LM 0.12.

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

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
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
}

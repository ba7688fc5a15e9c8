//! SMB_COM_NEGOTIATE (MS-CIFS 2.2.4.52, MS-SMB 2.2.4.5) for the one dialect NT LM 0.12.

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// Capabilities of both sides (MS-CIFS 2.2.4.52.2, MS-SMB 2.2.4.5.2.1).
pub mod capabilities {
    /// READ_RAW and WRITE_RAW.
    pub const RAW_MODE: u32 = 0x0000_0001;
    /// UTF-16 strings.
    pub const UNICODE: u32 = 0x0000_0004;
    /// 64-bit offsets.
    pub const LARGE_FILES: u32 = 0x0000_0008;
    /// The commands of NT LM 0.12.
    pub const NT_SMBS: u32 = 0x0000_0010;
    /// NTSTATUS.
    pub const STATUS32: u32 = 0x0000_0040;
    /// Level II oplocks.
    pub const LEVEL_II_OPLOCKS: u32 = 0x0000_0080;
    /// Information levels of TRANS2_FIND_FIRST2 as of Windows NT.
    pub const NT_FIND: u32 = 0x0000_0200;
    /// Classes of MS-FSCC, raised by 1000 (MS-SMB 2.2.2.3.5).
    pub const INFOLEVEL_PASSTHRU: u32 = 0x0000_2000;
    /// READ_ANDX beyond the buffer size.
    pub const LARGE_READX: u32 = 0x0000_4000;
    /// WRITE_ANDX beyond the buffer size.
    pub const LARGE_WRITEX: u32 = 0x0000_8000;
    /// GSS tokens in SESSION_SETUP_ANDX.
    pub const EXTENDED_SECURITY: u32 = 0x8000_0000;
}

/// SecurityMode (MS-CIFS 2.2.4.52.2).
pub mod security_mode {
    /// Users log on; otherwise shares have passwords.
    pub const USER: u8 = 0x01;
    /// Passwords are not sent in the clear.
    pub const ENCRYPT_PASSWORDS: u8 = 0x02;
    /// The server can sign.
    pub const SIGNATURES_ENABLED: u8 = 0x04;
    /// The server insists on it.
    pub const SIGNATURES_REQUIRED: u8 = 0x08;
}

/// Offers NT LM 0.12 and nothing else. Extended security is asked for in the header's Flags2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiate;

impl Request for Negotiate {
    const COMMAND: Command = Command::NEGOTIATE;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.data();
        writer.u8(0x02);
        writer.oem("NT LM 0.12");
    }
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NegotiateResponse<'a> {
    /// None of the dialects.
    NoDialect,
    /// NT LM 0.12.
    NtLm012(NtLm012<'a>),
}

/// What the server says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtLm012<'a> {
    /// See [`security_mode`].
    pub security_mode: u8,
    /// Requests that may be under way at once.
    pub max_mpx_count: u16,
    /// Largest message that the server takes.
    pub max_buffer_size: u32,
    /// Largest raw block.
    pub max_raw_size: u32,
    /// To be given back in SESSION_SETUP_ANDX.
    pub session_key: u32,
    /// See [`capabilities`].
    pub capabilities: u32,
    /// FILETIME of the server.
    pub system_time: u64,
    /// How users log on.
    pub security: Security<'a>,
}

/// How users log on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security<'a> {
    /// GSS tokens; the server's first one, which may be empty.
    Extended {
        /// ServerGUID.
        server_guid: [u8; 16],
        /// SecurityBlob.
        blob: &'a [u8],
    },
    /// Challenge and response.
    Challenge(&'a [u8]),
}

impl NtLm012<'_> {
    /// Whether all of these bits are set.
    pub fn can(&self, capabilities: u32) -> bool {
        self.capabilities & capabilities == capabilities
    }
}

impl NegotiateResponse<'_> {
    /// Checks the answer to [`Negotiate`].
    pub fn parse(message: &[u8]) -> Result<NegotiateResponse<'_>, Malformed> {
        let view = View::parse(message, Command::NEGOTIATE)?;
        match view.u16(0)? {
            0xffff => return Ok(NegotiateResponse::NoDialect),
            0 if view.word_count() >= 17 => {}
            0 => return Err(view.wrong("too few parameters for NT LM 0.12")),
            _ => return Err(view.wrong("a dialect that was not offered")),
        }
        let capabilities = view.u32(19)?;
        let security = if capabilities & capabilities::EXTENDED_SECURITY != 0 {
            Security::Extended { server_guid: view.data_array(0)?, blob: &view.data[16..] }
        } else {
            let length = usize::from(view.u8(33)?);
            Security::Challenge(view.data.get(..length).ok_or(view.wrong("challenge cut off"))?)
        };
        Ok(NegotiateResponse::NtLm012(NtLm012 {
            security_mode: view.u8(2)?,
            max_mpx_count: view.u16(3)?,
            max_buffer_size: view.u32(7)?,
            max_raw_size: view.u32(11)?,
            session_key: view.u32(15)?,
            capabilities,
            system_time: view.u64(23)?,
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
        assert_eq!(emitted(&Negotiate), b"\x00\x0c\x00\x02NT LM 0.12\0");
    }

    #[test]
    fn extended_security_brings_guid_and_token() {
        let mut data = vec![7; 16];
        data.extend(b"token");
        let bytes = response(Command::NEGOTIATE, &words(0x8000_e3fd, 0), &data);
        let NegotiateResponse::NtLm012(answer) = NegotiateResponse::parse(&bytes).unwrap() else { panic!() };
        assert_eq!(answer.security, Security::Extended { server_guid: [7; 16], blob: b"token" });
        assert_eq!((answer.max_mpx_count, answer.max_buffer_size, answer.session_key), (50, 16_644, 0x1234_5678));
        assert_eq!(answer.security_mode, 0x0f);
        assert!(answer.can(capabilities::LARGE_READX | capabilities::INFOLEVEL_PASSTHRU));
        assert!(!answer.can(2));
    }

    #[test]
    fn without_it_there_is_a_challenge() {
        let bytes = response(Command::NEGOTIATE, &words(0x0000_e3fd, 8), b"12345678L\0A\0B\0\0\0");
        let NegotiateResponse::NtLm012(answer) = NegotiateResponse::parse(&bytes).unwrap() else { panic!() };
        assert_eq!(answer.security, Security::Challenge(b"12345678"));
        let cut = response(Command::NEGOTIATE, &words(0, 8), b"123");
        assert_eq!(NegotiateResponse::parse(&cut).unwrap_err().what, "challenge cut off");
    }

    #[test]
    fn a_server_without_the_dialect_says_so() {
        // MS-CIFS 3.3.5.42: 0xffff where no dialect was acceptable.
        let bytes = response(Command::NEGOTIATE, &[0xff, 0xff], &[]);
        assert_eq!(NegotiateResponse::parse(&bytes), Ok(NegotiateResponse::NoDialect));
    }
}

//! The three NTLM messages (MS-NLMP 2.2.1), and the AV_PAIRs in which server and client describe themselves (2.2.2.1).

use smbscope_wire::bytes::{array_at, u16_at, u32_at};

/// NegotiateFlags (MS-NLMP 2.2.2.5).
pub mod flags {
    pub const UNICODE: u32 = 0x0000_0001;
    const REQUEST_TARGET: u32 = 0x0000_0004;
    const SIGN: u32 = 0x0000_0010;
    pub const NTLM: u32 = 0x0000_0200;
    pub const ANONYMOUS: u32 = 0x0000_0800;
    const ALWAYS_SIGN: u32 = 0x0000_8000;
    pub const EXTENDED_SESSION_SECURITY: u32 = 0x0008_0000;
    const TARGET_INFO: u32 = 0x0080_0000;
    const VERSION: u32 = 0x0200_0000;
    pub const KEYS_OF_128: u32 = 0x2000_0000;
    pub const KEY_EXCHANGE: u32 = 0x4000_0000;
    pub const KEYS_OF_56: u32 = 0x8000_0000;

    /// Flags requested in NEGOTIATE. AUTHENTICATE keeps those that the server grants.
    pub const WANTED: u32 = UNICODE
        | REQUEST_TARGET
        | SIGN
        | NTLM
        | ALWAYS_SIGN
        | EXTENDED_SESSION_SECURITY
        | TARGET_INFO
        | VERSION
        | KEYS_OF_128
        | KEY_EXCHANGE
        | KEYS_OF_56;
}

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// VERSION (MS-NLMP 2.2.2.10), for debugging only: 10.0, no build, NTLMSSP_REVISION_W2K3.
const VERSION: [u8; 8] = [10, 0, 0, 0, 0, 0, 0, 15];

pub fn negotiate(flags: u32) -> Vec<u8> {
    let mut message = SIGNATURE.to_vec();
    message.extend_from_slice(&1u32.to_le_bytes());
    message.extend_from_slice(&flags.to_le_bytes());
    message.extend_from_slice(&[0; 16]);
    message.extend_from_slice(&VERSION);
    message
}

/// CHALLENGE_MESSAGE (2.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge<'a> {
    pub flags: u32,
    pub server_challenge: [u8; 8],
    pub target_info: &'a [u8],
}

impl<'a> Challenge<'a> {
    pub fn parse(message: &'a [u8]) -> Option<Challenge<'a>> {
        if !message.starts_with(SIGNATURE) || u32_at(message, 8)? != 2 {
            return None;
        }
        let target_info = match u16_at(message, 40) {
            Some(length) if length > 0 => {
                let offset = u32_at(message, 44)? as usize;
                message.get(offset..offset.checked_add(length.into())?)?
            }
            _ => &[],
        };
        Some(Challenge { flags: u32_at(message, 20)?, server_challenge: array_at(message, 24)?, target_info })
    }
}

/// AUTHENTICATE_MESSAGE (2.2.1.3).
#[derive(Debug, Clone, Copy)]
pub struct Authenticate<'a> {
    pub flags: u32,
    pub lm_response: &'a [u8],
    pub nt_response: &'a [u8],
    pub domain: &'a str,
    pub user: &'a str,
    pub workstation: &'a str,
    pub encrypted_session_key: &'a [u8],
}

impl Authenticate<'_> {
    pub fn encode(&self, mic: Option<[u8; 16]>) -> Vec<u8> {
        const HEADER: usize = 72;
        let mic = mic.as_ref().map_or(&[][..], |mic| mic);
        let mut payload = Vec::new();
        let mut place = |item: &[u8]| {
            let offset = HEADER + mic.len() + payload.len();
            payload.extend_from_slice(item);
            fields(item.len(), offset)
        };
        let domain = place(&utf16(self.domain));
        let user = place(&utf16(self.user));
        let workstation = place(&utf16(self.workstation));
        let lm_response = place(self.lm_response);
        let nt_response = place(self.nt_response);
        let session_key = place(self.encrypted_session_key);

        let mut message = SIGNATURE.to_vec();
        message.extend_from_slice(&3u32.to_le_bytes());
        for item in [lm_response, nt_response, domain, user, workstation, session_key] {
            message.extend_from_slice(&item);
        }
        message.extend_from_slice(&self.flags.to_le_bytes());
        message.extend_from_slice(&VERSION);
        message.extend_from_slice(mic);
        message.extend_from_slice(&payload);
        message
    }
}

pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn fields(length: usize, offset: usize) -> [u8; 8] {
    let length = u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
    let offset = u32::try_from(offset).unwrap_or(u32::MAX).to_le_bytes();
    let mut fields = [0; 8];
    fields[..2].copy_from_slice(&length);
    fields[2..4].copy_from_slice(&length);
    fields[4..].copy_from_slice(&offset);
    fields
}

/// AvId.
mod id {
    pub(super) const EOL: u16 = 0;
    pub(super) const FLAGS: u16 = 6;
    pub(super) const TIMESTAMP: u16 = 7;
    pub(super) const TARGET_NAME: u16 = 9;
    pub(super) const CHANNEL_BINDINGS: u16 = 10;
}

/// MsvAvFlags: the AUTHENTICATE_MESSAGE has a MIC.
const FLAG_MIC: u32 = 0x0000_0002;

/// Pairs of a CHALLENGE_MESSAGE, without the terminator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetInfo<'a>(Vec<(u16, &'a [u8])>);

impl<'a> TargetInfo<'a> {
    /// Returns `None` if a pair is truncated. Empty information is valid, because every pair is optional.
    pub fn parse(mut bytes: &'a [u8]) -> Option<TargetInfo<'a>> {
        let mut pairs = Vec::new();
        while !bytes.is_empty() {
            let (id, length) = (u16_at(bytes, 0)?, usize::from(u16_at(bytes, 2)?));
            let (value, rest) = bytes.get(4..)?.split_at_checked(length)?;
            if id == id::EOL {
                break;
            }
            pairs.push((id, value));
            bytes = rest;
        }
        Some(TargetInfo(pairs))
    }

    pub fn timestamp(&self) -> Option<u64> {
        array_at(self.value(id::TIMESTAMP)?, 0).map(u64::from_le_bytes)
    }

    /// Returns the server's pairs, the MIC flag, empty channel bindings, and the server's name (MS-NLMP 3.1.5.1.2).
    pub fn answer(&self, target_name: &str, has_mic: bool) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut push = |id: u16, value: &[u8]| {
            answer.extend_from_slice(&id.to_le_bytes());
            answer.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_le_bytes());
            answer.extend_from_slice(value);
        };
        let ours = [id::FLAGS, id::CHANNEL_BINDINGS, id::TARGET_NAME];
        self.0.iter().filter(|(id, _)| !ours.contains(id)).for_each(|(id, value)| push(*id, value));
        let their_flags = self.value(id::FLAGS).and_then(|value| array_at(value, 0)).map_or(0, u32::from_le_bytes);
        let flags = their_flags | if has_mic { FLAG_MIC } else { 0 };
        if flags != 0 {
            push(id::FLAGS, &flags.to_le_bytes());
        }
        push(id::CHANNEL_BINDINGS, &[0; 16]);
        push(id::TARGET_NAME, &utf16(target_name));
        push(id::EOL, &[]);
        answer
    }

    fn value(&self, id: u16) -> Option<&'a [u8]> {
        self.0.iter().find(|pair| pair.0 == id).map(|pair| pair.1)
    }
}

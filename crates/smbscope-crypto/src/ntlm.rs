//! NTLMv2, for the client and for decryption: the three messages (MS-NLMP 2.2.1) with the AV_PAIRs in which server and
//! client describe themselves (2.2.2.1), responses and keys (3.3.2, 3.4.4, 3.4.5), and the session key of a captured
//! logon, given the user's password.

use hmac::{Hmac, KeyInit, Mac};
use md4::Md4;
use md5::{Digest, Md5};
use rc4::{Rc4, StreamCipher};
use smbscope_wire::bytes::{array_at, u16_at, u32_at};
use smbscope_wire::security::{SecurityToken, identify};
use std::ops::Range;
use zeroize::Zeroizing;

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

#[derive(Clone, PartialEq, Eq)]
pub struct NtlmResponses {
    pub nt: Vec<u8>,
    /// LmChallengeResponse, for servers that require one.
    pub lm: [u8; 24],
    /// SessionBaseKey, which equals the KeyExchangeKey in NTLMv2.
    pub session_base_key: [u8; 16],
}

/// NTOWFv2: hash of password, user and domain.
pub fn nt_owf_v2(password: &str, user: &str, domain: &str) -> [u8; 16] {
    let hash: [u8; 16] = Md4::digest(utf16(password)).into();
    hmac_md5(&hash, &[&utf16(&upper_case(user)), &utf16(domain)])
}

pub fn respond(
    response_key: &[u8; 16],
    server_challenge: &[u8; 8],
    client_challenge: &[u8; 8],
    time: u64,
    target_info: &[u8],
) -> NtlmResponses {
    let temp = temp(time, client_challenge, target_info);
    let nt_proof = hmac_md5(response_key, &[server_challenge, &temp]);
    let lm_proof = hmac_md5(response_key, &[server_challenge, client_challenge]);
    let mut lm = [0; 24];
    lm[..16].copy_from_slice(&lm_proof);
    lm[16..].copy_from_slice(client_challenge);
    NtlmResponses { nt: [&nt_proof[..], &temp].concat(), lm, session_base_key: hmac_md5(response_key, &[&nt_proof]) }
}

/// `temp`, called NTLMv2_CLIENT_CHALLENGE in 2.2.2.7.
fn temp(time: u64, client_challenge: &[u8; 8], target_info: &[u8]) -> Vec<u8> {
    let mut temp = vec![1, 1, 0, 0, 0, 0, 0, 0];
    temp.extend_from_slice(&time.to_le_bytes());
    temp.extend_from_slice(client_challenge);
    temp.extend_from_slice(&[0; 4]);
    temp.extend_from_slice(target_info);
    temp.extend_from_slice(&[0; 4]);
    temp
}

pub fn rc4_key(key: &[u8; 16], data: &[u8; 16]) -> [u8; 16] {
    let mut data = *data;
    rc4(key).apply_keystream(&mut data);
    data
}

pub fn hmac_md5(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NtlmSender {
    Client,
    Server,
}

pub struct MessageSigner {
    signing_key: [u8; 16],
    /// Encrypts the checksums if keys are exchanged.
    sealing: Option<Rc4>,
    sequence: u32,
}

impl MessageSigner {
    pub fn new(exported_session_key: &[u8; 16], negotiated: u32, mode: NtlmSender) -> MessageSigner {
        let sealing = rc4(&sealing_key(exported_session_key, negotiated, mode));
        MessageSigner {
            signing_key: signing_key(exported_session_key, mode),
            sealing: (negotiated & flags::KEY_EXCHANGE != 0).then_some(sealing),
            sequence: 0,
        }
    }

    /// Returns the signature of the next message: version, checksum, sequence number.
    pub fn sign(&mut self, message: &[u8]) -> [u8; 16] {
        let number = self.sequence.to_le_bytes();
        self.sequence = self.sequence.wrapping_add(1);
        let mut signature = [0; 16];
        signature[0] = 1;
        signature[4..12].copy_from_slice(&hmac_md5(&self.signing_key, &[&number, message])[..8]);
        if let Some(sealing) = &mut self.sealing {
            sealing.apply_keystream(&mut signature[4..12]);
        }
        signature[12..].copy_from_slice(&number);
        signature
    }
}

/// SIGNKEY (3.4.5.2).
fn signing_key(exported_session_key: &[u8; 16], mode: NtlmSender) -> [u8; 16] {
    let magic: &[u8] = match mode {
        NtlmSender::Client => b"session key to client-to-server signing key magic constant\0",
        NtlmSender::Server => b"session key to server-to-client signing key magic constant\0",
    };
    Md5::new().chain_update(exported_session_key).chain_update(magic).finalize().into()
}

/// SEALKEY (3.4.5.3), from the negotiated number of key bytes.
fn sealing_key(exported_session_key: &[u8; 16], negotiated: u32, mode: NtlmSender) -> [u8; 16] {
    let used = if negotiated & flags::KEYS_OF_128 != 0 {
        16
    } else if negotiated & flags::KEYS_OF_56 != 0 {
        7
    } else {
        5
    };
    let magic: &[u8] = match mode {
        NtlmSender::Client => b"session key to client-to-server sealing key magic constant\0",
        NtlmSender::Server => b"session key to server-to-client sealing key magic constant\0",
    };
    Md5::new().chain_update(&exported_session_key[..used]).chain_update(magic).finalize().into()
}

fn rc4(key: &[u8; 16]) -> Rc4 {
    Rc4::new_from_slice(key).expect("RC4 takes keys of 16 bytes")
}

/// Converts character by character, as Windows does: a character without a single-character upper case (ß) stays.
fn upper_case(text: &str) -> String {
    text.chars()
        .map(|c| {
            let mut upper = c.to_uppercase();
            if upper.len() == 1 { upper.next().unwrap_or(c) } else { c }
        })
        .collect()
}

const NT_PROOF: usize = 16;
/// NTLMv1 responses have this length; their session keys need other hashes and never encrypt SMB 3.
const NTLM_V1: usize = 24;

mod field {
    pub(super) const MESSAGE_TYPE: usize = 8;
    pub(super) const SERVER_CHALLENGE: usize = 24;
    pub(super) const NT_RESPONSE: usize = 20;
    pub(super) const ENCRYPTED_SESSION_KEY: usize = 52;
    pub(super) const FLAGS: usize = 60;
}

/// Returns ServerChallenge of a CHALLENGE_MESSAGE, bare or in a security token.
pub fn server_challenge(token: &[u8]) -> Option<[u8; 8]> {
    let message = ntlm_message(token, 2)?;
    array_at(message, field::SERVER_CHALLENGE)
}

/// AUTHENTICATE_MESSAGE of a user with the challenge that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLogon {
    pub user: String,
    pub domain: String,
    server_challenge: [u8; 8],
    nt_response: Vec<u8>,
    /// EncryptedRandomSessionKey, if keys are exchanged.
    exchanged: Option<[u8; 16]>,
}

impl CapturedLogon {
    /// Returns `None` if the token holds no NTLMv2 response of a user, or is truncated.
    pub fn parse(server_challenge: [u8; 8], token: &[u8]) -> Option<CapturedLogon> {
        let message = ntlm_message(token, 3)?;
        let SecurityToken::NtlmAuthenticate { domain, user, anonymous: false, .. } = identify(message)? else {
            return None;
        };
        let nt_response = message.get(item(message, field::NT_RESPONSE)?)?;
        if nt_response.len() <= NTLM_V1 {
            return None;
        }
        let exchanged = match u32_at(message, field::FLAGS)? & flags::KEY_EXCHANGE {
            0 => None,
            _ => Some(message.get(item(message, field::ENCRYPTED_SESSION_KEY)?)?.try_into().ok()?),
        };
        Some(CapturedLogon { user, domain, server_challenge, nt_response: nt_response.to_vec(), exchanged })
    }

    /// Returns ExportedSessionKey, or `None` if the password is wrong: the response proves it.
    pub fn session_key(&self, password: &str) -> Option<Zeroizing<[u8; 16]>> {
        let response_key = Zeroizing::new(nt_owf_v2(password, &self.user, &self.domain));
        let (proof, temp) = self.nt_response.split_at_checked(NT_PROOF)?;
        if hmac_md5(&response_key, &[&self.server_challenge, temp])[..] != *proof {
            return None;
        }
        let session_base_key = Zeroizing::new(hmac_md5(&response_key, &[proof]));
        Some(match &self.exchanged {
            Some(encrypted) => Zeroizing::new(rc4_key(&session_base_key, encrypted)),
            None => session_base_key,
        })
    }
}

/// Returns the NTLM message of a type inside a token. Its wrapper needs no parsing: the signature is unique.
fn ntlm_message(token: &[u8], message_type: u32) -> Option<&[u8]> {
    let start = token.windows(SIGNATURE.len()).position(|bytes| bytes == SIGNATURE)?;
    let message = token.get(start..)?;
    (u32_at(message, field::MESSAGE_TYPE)? == message_type).then_some(message)
}

fn item(message: &[u8], at: usize) -> Option<Range<usize>> {
    let (length, offset) = (usize::from(u16_at(message, at)?), u32_at(message, at + 4)? as usize);
    Some(offset..offset.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::vector;

    const LOGON: &str = include_str!("vectors/keys_3_1_1.txt");

    fn logon() -> CapturedLogon {
        let challenge = server_challenge(&vector(LOGON, "first_session_setup_response")).unwrap();
        CapturedLogon::parse(challenge, &vector(LOGON, "second_session_setup_request")).unwrap()
    }

    /// Expected: the session key that Microsoft published with the messages of this logon.
    #[test]
    fn the_password_gives_the_published_session_key() {
        assert_eq!((logon().domain.as_str(), logon().user.as_str()), ("SUT311", "administrator"));
        let key = logon().session_key("Password01!").expect("the password fits");
        assert_eq!(key[..], vector(LOGON, "session_key"));
    }

    #[test]
    fn a_wrong_password_is_known_as_such() {
        assert_eq!(logon().session_key("Password01"), None);
        assert_eq!(logon().session_key(""), None);
    }

    #[test]
    fn a_truncated_logon_gives_no_key() {
        let token = vector(LOGON, "second_session_setup_request");
        let whole = CapturedLogon::parse([0; 8], &token).is_some();
        let cut = (0..token.len()).filter(|end| CapturedLogon::parse([0; 8], &token[..*end]).is_some());
        assert!(whole && cut.min().is_none_or(|least| least > 400), "the exchanged key is at the end");
    }
}

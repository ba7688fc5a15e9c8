//! Session key of a captured NTLMv2 logon, given the user's password (MS-NLMP 3.3.2, 3.4.5.1).

use super::flags;
use super::keys::{hmac_md5, nt_owf_v2, rc4_key};
use smbscope_wire::bytes::{array_at, u16_at, u32_at};
use smbscope_wire::security::{SecurityToken, identify};
use std::ops::Range;
use zeroize::Zeroizing;

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
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

    const LOGON: &str = include_str!("../vectors/keys_3_1_1.txt");

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

//! Server side of a logon that accepts every user: SPNEGO (RFC 4178) around NTLM (MS-NLMP), without a key.

use smbscope_wire::bytes::u32_at;
use smbscope_wire::codec::Put;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leg {
    /// NEGOTIATE_MESSAGE, with the client's flags.
    Negotiate(u32),
    Authenticate,
    Unknown,
}

/// Finds the NTLM message in a token, with or without SPNEGO (MS-NLMP 2.2).
pub(super) fn leg(token: &[u8]) -> (Leg, Wrapping) {
    let wrapping = if token.starts_with(SIGNATURE) { Wrapping::Bare } else { Wrapping::Spnego };
    let Some(start) = token.windows(SIGNATURE.len()).position(|window| window == SIGNATURE) else {
        return (Leg::Unknown, wrapping);
    };
    let message = &token[start..];
    let leg = match u32_at(message, 8) {
        Some(1) => Leg::Negotiate(u32_at(message, 12).unwrap_or_default()),
        Some(3) => Leg::Authenticate,
        _ => Leg::Unknown,
    };
    (leg, wrapping)
}

/// Token wrapping of the client, which the server mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// Plain NTLM.
    Bare,
    /// NegTokenInit and NegTokenResp.
    Spnego,
}

const SIGNATURE: &[u8] = b"NTLMSSP\0";
/// 1.3.6.1.5.5.2
const SPNEGO_OID: &[u8] = &[0x06, 0x06, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x02];
/// 1.3.6.1.4.1.311.2.2.10
const NTLM_OID: &[u8] = &[0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0a];

/// Returns the server's NegTokenInit, which offers only NTLM.
pub(super) fn offer() -> Vec<u8> {
    let types = tagged(0xa0, &tagged(0x30, NTLM_OID));
    let mut inner = SPNEGO_OID.to_vec();
    inner.extend(tagged(0xa0, &tagged(0x30, &types)));
    tagged(0x60, &inner)
}

/// Returns a CHALLENGE_MESSAGE, with accept-incomplete if wrapped.
pub(super) fn challenge(offered: u32, wrapping: Wrapping) -> Vec<u8> {
    let message = challenge_message(offered);
    if wrapping == Wrapping::Bare {
        return message;
    }
    let mut fields = tagged(0xa0, &[0x0a, 1, 1]);
    fields.extend(tagged(0xa1, NTLM_OID));
    fields.extend(tagged(0xa2, &tagged(0x04, &message)));
    tagged(0xa1, &tagged(0x30, &fields))
}

/// Returns the final token, accept-completed if wrapped.
pub(super) fn accepted(wrapping: Wrapping) -> Vec<u8> {
    match wrapping {
        Wrapping::Bare => Vec::new(),
        Wrapping::Spnego => tagged(0xa1, &tagged(0x30, &tagged(0xa0, &[0x0a, 1, 0]))),
    }
}

/// Builds a CHALLENGE_MESSAGE (MS-NLMP 2.2.1.2). Its target information omits the timestamp, because with one the
/// client sends integrity codes that the server could only check with the password.
fn challenge_message(offered: u32) -> Vec<u8> {
    /// NEGOTIATE_UNICODE, REQUEST_TARGET, NTLM, ALWAYS_SIGN, EXTENDED_SESSIONSECURITY, KEY_EXCH, 128, 56.
    const ECHOED: u32 = 0xe008_8205;
    /// TARGET_TYPE_SERVER, TARGET_INFO.
    const ALWAYS: u32 = 0x0082_0000;
    const PAYLOAD: u32 = 56;
    let mut name = Vec::new();
    name.put_utf16(NAME);
    let mut information = Vec::new();
    // MsvAvNbDomainName, MsvAvNbComputerName, MsvAvDnsDomainName, MsvAvDnsComputerName.
    for id in [2, 1, 4, 3] {
        information.put_u16(id);
        information.put_u16(name.len() as u16);
        information.put_bytes(&name);
    }
    information.put_u32(0);
    let mut message = SIGNATURE.to_vec();
    message.put_u32(2);
    message.put_u16(name.len() as u16);
    message.put_u16(name.len() as u16);
    message.put_u32(PAYLOAD);
    message.put_u32(offered & ECHOED | ALWAYS);
    message.put_bytes(b"\x01\x23\x45\x67\x89\xab\xcd\xef");
    message.put_zeros(8);
    message.put_u16(information.len() as u16);
    message.put_u16(information.len() as u16);
    message.put_u32(PAYLOAD + name.len() as u32);
    // Version 6.1, NTLM revision 15.
    message.put_bytes(&[6, 1, 0, 0, 0, 0, 0, 15]);
    message.put_bytes(&name);
    message.put_bytes(&information);
    message
}

/// Name of the server and its domain.
pub(super) const NAME: &str = "SCRIPTED";

/// Encodes a DER value of up to 65,535 bytes.
fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    match value.len() {
        length @ 0..=127 => bytes.push(length as u8),
        length @ 128..=255 => bytes.extend([0x81, length as u8]),
        length => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    bytes.extend_from_slice(value);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::bytes::{u16_at, u64_at};

    #[test]
    fn tokens_tell_their_leg_inside_spnego_and_bare() {
        let bare = b"NTLMSSP\0\x01\0\0\0\x07\x82\x08\xa2";
        assert_eq!(leg(bare), (Leg::Negotiate(0xa208_8207), Wrapping::Bare));
        let mut wrapped = tagged(0xa1, b"NTLMSSP\0\x03\0\0\0");
        assert_eq!(leg(&wrapped), (Leg::Authenticate, Wrapping::Spnego));
        wrapped.truncate(6);
        assert_eq!(leg(&wrapped), (Leg::Unknown, Wrapping::Spnego));
    }

    #[test]
    fn target_information_of_the_challenge_lies_inside_it() {
        // MS-NLMP 2.2.1.2: TargetInfoFields at offset 40, and an MsvAvEOL of four zeros at the end.
        let message = challenge_message(u32::MAX);
        let (length, offset) = (u16_at(&message, 40).unwrap(), u32_at(&message, 44).unwrap());
        assert_eq!(usize::from(length) + offset as usize, message.len());
        assert!(message.ends_with(&[0; 4]));
        assert!(u64_at(&message, 24).is_some());
    }
}

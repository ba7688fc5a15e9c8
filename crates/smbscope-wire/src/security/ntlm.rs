//! Names in NTLM messages (MS-NLMP 2.2.1).

use super::SecurityToken;
use crate::bytes;
use crate::kept::{NameOf, RetainedRanges};
use std::ops::Range;

pub(super) const SIGNATURE: &[u8] = b"NTLMSSP\0";

const NEGOTIATE_UNICODE: u32 = 0x0000_0001;
const NEGOTIATE_ANONYMOUS: u32 = 0x0000_0800;

mod field {
    pub(super) const MESSAGE_TYPE: usize = 8;
    pub(super) const CHALLENGE_TARGET_NAME: usize = 12;
    pub(super) const CHALLENGE_FLAGS: usize = 20;
    pub(super) const AUTHENTICATE_NT_RESPONSE: usize = 20;
    pub(super) const AUTHENTICATE_DOMAIN: usize = 28;
    pub(super) const AUTHENTICATE_USER: usize = 36;
    pub(super) const AUTHENTICATE_WORKSTATION: usize = 44;
    pub(super) const AUTHENTICATE_FLAGS: usize = 60;
}

pub(super) fn identify(message: &[u8]) -> Option<SecurityToken> {
    match bytes::u32_at(message, field::MESSAGE_TYPE)? {
        1 => Some(SecurityToken::NtlmNegotiate),
        2 => {
            let flags = bytes::u32_at(message, field::CHALLENGE_FLAGS);
            let target = text(message, field::CHALLENGE_TARGET_NAME, flags).filter(|name| !name.is_empty());
            Some(SecurityToken::NtlmChallenge { target })
        }
        3 => Some(authenticate(message)),
        _ => None,
    }
}

fn authenticate(message: &[u8]) -> SecurityToken {
    let flags = authenticate_flags(message);
    let name = |at| text(message, at, flags).unwrap_or_default();
    let is_empty = |at| payload_fields(message, at).is_some_and(|(length, _)| length == 0);
    let nobody = is_empty(field::AUTHENTICATE_USER) && is_empty(field::AUTHENTICATE_NT_RESPONSE);
    SecurityToken::NtlmAuthenticate {
        domain: name(field::AUTHENTICATE_DOMAIN),
        user: name(field::AUTHENTICATE_USER),
        workstation: name(field::AUTHENTICATE_WORKSTATION),
        anonymous: nobody || flags.is_some_and(|flags| flags & NEGOTIATE_ANONYMOUS != 0),
    }
}

/// Returns NegotiateFlags. The first clients omitted them and began the payload in their place.
fn authenticate_flags(message: &[u8]) -> Option<u32> {
    let fields = [
        field::AUTHENTICATE_NT_RESPONSE,
        field::AUTHENTICATE_DOMAIN,
        field::AUTHENTICATE_USER,
        field::AUTHENTICATE_WORKSTATION,
    ];
    let payload_is_early = fields
        .iter()
        .filter_map(|&at| payload_fields(message, at))
        .any(|(length, offset)| length > 0 && offset < field::AUTHENTICATE_FLAGS + 4);
    if payload_is_early { None } else { bytes::u32_at(message, field::AUTHENTICATE_FLAGS) }
}

/// Decodes the text whose length and offset are at `at`. Returns `None` if it is truncated.
fn text(message: &[u8], at: usize, flags: Option<u32>) -> Option<String> {
    let (range, unicode) = text_place(message, at, flags)?;
    Some(bytes::text(&message[range], unicode))
}

/// Returns the range of that text, and true if it is UTF-16.
fn text_place(message: &[u8], at: usize, flags: Option<u32>) -> Option<(Range<usize>, bool)> {
    let (length, offset) = payload_fields(message, at)?;
    let range = offset..offset.checked_add(length)?;
    let text = message.get(range.clone())?;
    let unicode = match flags {
        Some(flags) => flags & NEGOTIATE_UNICODE != 0,
        // Without flags, guess by zero bytes: OEM names have none, and UTF-16 names usually do.
        None => text.contains(&0),
    };
    Some((range, unicode))
}

/// Returns the fields and names that [`identify`] reads from a client's message, without the challenge responses.
pub(super) fn kept(message: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    kept.field(0..field::MESSAGE_TYPE + 4);
    if bytes::u32_at(message, field::MESSAGE_TYPE) != Some(3) {
        return kept;
    }
    kept.field(field::MESSAGE_TYPE + 4..field::AUTHENTICATE_WORKSTATION + 8);
    let flags = authenticate_flags(message);
    if flags.is_some() {
        kept.field(field::AUTHENTICATE_FLAGS..field::AUTHENTICATE_FLAGS + 4);
    }
    let names = [
        (field::AUTHENTICATE_DOMAIN, NameOf::Domain),
        (field::AUTHENTICATE_USER, NameOf::User),
        (field::AUTHENTICATE_WORKSTATION, NameOf::Host),
    ];
    for (at, of) in names {
        if let Some((range, unicode)) = text_place(message, at, flags) {
            kept.name(of, unicode, range);
        }
    }
    kept
}

/// Returns length and offset of a payload item (Len, MaxLen, BufferOffset).
fn payload_fields(message: &[u8], at: usize) -> Option<(usize, usize)> {
    Some((bytes::u16_at(message, at)?.into(), bytes::u32_at(message, at + 4)? as usize))
}

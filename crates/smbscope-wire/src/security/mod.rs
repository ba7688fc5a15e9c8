//! Identity of a session: the parts of a session setup's security token that are readable without a key, i.e. the
//! mechanism (RFC 4178), the names in NTLM messages (MS-NLMP 2.2.1), and realm and service of a Kerberos ticket (RFC
//! 4120 5.3 and 5.5.1).

#[cfg(test)]
mod tests;

use crate::bytes;
use crate::kept::{NameOf, RetainedRanges, place_in};
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityToken {
    /// NTLM NEGOTIATE_MESSAGE, the start of a logon (MS-NLMP 2.2.1.1).
    NtlmNegotiate,
    /// NTLM CHALLENGE_MESSAGE of the server (MS-NLMP 2.2.1.2).
    NtlmChallenge { target: Option<String> },
    /// NTLM AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3). Fields that are out of range or truncated are empty.
    NtlmAuthenticate {
        domain: String,
        user: String,
        workstation: String,
        /// True if the client asks for an anonymous session (MS-NLMP 3.2.5.1.2).
        anonymous: bool,
    },
    /// Kerberos AP-REQ (RFC 4120 5.5.1). The client's name is in the encrypted part of the ticket.
    KerberosApReq {
        /// Realm of the service; empty if truncated.
        realm: String,
        /// Service such as `cifs/server`; empty if truncated.
        service: String,
    },
}

/// Identifies the security token of a session setup (MS-SMB2 2.2.5 and 2.2.6, MS-SMB 2.2.4.6), which may be truncated.
///
/// Accepts SPNEGO, raw NTLM and Kerberos. Returns `None` for anything else, and for SPNEGO steps without a mechanism
/// token.
pub fn identify(token: &[u8]) -> Option<SecurityToken> {
    let token = mechanism_token(token)?;
    if token.starts_with(NTLM_SIGNATURE) { identify_ntlm(token) } else { identify_kerberos(token) }
}

/// [APPLICATION 0].
const INITIAL_CONTEXT_TOKEN: u8 = 0x60;
/// Alternatives of NegotiationToken.
const NEG_TOKEN_INIT: u8 = 0xa0;
const NEG_TOKEN_RESP: u8 = 0xa1;
/// mechToken of NegTokenInit and responseToken of NegTokenResp.
const TOKEN: u8 = 0xa2;
const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// TOK_ID of an AP-REQ inside the Kerberos mechanism's InitialContextToken (RFC 4121 4.1).
const TOK_ID_AP_REQ: &[u8] = &[0x01, 0x00];

/// Nested ASN.1 wrappers; deeper tokens are damaged. Real tokens have at most four: GSS, SPNEGO, GSS, Kerberos.
const MAX_DEPTH: usize = 6;

/// Returns the NTLM message or Kerberos AP-REQ inside a token.
fn mechanism_token(mut token: &[u8]) -> Option<&[u8]> {
    for _ in 0..MAX_DEPTH {
        if token.starts_with(NTLM_SIGNATURE) || token.first() == Some(&AP_REQ) {
            return Some(token);
        }
        token = match *token.first()? {
            INITIAL_CONTEXT_TOKEN => initial_context(der::expect(token, INITIAL_CONTEXT_TOKEN)?)?,
            tag @ (NEG_TOKEN_INIT | NEG_TOKEN_RESP) => {
                let fields = der::expect(der::expect(token, tag)?, SEQUENCE)?;
                der::expect(der::find(fields, TOKEN)?, OCTET_STRING)?
            }
            _ => return None,
        };
    }
    None
}

/// Skips the mechanism's identifier, which is not needed: the token's first bytes identify it.
fn initial_context(content: &[u8]) -> Option<&[u8]> {
    let (mechanism, token) = der::read(content)?;
    if mechanism.tag != OBJECT_IDENTIFIER || !mechanism.whole {
        return None;
    }
    Some(token.strip_prefix(TOK_ID_AP_REQ).unwrap_or(token))
}

/// Returns the ranges that [`identify`] reads.
pub(crate) fn kept(token: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    let Some(inner) = mechanism_token(token) else {
        // The first byte shows that the token is neither NTLM nor Kerberos.
        kept.field(0..1);
        return kept;
    };
    let start = place_in(token, inner).start;
    kept.field(0..start);
    let of_mechanism = if inner.starts_with(NTLM_SIGNATURE) { kept_of_ntlm(inner) } else { kept_of_kerberos(inner) };
    kept.absorb(of_mechanism, start);
    kept
}

/// Retains the wrappers, realm and service, but neither the ticket nor the authenticator.
fn kept_of_kerberos(token: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    let mut end = 0;
    for (name, of) in kerberos_names(token) {
        let range = place_in(token, name);
        end = end.max(range.end);
        // Service classes such as `cifs` do not identify anyone, so they stay readable.
        if !is_service_class(name) {
            kept.name(of, false, range);
        }
    }
    let wrapper = der::read(token).map_or(0, |(element, _)| place_in(token, element.content).start);
    kept.field(0..end.max(wrapper));
    kept
}

fn is_service_class(name: &[u8]) -> bool {
    [&b"cifs"[..], b"host", b"krbtgt", b"http", b"ldap"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// [APPLICATION 14].
const AP_REQ: u8 = 0x6e;
/// [APPLICATION 1].
const TICKET: u8 = 0x61;
const GENERAL_STRING: u8 = 0x1b;

const AP_REQ_TICKET: u8 = 0xa3;
const TICKET_REALM: u8 = 0xa1;
const TICKET_SNAME: u8 = 0xa2;
const NAME_STRING: u8 = 0xa1;

fn identify_kerberos(token: &[u8]) -> Option<SecurityToken> {
    let request = der::expect(der::expect(token, AP_REQ)?, SEQUENCE)?;
    let ticket = ticket(request).unwrap_or_default();
    let realm = der::find(ticket, TICKET_REALM).and_then(|field| strings(field).next());
    let service = service(ticket).unwrap_or_default();
    Some(SecurityToken::KerberosApReq { realm: realm.unwrap_or_default(), service })
}

fn ticket(request: &[u8]) -> Option<&[u8]> {
    der::expect(der::expect(der::find(request, AP_REQ_TICKET)?, TICKET)?, SEQUENCE)
}

/// Returns the components of the service's PrincipalName. `None` if any is truncated.
fn service(ticket: &[u8]) -> Option<String> {
    let name = der::expect(der::find(ticket, TICKET_SNAME)?, SEQUENCE)?;
    let (strings_field, _) = der::read(der::find(name, NAME_STRING)?)?;
    let complete = strings_field.tag == SEQUENCE && strings_field.whole;
    complete.then(|| strings(strings_field.content).collect::<Vec<_>>().join("/"))
}

/// Iterates over the complete GeneralStrings of `input`.
fn strings(input: &[u8]) -> impl Iterator<Item = String> {
    string_bytes(input).map(|content| String::from_utf8_lossy(content).into_owned())
}

fn string_bytes(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_string = |element: &der::Element<'_>| element.tag == GENERAL_STRING && element.whole;
    der::elements(input).filter(is_string).map(|element| element.content)
}

/// Returns the names that [`identify_kerberos`] reads, as subslices of the token.
fn kerberos_names(token: &[u8]) -> Vec<(&[u8], NameOf)> {
    let request = der::expect(token, AP_REQ).and_then(|request| der::expect(request, SEQUENCE));
    let ticket = request.and_then(ticket).unwrap_or_default();
    let realm = der::find(ticket, TICKET_REALM).and_then(|field| string_bytes(field).next());
    let service = der::find(ticket, TICKET_SNAME).and_then(|name| der::expect(name, SEQUENCE));
    let service = service.and_then(|name| der::expect(der::find(name, NAME_STRING)?, SEQUENCE)).unwrap_or_default();
    let service = string_bytes(service).map(|name| (name, NameOf::Host));
    realm.map(|realm| (realm, NameOf::Domain)).into_iter().chain(service).collect()
}

const NTLM_SIGNATURE: &[u8] = b"NTLMSSP\0";

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

fn identify_ntlm(message: &[u8]) -> Option<SecurityToken> {
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

/// Returns the fields and names that [`identify_ntlm`] reads from a client's message, without the challenge responses.
fn kept_of_ntlm(message: &[u8]) -> RetainedRanges {
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

/// Minimal DER parser for security tokens (X.690 section 8): low tag numbers, definite lengths, truncated contents.
pub mod der {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Element<'a> {
        /// Identifier octet: class, constructed bit and tag number.
        pub tag: u8,
        /// Contents, up to the end of the input.
        pub content: &'a [u8],
        pub whole: bool,
    }

    /// Returns the first element and the input after it. `None` for high tag numbers and indefinite lengths, which these
    /// protocols do not use.
    pub fn read(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
        let (&tag, rest) = input.split_first()?;
        let (&first, rest) = rest.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (octets.iter().fold(0, |length, &octet| length << 8 | usize::from(octet)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at(length.min(rest.len()));
        Some((Element { tag, content, whole: content.len() == length }, rest))
    }

    pub fn expect(input: &[u8], tag: u8) -> Option<&[u8]> {
        read(input).filter(|(element, _)| element.tag == tag).map(|(element, _)| element.content)
    }

    pub fn find(input: &[u8], tag: u8) -> Option<&[u8]> {
        elements(input).find(|element| element.tag == tag).map(|element| element.content)
    }

    pub fn elements(mut input: &[u8]) -> impl Iterator<Item = Element<'_>> {
        std::iter::from_fn(move || {
            let (element, rest) = read(input)?;
            input = rest;
            Some(element)
        })
    }
}

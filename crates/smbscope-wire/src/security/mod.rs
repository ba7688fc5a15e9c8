//! Identity of a session: the parts of a session setup's security token that are readable without a key (RFC 4178,
//! MS-NLMP 2.2.1, RFC 4120).

pub mod der;
mod kerberos;
mod ntlm;

#[cfg(test)]
mod tests;

use crate::kept::{RetainedRanges, place_in};

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
    if token.starts_with(ntlm::SIGNATURE) { ntlm::identify(token) } else { kerberos::identify(token) }
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
        if token.starts_with(ntlm::SIGNATURE) || token.first() == Some(&kerberos::AP_REQ) {
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
    let of_mechanism = if inner.starts_with(ntlm::SIGNATURE) { ntlm::kept(inner) } else { of_kerberos(inner) };
    kept.absorb(of_mechanism, start);
    kept
}

/// Retains the wrappers, realm and service, but neither the ticket nor the authenticator.
fn of_kerberos(token: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    let mut end = 0;
    for (name, of) in kerberos::names(token) {
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

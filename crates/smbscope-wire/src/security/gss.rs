//! Unwraps GSS-API and SPNEGO tokens down to the mechanism's token (RFC 2743 3.1, RFC 4178 4.2).

use super::{der, kerberos, ntlm};

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

/// Limit for nested wrappers. Real tokens have at most four: GSS, SPNEGO, GSS, Kerberos.
const MAX_DEPTH: usize = 6;

/// Returns the NTLM message or Kerberos AP-REQ inside a token.
pub(super) fn mechanism_token(mut token: &[u8]) -> Option<&[u8]> {
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

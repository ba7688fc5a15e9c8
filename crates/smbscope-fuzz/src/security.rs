//! Target for security tokens: SPNEGO, NTLM, Kerberos.

use smbscope_wire::security::{SecurityToken, identify};

pub fn security(data: &[u8]) {
    let names = match identify(data) {
        Some(SecurityToken::NtlmAuthenticate { domain, user, workstation, .. }) => vec![domain, user, workstation],
        Some(SecurityToken::NtlmChallenge { target }) => target.into_iter().collect(),
        Some(SecurityToken::KerberosApReq { realm, service }) => vec![realm, service],
        Some(SecurityToken::NtlmNegotiate) | None => vec![],
    };
    for name in names {
        // An invalid byte becomes a replacement character of three bytes.
        assert!(name.len() <= 3 * data.len() + 3, "a name of {} bytes in a token of {}", name.len(), data.len());
    }
    identify(&data[..data.len() / 2]);
}

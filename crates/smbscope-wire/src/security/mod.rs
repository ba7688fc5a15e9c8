//! Identity of a session: the parts of a session setup's security token that are readable without a key (RFC 4178,
//! MS-NLMP 2.2.1, RFC 4120).

pub mod der;
mod gss;
mod kept;
mod kerberos;
mod ntlm;

pub(crate) use kept::kept;

#[cfg(test)]
mod tests;

/// Identity in one security token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityToken {
    /// NTLM NEGOTIATE_MESSAGE, the start of a logon (MS-NLMP 2.2.1.1).
    NtlmNegotiate,
    /// NTLM CHALLENGE_MESSAGE of the server (MS-NLMP 2.2.1.2).
    NtlmChallenge {
        /// Domain or name of the server.
        target: Option<String>,
    },
    /// NTLM AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3). Fields that are out of range or truncated are empty.
    NtlmAuthenticate {
        domain: String,
        user: String,
        /// Name of the client computer.
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
    let token = gss::mechanism_token(token)?;
    if token.starts_with(ntlm::SIGNATURE) { ntlm::identify(token) } else { kerberos::identify(token) }
}

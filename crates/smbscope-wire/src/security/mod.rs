//! Who logs on: what a session setup's security token tells without any key (RFC 4178, MS-NLMP 2.2.1, RFC 4120).

pub mod der;
mod gss;
mod kept;
mod kerberos;
mod ntlm;

pub(crate) use kept::kept;

#[cfg(test)]
mod tests;

/// What one security token says about the identity behind a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityToken {
    /// NTLM NEGOTIATE_MESSAGE: a logon begins (MS-NLMP 2.2.1.1).
    NtlmNegotiate,
    /// NTLM CHALLENGE_MESSAGE, the server's answer (MS-NLMP 2.2.1.2).
    NtlmChallenge {
        /// The server's domain or name, if the message has one.
        target: Option<String>,
    },
    /// NTLM AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3). A field that is empty, out of range or cut off is empty here.
    NtlmAuthenticate {
        /// The domain the user's account is said to be in.
        domain: String,
        /// The user's name.
        user: String,
        /// The client's name for itself.
        workstation: String,
        /// The client asks for an anonymous session (MS-NLMP 3.2.5.1.2).
        anonymous: bool,
    },
    /// Kerberos AP-REQ (RFC 4120 5.5.1). The client's name stands in the encrypted part of the ticket.
    KerberosApReq {
        /// The realm of the ticket's service; empty where it is cut off.
        realm: String,
        /// The service the ticket is for, such as `cifs/server`; empty where it is cut off.
        service: String,
    },
}

/// Reads the security token of a session setup (MS-SMB2 2.2.5 and 2.2.6, MS-SMB 2.2.4.6), whole or cut at its end.
///
/// The token may be SPNEGO, NTLM without it, or Kerberos. `None` for anything else and for steps of SPNEGO that hold no
/// token of a mechanism.
pub fn identify(token: &[u8]) -> Option<SecurityToken> {
    let token = gss::mechanism_token(token)?;
    if token.starts_with(ntlm::SIGNATURE) { ntlm::identify(token) } else { kerberos::identify(token) }
}

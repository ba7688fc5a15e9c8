//! Authentication: SPNEGO with NTLM or Kerberos (RFC 4178, MS-SPNG, MS-NLMP), for SMB1 and SMB2 session setups.
//!
//! An [`Authenticator`] does no I/O: the caller carries its tokens in session setups and passes it the server's.

#[cfg(all(feature = "kerberos", unix))]
mod kerberos;
mod ntlm;
mod spnego;
#[cfg(test)]
mod tests;

pub use ntlm::Unpredictable;

use crate::{ClientError, Credentials};
use ntlm::NtlmAccount;
use smbscope_crypto::session_key_from;
use spnego::NegState;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("the server's security token has no {0}")]
    Malformed(&'static str),
    #[error("the server refuses the authentication mechanism {0}")]
    Rejected(&'static str),
    /// The server doesn't support the level of NTLMv2 that Windows 2000 introduced.
    #[error("the server's NTLM lacks {0}")]
    Weak(&'static str),
    #[error("the server's mechListMIC is wrong: its token was changed, or it does not know the session key")]
    WrongMic,
    #[error("{0}")]
    Unavailable(String),
}

impl From<AuthError> for ClientError {
    fn from(error: AuthError) -> ClientError {
        match error {
            AuthError::Unavailable(reason) => ClientError::Unsupported(reason),
            AuthError::Rejected(_) | AuthError::Weak(_) => ClientError::Unsupported(error.to_string()),
            AuthError::Malformed(_) | AuthError::WrongMic => ClientError::Protocol(error.to_string()),
        }
    }
}

#[derive(Debug)]
pub struct Authenticator {
    mechanism: Mechanism,
    /// Encoded mechTypes as offered, the input of mechListMIC.
    mech_types: Vec<u8>,
}

impl Authenticator {
    /// Starts an authentication with the server as named by the user. Kerberos may wait for a ticket from the KDC.
    pub fn new(credentials: &Credentials, host: &str) -> Result<Authenticator, AuthError> {
        let random =
            Unpredictable::now().map_err(|error| AuthError::Unavailable(format!("random numbers: {error}")))?;
        Authenticator::with(credentials, host, random)
    }

    pub fn with(credentials: &Credentials, host: &str, random: Unpredictable) -> Result<Authenticator, AuthError> {
        let account = match credentials {
            Credentials::Anonymous => NtlmAccount::Nobody,
            Credentials::Guest => NtlmAccount::guest(),
            Credentials::Ntlm { domain, user, password } => NtlmAccount::new(domain, user, password.reveal()),
            Credentials::Kerberos => return Ok(Authenticator::with_mechanism(Mechanism::kerberos(host)?)),
        };
        let client = ntlm::NtlmClient::new(account, host, &workstation(), random);
        Ok(Authenticator::with_mechanism(Mechanism::Ntlm(Box::new(client))))
    }

    pub fn first(&mut self) -> Vec<u8> {
        spnego::init_token(&self.mech_types, &self.mechanism.first())
    }

    /// Returns the token that answers a response with STATUS_MORE_PROCESSING_REQUIRED.
    pub fn next(&mut self, server_token: &[u8]) -> Result<Vec<u8>, AuthError> {
        let reply = self.parse(server_token)?;
        let token = self.mechanism.step(reply.response_token.ok_or(AuthError::Malformed("mechanism's answer"))?)?;
        let mic = self.mechanism.sign(&self.mech_types);
        Ok(spnego::response_token(&token, mic.as_ref().map(|mic| &mic[..])))
    }

    /// Verifies the token of the response with STATUS_SUCCESS. With NTLM it may be empty, and some servers omit it.
    pub fn finish(&mut self, server_token: &[u8]) -> Result<(), AuthError> {
        let reply = if server_token.is_empty() { spnego::NegTokenResp::default() } else { self.parse(server_token)? };
        self.mechanism.finish(reply.response_token)?;
        match reply.mech_list_mic {
            Some(mic) if !self.mechanism.verify(&self.mech_types, mic) => Err(AuthError::WrongMic),
            _ => Ok(()),
        }
    }

    /// Session.SessionKey, the source of other keys. Absent before [`Authenticator::finish`], and for anonymous users.
    pub fn session_key(&self) -> Option<[u8; 16]> {
        self.full_session_key().map(session_key_from)
    }

    /// Session.FullSessionKey. With Kerberos it may be longer, and 256-bit keys are derived from all of it.
    pub fn full_session_key(&self) -> Option<&[u8]> {
        self.mechanism.session_key()
    }

    fn with_mechanism(mechanism: Mechanism) -> Authenticator {
        let mech_types = spnego::mech_types(&mechanism.oids()[..1]);
        Authenticator { mechanism, mech_types }
    }

    fn parse<'a>(&self, server_token: &'a [u8]) -> Result<spnego::NegTokenResp<'a>, AuthError> {
        let reply = spnego::NegTokenResp::parse(server_token).ok_or(AuthError::Malformed("NegTokenResp"))?;
        let is_ours = reply.supported_mech.is_none_or(|mechanism| self.mechanism.oids().contains(&mechanism));
        if reply.neg_state == Some(NegState::Reject) || !is_ours {
            return Err(AuthError::Rejected(self.mechanism.name()));
        }
        Ok(reply)
    }
}

fn workstation() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// A mechanism that SPNEGO negotiates, with its state. Both have the same interface (RFC 2743 2.2).
#[derive(Debug)]
enum Mechanism {
    Ntlm(Box<ntlm::NtlmClient>),
    #[cfg(all(feature = "kerberos", unix))]
    Kerberos(kerberos::KerberosClient),
}

impl Mechanism {
    #[cfg(all(feature = "kerberos", unix))]
    fn kerberos(host: &str) -> Result<Mechanism, AuthError> {
        kerberos::KerberosClient::new(host).map(Mechanism::Kerberos)
    }

    #[cfg(not(all(feature = "kerberos", unix)))]
    fn kerberos(_host: &str) -> Result<Mechanism, AuthError> {
        let reason = "Kerberos: not in this build; build with the feature `kerberos`, or use a password";
        Err(AuthError::Unavailable(reason.to_owned()))
    }

    fn oids(&self) -> &'static [&'static [u8]] {
        match self {
            Mechanism::Ntlm(_) => &[spnego::NTLM],
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => &[spnego::KERBEROS, spnego::KERBEROS_OF_WINDOWS_2000],
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Mechanism::Ntlm(_) => "NTLM",
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => "Kerberos",
        }
    }

    fn first(&mut self) -> Vec<u8> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.negotiate(),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.first(),
        }
    }

    fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, AuthError> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.authenticate(token),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.step(token),
        }
    }

    fn finish(&mut self, _token: Option<&[u8]>) -> Result<(), AuthError> {
        match self {
            Mechanism::Ntlm(_) => Ok(()),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.finish(_token),
        }
    }

    /// Computes a MIC (GSS_GetMIC) if there is a key. It is optional when the server accepts the first mechanism
    /// offered (RFC 4178 5), and GSSAPI's Kerberos omits it, but servers expect it with NTLM.
    fn sign(&mut self, message: &[u8]) -> Option<[u8; 16]> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.sign(message),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => None,
        }
    }

    /// Verifies a MIC (GSS_VerifyMIC). Kerberos has already authenticated the server by its AP-REP.
    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.verify(message, mic),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => true,
        }
    }

    fn session_key(&self) -> Option<&[u8]> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.session_key(),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.session_key(),
        }
    }
}

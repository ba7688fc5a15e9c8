//! The mechanisms that SPNEGO negotiates, with a common interface (RFC 2743 2.2).

use super::{AuthError, ntlm, spnego};

#[cfg(all(feature = "kerberos", unix))]
use super::kerberos;

#[derive(Debug)]
pub(super) enum Mechanism {
    Ntlm(Box<ntlm::NtlmClient>),
    #[cfg(all(feature = "kerberos", unix))]
    Kerberos(kerberos::KerberosClient),
}

impl Mechanism {
    #[cfg(all(feature = "kerberos", unix))]
    pub(super) fn kerberos(host: &str) -> Result<Mechanism, AuthError> {
        kerberos::KerberosClient::new(host).map(Mechanism::Kerberos)
    }

    #[cfg(not(all(feature = "kerberos", unix)))]
    pub(super) fn kerberos(_host: &str) -> Result<Mechanism, AuthError> {
        let reason = "Kerberos: not in this build; build with the feature `kerberos`, or use a password";
        Err(AuthError::Unavailable(reason.to_owned()))
    }

    /// Returns its object identifiers: the one to offer, then others that servers use for it.
    pub(super) fn oids(&self) -> &'static [&'static [u8]] {
        match self {
            Mechanism::Ntlm(_) => &[spnego::NTLM],
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => &[spnego::KERBEROS, spnego::KERBEROS_OF_WINDOWS_2000],
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Mechanism::Ntlm(_) => "NTLM",
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => "Kerberos",
        }
    }

    pub(super) fn first(&mut self) -> Vec<u8> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.negotiate(),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.first(),
        }
    }

    pub(super) fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, AuthError> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.authenticate(token),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.step(token),
        }
    }

    /// Processes the token of a server that has accepted. NTLM has none.
    pub(super) fn finish(&mut self, _token: Option<&[u8]>) -> Result<(), AuthError> {
        match self {
            Mechanism::Ntlm(_) => Ok(()),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.finish(_token),
        }
    }

    /// Computes a MIC (GSS_GetMIC) if there is a key. It is optional when the server accepts the first mechanism
    /// offered (RFC 4178 5), and GSSAPI's Kerberos omits it, but servers expect it with NTLM.
    pub(super) fn sign(&mut self, message: &[u8]) -> Option<[u8; 16]> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.sign(message),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => None,
        }
    }

    /// Verifies a MIC (GSS_VerifyMIC). Kerberos has already authenticated the server by its AP-REP.
    pub(super) fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.verify(message, mic),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(_) => true,
        }
    }

    pub(super) fn session_key(&self) -> Option<&[u8]> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.session_key(),
            #[cfg(all(feature = "kerberos", unix))]
            Mechanism::Kerberos(kerberos) => kerberos.session_key(),
        }
    }
}

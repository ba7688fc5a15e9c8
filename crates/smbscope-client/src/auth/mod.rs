//! Authentication: SPNEGO with NTLM or Kerberos (RFC 4178, MS-SPNG, MS-NLMP), for SMB1 and SMB2 session setups; the
//! rounds of a login in any dialect, the policies on signing and guests, and refusals in words.
//!
//! An [`Authenticator`] does no I/O: the caller carries its tokens in session setups and passes it the server's. SPNEGO
//! is limited to the offer of a single mechanism (RFC 4178 4.2, MS-SPNG 2.2).

#[cfg(target_os = "linux")]
mod kerberos;
mod ntlm;
#[cfg(test)]
mod tests;

pub use ntlm::Unpredictable;

use crate::{ClientError, ClientSigningPolicy, Credentials, Encryption, SessionOptions};
use ntlm::NtlmAccount;
use smbscope_crypto::session_key_from;
use smbscope_wire::security::der;
use smbscope_wire::status::NtStatus;

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
        init_token(&self.mech_types, &self.mechanism.first())
    }

    /// Returns the token that answers a response with STATUS_MORE_PROCESSING_REQUIRED.
    pub fn next(&mut self, server_token: &[u8]) -> Result<Vec<u8>, AuthError> {
        let reply = self.parse(server_token)?;
        let token = self.mechanism.step(reply.response_token.ok_or(AuthError::Malformed("mechanism's answer"))?)?;
        let mic = self.mechanism.sign(&self.mech_types);
        Ok(response_token(&token, mic.as_ref().map(|mic| &mic[..])))
    }

    /// Verifies the token of the response with STATUS_SUCCESS. With NTLM it may be empty, and some servers omit it.
    pub fn finish(&mut self, server_token: &[u8]) -> Result<(), AuthError> {
        let reply = if server_token.is_empty() { NegTokenResp::default() } else { self.parse(server_token)? };
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
        let mech_types = mech_types(&mechanism.oids()[..1]);
        Authenticator { mechanism, mech_types }
    }

    fn parse<'a>(&self, server_token: &'a [u8]) -> Result<NegTokenResp<'a>, AuthError> {
        let reply = NegTokenResp::parse(server_token).ok_or(AuthError::Malformed("NegTokenResp"))?;
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
    #[cfg(target_os = "linux")]
    Kerberos(kerberos::KerberosClient),
}

impl Mechanism {
    #[cfg(target_os = "linux")]
    fn kerberos(host: &str) -> Result<Mechanism, AuthError> {
        kerberos::KerberosClient::new(host).map(Mechanism::Kerberos)
    }

    #[cfg(not(target_os = "linux"))]
    fn kerberos(_host: &str) -> Result<Mechanism, AuthError> {
        Err(AuthError::Unavailable("Kerberos: on Linux only; use a password".to_owned()))
    }

    fn oids(&self) -> &'static [&'static [u8]] {
        match self {
            Mechanism::Ntlm(_) => &[NTLM],
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(_) => &[KERBEROS, KERBEROS_OF_WINDOWS_2000],
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Mechanism::Ntlm(_) => "NTLM",
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(_) => "Kerberos",
        }
    }

    fn first(&mut self) -> Vec<u8> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.negotiate(),
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(kerberos) => kerberos.first(),
        }
    }

    fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, AuthError> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.authenticate(token),
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(kerberos) => kerberos.step(token),
        }
    }

    fn finish(&mut self, _token: Option<&[u8]>) -> Result<(), AuthError> {
        match self {
            Mechanism::Ntlm(_) => Ok(()),
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(kerberos) => kerberos.finish(_token),
        }
    }

    /// Computes a MIC (GSS_GetMIC) if there is a key. It is optional when the server accepts the first mechanism
    /// offered (RFC 4178 5), and GSSAPI's Kerberos omits it, but servers expect it with NTLM.
    fn sign(&mut self, message: &[u8]) -> Option<[u8; 16]> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.sign(message),
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(_) => None,
        }
    }

    /// Verifies a MIC (GSS_VerifyMIC). Kerberos has already authenticated the server by its AP-REP.
    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.verify(message, mic),
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(_) => true,
        }
    }

    fn session_key(&self) -> Option<&[u8]> {
        match self {
            Mechanism::Ntlm(ntlm) => ntlm.session_key(),
            #[cfg(target_os = "linux")]
            Mechanism::Kerberos(kerberos) => kerberos.session_key(),
        }
    }
}

/// NTLMSSP, 1.3.6.1.4.1.311.2.2.10 (MS-SPNG 1.9), as an OBJECT IDENTIFIER's contents.
const NTLM: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0a];
/// Kerberos 5, 1.2.840.113554.1.2.2 (RFC 4121 1).
#[cfg(target_os = "linux")]
const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];
/// Kerberos 5 with the wrong identifier of Windows 2000, 1.2.840.48018.1.2.2 (MS-SPNG 3.2.5.1).
#[cfg(target_os = "linux")]
const KERBEROS_OF_WINDOWS_2000: &[u8] = &[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 0x01, 0x02, 0x02];
/// SPNEGO, 1.3.6.1.5.5.2.
const SPNEGO: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x02];

mod tag {
    pub(super) const OCTET_STRING: u8 = 0x04;
    pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(super) const ENUMERATED: u8 = 0x0a;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const INITIAL_CONTEXT_TOKEN: u8 = 0x60;
    /// NegTokenInit and its mechTypes; negState of NegTokenResp.
    pub(super) const FIELD_0: u8 = 0xa0;
    /// NegTokenResp and its supportedMech.
    pub(super) const FIELD_1: u8 = 0xa1;
    /// mechToken and responseToken.
    pub(super) const FIELD_2: u8 = 0xa2;
    /// mechListMIC.
    pub(super) const FIELD_3: u8 = 0xa3;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NegState {
    AcceptCompleted,
    AcceptIncomplete,
    Reject,
    RequestMic,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct NegTokenResp<'a> {
    neg_state: Option<NegState>,
    supported_mech: Option<&'a [u8]>,
    response_token: Option<&'a [u8]>,
    mech_list_mic: Option<&'a [u8]>,
}

impl<'a> NegTokenResp<'a> {
    fn parse(token: &'a [u8]) -> Option<NegTokenResp<'a>> {
        let (response, _) = der::read(token)?;
        if response.tag != tag::FIELD_1 || !response.whole {
            return None;
        }
        let fields = der::expect(response.content, tag::SEQUENCE)?;
        let field = |field, kind| der::expect(der::find(fields, field)?, kind);
        let neg_state = match field(tag::FIELD_0, tag::ENUMERATED) {
            Some([0]) => Some(NegState::AcceptCompleted),
            Some([1]) => Some(NegState::AcceptIncomplete),
            Some([2]) => Some(NegState::Reject),
            Some([3]) => Some(NegState::RequestMic),
            Some(_) => return None,
            None => None,
        };
        Some(NegTokenResp {
            neg_state,
            supported_mech: field(tag::FIELD_1, tag::OBJECT_IDENTIFIER),
            response_token: field(tag::FIELD_2, tag::OCTET_STRING),
            mech_list_mic: field(tag::FIELD_3, tag::OCTET_STRING),
        })
    }
}

fn mech_types(mechanisms: &[&[u8]]) -> Vec<u8> {
    let types: Vec<u8> = mechanisms.iter().flat_map(|mechanism| der(tag::OBJECT_IDENTIFIER, mechanism)).collect();
    der(tag::SEQUENCE, &types)
}

/// Encodes a NegTokenInit with the first mechanism's token, in an InitialContextToken (RFC 2743 3.1).
fn init_token(mech_types: &[u8], mech_token: &[u8]) -> Vec<u8> {
    let fields = [der(tag::FIELD_0, mech_types), der(tag::FIELD_2, &der(tag::OCTET_STRING, mech_token))].concat();
    let init = der(tag::FIELD_0, &der(tag::SEQUENCE, &fields));
    der(tag::INITIAL_CONTEXT_TOKEN, &[der(tag::OBJECT_IDENTIFIER, SPNEGO), init].concat())
}

/// Encodes a NegTokenResp with the mechanism's next token. Its state is accept-incomplete, as in Windows clients.
fn response_token(response_token: &[u8], mech_list_mic: Option<&[u8]>) -> Vec<u8> {
    let mut fields = der(tag::FIELD_0, &der(tag::ENUMERATED, &[NegState::AcceptIncomplete as u8]));
    fields.extend(der(tag::FIELD_2, &der(tag::OCTET_STRING, response_token)));
    if let Some(mic) = mech_list_mic {
        fields.extend(der(tag::FIELD_3, &der(tag::OCTET_STRING, mic)));
    }
    der(tag::FIELD_1, &der(tag::SEQUENCE, &fields))
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length @ 0..=0x7f) => element.push(length),
        _ => {
            let length = content.len().to_be_bytes();
            let significant = &length[length.iter().take_while(|&&byte| byte == 0).count()..];
            element.push(0x80 | significant.len() as u8);
            element.extend_from_slice(significant);
        }
    }
    element.extend_from_slice(content);
    element
}

/// Rounds of session setup. NTLM takes two; other mechanisms may take more.
const MOST_ROUNDS: u32 = 8;

/// Answer to a session setup.
#[derive(Debug)]
pub(crate) struct SetupAnswer<R> {
    /// True if the server needs another token: STATUS_MORE_PROCESSING_REQUIRED.
    pub(crate) is_interim: bool,
    pub(crate) token: Vec<u8>,
    pub(crate) reply: R,
}

/// Sends the tokens of an authentication, each in a session setup of the dialect, until the server needs no more.
/// Returns the last answer, with a token that the caller verifies.
pub(crate) async fn authenticate<R>(
    options: &SessionOptions,
    mut set_up: impl AsyncFnMut(&[u8]) -> Result<SetupAnswer<R>, ClientError>,
) -> Result<(Authenticator, SetupAnswer<R>), ClientError> {
    let mut authenticator = Authenticator::new(&options.credentials, &options.host)?;
    let mut token = authenticator.first();
    for _ in 0..MOST_ROUNDS {
        let answer = set_up(&token).await.map_err(|error| refused_logon(error, options))?;
        if !answer.is_interim {
            return Ok((authenticator, answer));
        }
        token = authenticator.next(&answer.token)?;
    }
    Err(ClientError::Protocol(format!("an authentication of more than {MOST_ROUNDS} steps")))
}

/// Returns true if a session with a key signs its messages.
pub(crate) fn must_sign(options: &SessionOptions, required: bool, can_sign: bool) -> Result<bool, ClientError> {
    match options.signing {
        ClientSigningPolicy::Off if required => {
            Err(unsupported(options, "the server requires signing; use --signing on or required"))
        }
        ClientSigningPolicy::Required if !can_sign && !required => {
            Err(unsupported(options, "the server cannot sign, and signing is required"))
        }
        ClientSigningPolicy::Off => Ok(false),
        ClientSigningPolicy::On => Ok(required),
        ClientSigningPolicy::Required => Ok(true),
    }
}

/// Refuses a session without a key if its messages must be protected.
pub(crate) fn check_keyless(options: &SessionOptions, signing_required: bool) -> Result<(), ClientError> {
    let what = match (options.signing, options.encryption) {
        (_, Encryption::Required(_)) => "encryption",
        (ClientSigningPolicy::Required, _) => "signing",
        _ if signing_required => "signing",
        _ => return Ok(()),
    };
    let who = match options.credentials {
        Credentials::Anonymous => "an anonymous session",
        _ => "a guest",
    };
    let what = format!("{what} is required, and {who} has no key for it; use a user with a password");
    Err(unsupported(options, &what))
}

pub(crate) fn unsupported(options: &SessionOptions, what: &str) -> ClientError {
    ClientError::Unsupported(format!("{}: {what}", options.host))
}

pub(crate) fn refused_logon(error: ClientError, options: &SessionOptions) -> ClientError {
    let Some(status) = error.status() else { return error };
    let who = match &options.credentials {
        Credentials::Anonymous => "an anonymous user",
        Credentials::Guest => "a guest",
        Credentials::Ntlm { user, .. } => user,
        Credentials::Kerberos => "a Kerberos user",
    };
    let hint = match (status, &options.credentials) {
        (NtStatus::LOGON_FAILURE | NtStatus::WRONG_PASSWORD | NtStatus::NO_SUCH_USER, _) => {
            "the user name or the password is wrong, or guests are not allowed"
        }
        (NtStatus::ACCESS_DENIED, Credentials::Anonymous | Credentials::Guest) => {
            "the server allows neither guests nor anonymous users, or requires signing: give a user"
        }
        (NtStatus::ACCESS_DENIED, _) => "the server rejects this user",
        (NtStatus::ACCOUNT_DISABLED, _) => "the account is disabled",
        (NtStatus::ACCOUNT_LOCKED_OUT, _) => "the account is locked after too many wrong passwords: wait, or unlock it",
        (NtStatus::ACCOUNT_RESTRICTION, _) => "the account cannot be used now; see the server's policy",
        (NtStatus::PASSWORD_EXPIRED | NtStatus::PASSWORD_MUST_CHANGE, _) => "the password must be changed first",
        (NtStatus::REQUEST_NOT_ACCEPTED | NtStatus::INSUFFICIENT_RESOURCES, _) => "the server has too many sessions",
        _ => "see the server's log",
    };
    ClientError::Refused { what: format!("log on to {} as {who}", options.host), status, hint }
}

pub(crate) fn refused_tree(error: ClientError, options: &SessionOptions) -> ClientError {
    let Some(status) = error.status() else { return error };
    let hint = match status {
        NtStatus::BAD_NETWORK_NAME => "the server has no share of this name",
        NtStatus::ACCESS_DENIED => {
            "access is denied, or the share requires encryption, which needs SMB 3 and a user with a password"
        }
        _ => "see the server's log",
    };
    ClientError::Refused { what: format!(r"share \\{}\{}", options.host, options.share), status, hint }
}

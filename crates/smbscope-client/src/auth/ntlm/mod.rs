//! NTLMv2, client side (MS-NLMP 3.1.5): NEGOTIATE, the server's CHALLENGE, AUTHENTICATE.

#[cfg(test)]
mod tests;

use super::AuthError;
use smbscope_crypto::ntlm::{self, Authenticate, Challenge, MessageSigner, NtlmSender, TargetInfo, flags};
use smbscope_crypto::same;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, PartialEq, Eq)]
pub struct Unpredictable {
    pub client_challenge: [u8; 8],
    pub session_key: [u8; 16],
    /// FILETIME, used if the server doesn't send its time.
    pub time: u64,
}

impl Unpredictable {
    pub fn now() -> Result<Unpredictable, getrandom::Error> {
        /// FILETIME of 1970-01-01 (MS-DTYP 2.3.3): 100 ns units since 1601.
        const UNIX_EPOCH_FILETIME: u64 = 116_444_736_000_000_000;
        let (mut client_challenge, mut session_key) = ([0; 8], [0; 16]);
        getrandom::fill(&mut client_challenge)?;
        getrandom::fill(&mut session_key)?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = UNIX_EPOCH_FILETIME + u64::try_from(since_1970.as_nanos() / 100).unwrap_or(u64::MAX / 2);
        Ok(Unpredictable { client_challenge, session_key, time })
    }
}

impl fmt::Debug for Unpredictable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpredictable(secret)")
    }
}

#[derive(Clone)]
pub(super) enum NtlmAccount {
    /// An anonymous user (MS-NLMP 3.2.5.1.2).
    Nobody,
    User {
        domain: String,
        user: String,
        response_key: [u8; 16],
    },
}

impl NtlmAccount {
    pub(super) fn new(domain: &str, user: &str, password: &str) -> NtlmAccount {
        let response_key = ntlm::nt_owf_v2(password, user, domain);
        NtlmAccount::User { domain: domain.to_owned(), user: user.to_owned(), response_key }
    }

    /// Guest account of Windows, which needs no password if enabled; Samba treats it as an unknown user.
    pub(super) fn guest() -> NtlmAccount {
        NtlmAccount::new("", "Guest", "")
    }
}

pub(super) struct NtlmClient {
    account: NtlmAccount,
    target_name: String,
    workstation: String,
    random: Unpredictable,
    negotiate: Vec<u8>,
    context: Option<NtlmContext>,
}

struct NtlmContext {
    exported_session_key: [u8; 16],
    outgoing: MessageSigner,
    incoming: MessageSigner,
}

impl NtlmClient {
    pub(super) fn new(account: NtlmAccount, host: &str, workstation: &str, random: Unpredictable) -> NtlmClient {
        let target_name = format!("cifs/{host}");
        NtlmClient {
            account,
            target_name,
            workstation: workstation.to_owned(),
            random,
            negotiate: Vec::new(),
            context: None,
        }
    }

    /// Returns the NEGOTIATE_MESSAGE, and keeps it because the MIC covers it.
    pub(super) fn negotiate(&mut self) -> Vec<u8> {
        self.negotiate = ntlm::negotiate(flags::WANTED);
        self.negotiate.clone()
    }

    pub(super) fn authenticate(&mut self, challenge_message: &[u8]) -> Result<Vec<u8>, AuthError> {
        let challenge = Challenge::parse(challenge_message).ok_or(AuthError::Malformed("NTLM challenge"))?;
        for (flag, name) in [
            (flags::UNICODE, "Unicode"),
            (flags::NTLM, "NTLM session keys"),
            (flags::EXTENDED_SESSION_SECURITY, "extended session security"),
        ] {
            if challenge.flags & flag == 0 {
                return Err(AuthError::Weak(name));
            }
        }
        match self.account.clone() {
            NtlmAccount::Nobody => Ok(self.authenticate_nobody(&challenge)),
            NtlmAccount::User { domain, user, response_key } => {
                self.authenticate_user(challenge_message, &challenge, &domain, &user, &response_key)
            }
        }
    }

    pub(super) fn sign(&mut self, message: &[u8]) -> Option<[u8; 16]> {
        self.context.as_mut().map(|context| context.outgoing.sign(message))
    }

    /// GSS_VerifyMIC. An anonymous user has no key, so any MIC passes.
    pub(super) fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool {
        self.context.as_mut().is_none_or(|context| same(&context.incoming.sign(message), mic))
    }

    pub(super) fn session_key(&self) -> Option<&[u8]> {
        self.context.as_ref().map(|context| &context.exported_session_key[..])
    }

    /// Encodes the message without user, response or key. A single zero byte takes the place of the LM response.
    fn authenticate_nobody(&self, challenge: &Challenge<'_>) -> Vec<u8> {
        let message = Authenticate {
            flags: challenge.flags & flags::WANTED & !flags::KEY_EXCHANGE | flags::ANONYMOUS,
            lm_response: &[0],
            nt_response: &[],
            domain: "",
            user: "",
            workstation: &self.workstation,
            encrypted_session_key: &[],
        };
        message.encode(None)
    }

    fn authenticate_user(
        &mut self,
        challenge_message: &[u8],
        challenge: &Challenge<'_>,
        domain: &str,
        user: &str,
        response_key: &[u8; 16],
    ) -> Result<Vec<u8>, AuthError> {
        let info = TargetInfo::parse(challenge.target_info).ok_or(AuthError::Malformed("whole target information"))?;
        // A server that sends its time supports the MIC (MS-NLMP 3.1.5.1.2).
        let server_time = info.timestamp();
        let target_info = info.answer(&self.target_name, server_time.is_some());
        let client_challenge = &self.random.client_challenge;
        let time = server_time.unwrap_or(self.random.time);
        let response = ntlm::respond(response_key, &challenge.server_challenge, client_challenge, time, &target_info);

        let negotiated = challenge.flags & flags::WANTED;
        let (session_key, encrypted_session_key) = if negotiated & flags::KEY_EXCHANGE != 0 {
            let key = self.random.session_key;
            (key, Some(ntlm::rc4_key(&response.session_base_key, &key)))
        } else {
            (response.session_base_key, None)
        };

        let message = Authenticate {
            flags: negotiated,
            lm_response: if server_time.is_some() { &[0; 24] } else { &response.lm },
            nt_response: &response.nt,
            domain,
            user,
            workstation: &self.workstation,
            encrypted_session_key: encrypted_session_key.as_ref().map_or(&[], |key| &key[..]),
        };
        self.context = Some(NtlmContext {
            exported_session_key: session_key,
            outgoing: MessageSigner::new(&session_key, negotiated, NtlmSender::Client),
            incoming: MessageSigner::new(&session_key, negotiated, NtlmSender::Server),
        });
        Ok(match server_time {
            None => message.encode(None),
            Some(_) => {
                let unsigned = message.encode(Some([0; 16]));
                let mic = ntlm::hmac_md5(&session_key, &[&self.negotiate, challenge_message, &unsigned]);
                message.encode(Some(mic))
            }
        })
    }
}

impl fmt::Debug for NtlmClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = match &self.account {
            NtlmAccount::Nobody => "nobody",
            NtlmAccount::User { user, .. } => user,
        };
        f.debug_struct("ntlm::Client")
            .field("user", &user)
            .field("target_name", &self.target_name)
            .finish_non_exhaustive()
    }
}

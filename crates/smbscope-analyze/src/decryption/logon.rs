//! Session keys from the logons of a connection (MS-SMB2 §3.1.4.2, §3.2.5.2, §3.2.5.3).
//!
//! The keys of 3.1.1 depend on each byte of NEGOTIATE and SESSION_SETUP; if one is missing, only decryption keys help.

use smbscope_crypto::kerberos::{self, KerberosLogon};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_crypto::ntlm::{CapturedLogon, server_challenge};
use smbscope_crypto::{Cipher, PreauthHash, SessionKeys};
use smbscope_model::decryption::DecryptedSession;
use smbscope_wire::smb2::messages::session_setup;
use smbscope_wire::smb2::{Smb2Command, Smb2Header, Smb2Response};
use smbscope_wire::status::NtStatus;
use std::collections::VecDeque;
use zeroize::Zeroizing;

/// Unfinished logons of a connection; older ones are forgotten, and their sessions need other keys.
const LOGONS_MAX: usize = 32;

#[derive(Debug, Default, Clone)]
pub(super) struct NegotiatedKeys {
    dialect: Option<u16>,
    cipher: Option<Cipher>,
    preauth: Option<PreauthHash>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Logons {
    /// Hash after the latest NEGOTIATE request.
    asked: Option<PreauthHash>,
    negotiated: NegotiatedKeys,
    /// By message id, until the response.
    requests: VecDeque<(u64, Logon)>,
    /// By session id, until the next request.
    responses: VecDeque<(u64, Logon)>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Logon {
    /// Hash over all messages so far; `None` if one is incomplete.
    preauth: Option<PreauthHash>,
    challenge: Option<[u8; 8]>,
    session_keys: Vec<Zeroizing<Vec<u8>>>,
    kerberos: Option<KerberosLogon>,
    password_failed: bool,
    ticket_failed: bool,
    /// Began without a session, which a later authentication of the same session does not.
    pub(super) is_first: bool,
}

pub(super) struct LogonKeys {
    pub(super) keys: Vec<(Cipher, SessionKeys)>,
    pub(super) problems: DecryptedSession,
}

impl Logons {
    pub(super) fn footprint(&self) -> usize {
        (self.requests.capacity() + self.responses.capacity()) * (size_of::<(u64, Logon)>() + 32)
    }

    pub(super) fn negotiated(&self) -> &NegotiatedKeys {
        &self.negotiated
    }

    /// Follows a message. Returns the session id and the logon that it completes.
    pub(super) fn take(&mut self, message: &[u8], whole: bool, ring: &KeyRing) -> Option<(u64, Logon)> {
        let header = Smb2Header::parse(message)?;
        let is_response = header.is_response();
        match (header.command, is_response) {
            (Smb2Command::NEGOTIATE, false) => {
                self.asked = Some(PreauthHash::new()).and_then(|hash| followed(hash, message, whole));
                None
            }
            (Smb2Command::NEGOTIATE, true) => {
                self.negotiate(message, whole);
                None
            }
            (Smb2Command::SESSION_SETUP, false) => {
                self.request(message, whole, &header, ring);
                None
            }
            (Smb2Command::SESSION_SETUP, true) => self.response(message, whole, &header),
            _ => None,
        }
    }

    fn negotiate(&mut self, message: &[u8], whole: bool) {
        let Smb2Response::Negotiate(offer) = Smb2Response::parse(Smb2Command::NEGOTIATE, message) else {
            self.negotiated = NegotiatedKeys::default();
            return;
        };
        let chosen = offer.algorithms.ciphers.as_ref().and_then(|ciphers| ciphers.first());
        self.negotiated = NegotiatedKeys {
            dialect: Some(offer.dialect),
            cipher: chosen.and_then(|id| Cipher::from_id(*id)),
            preauth: self.asked.take().and_then(|hash| followed(hash, message, whole)),
        };
    }

    fn request(&mut self, message: &[u8], whole: bool, header: &Smb2Header, ring: &KeyRing) {
        let request = session_setup::Request::parse(message);
        let is_binding = request.is_some_and(|request| request.flags & session_setup::Request::BINDING != 0);
        if is_binding {
            return;
        }
        let session_id = header.session_id.unwrap_or(0);
        let mut logon = match session_id {
            0 => Logon { preauth: self.negotiated.preauth.clone(), is_first: true, ..Logon::default() },
            id => removed(&mut self.responses, id).unwrap_or_default(),
        };
        logon.preauth = logon.preauth.and_then(|hash| followed(hash, message, whole));
        if let Some(request) = request {
            logon.authenticate(request.token, ring);
        }
        push(&mut self.requests, header.message_id, logon);
    }

    fn response(&mut self, message: &[u8], whole: bool, header: &Smb2Header) -> Option<(u64, Logon)> {
        let mut logon = removed(&mut self.requests, header.message_id)?;
        let session_id = header.session_id.filter(|id| *id != 0)?;
        if header.status == NtStatus::MORE_PROCESSING_REQUIRED {
            logon.preauth = logon.preauth.and_then(|hash| followed(hash, message, whole));
            let token = session_setup::Response::parse(message).map(|response| response.token);
            logon.challenge = token.and_then(server_challenge).or(logon.challenge);
            push(&mut self.responses, session_id, logon);
            return None;
        }
        if header.status.is_error() {
            return None;
        }
        if let (Some(kerberos), Some(response)) = (&logon.kerberos, session_setup::Response::parse(message)) {
            logon.session_keys = kerberos.session_keys(response.token).collect();
        }
        Some((session_id, logon))
    }
}

impl Logon {
    fn authenticate(&mut self, token: &[u8], ring: &KeyRing) {
        if !ring.service_keys().is_empty() && kerberos::is_request(token) {
            self.kerberos = KerberosLogon::open(token, ring.service_keys());
            self.ticket_failed = self.kerberos.is_none();
        }
        let Some(captured) = self.challenge.and_then(|challenge| CapturedLogon::parse(challenge, token)) else {
            return;
        };
        let passwords = ring.passwords().iter().filter(|known| known.may_belong_to(&captured.user, &captured.domain));
        let mut passwords = passwords.peekable();
        let is_any = passwords.peek().is_some();
        let session_key = passwords.find_map(|known| captured.session_key(&known.text));
        self.password_failed = is_any && session_key.is_none();
        self.session_keys.extend(session_key.map(|key| Zeroizing::new(key.to_vec())));
    }

    /// Derives the keys of the session from its own logon and from the user's session keys.
    pub(super) fn keys(&self, negotiated: &NegotiatedKeys, session_id: u64, ring: &KeyRing) -> LogonKeys {
        let of_ring = ring.session(session_id).iter().filter_map(|secrets| secrets.session_key.as_ref());
        let session_keys = self.session_keys.iter().chain(of_ring);
        let mut found = LogonKeys {
            keys: Vec::new(),
            problems: DecryptedSession {
                password_failed: self.password_failed,
                ticket_failed: self.ticket_failed,
                ..DecryptedSession::default()
            },
        };
        for key in session_keys {
            match (negotiated.dialect, &self.preauth) {
                (Some(0x0300 | 0x0302), _) => found.keys.push((Cipher::Aes128Ccm, SessionKeys::smb3_0(key))),
                (Some(0x0311), Some(preauth)) => {
                    let cipher = negotiated.cipher.unwrap_or(Cipher::Aes128Ccm);
                    found.keys.push((cipher, SessionKeys::smb3_1_1(key, preauth, Some(cipher))));
                }
                (Some(0x0202 | 0x0210), _) => {}
                _ => found.problems.logon_incomplete = true,
            }
        }
        found
    }
}

fn followed(mut hash: PreauthHash, message: &[u8], whole: bool) -> Option<PreauthHash> {
    hash.update(message);
    whole.then_some(hash)
}

fn removed(logons: &mut VecDeque<(u64, Logon)>, id: u64) -> Option<Logon> {
    let index = logons.iter().position(|(known, _)| *known == id)?;
    logons.remove(index).map(|(_, logon)| logon)
}

fn push(logons: &mut VecDeque<(u64, Logon)>, id: u64, logon: Logon) {
    removed(logons, id);
    if logons.len() >= LOGONS_MAX {
        logons.pop_front();
    }
    logons.push_back((id, logon));
}

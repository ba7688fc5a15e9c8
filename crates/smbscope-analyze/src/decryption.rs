//! Decryption of messages in a TRANSFORM_HEADER with keys that the user supplies, or that derive from the logons of a
//! connection (MS-SMB2 §3.1.4.2, §3.1.4.3, §3.2.5.2, §3.2.5.3).
//!
//! [`Decryptor`] finds the key of a session and decrypts as many of the first bytes of a message as the analysis reads.
//! A key is accepted for a direction when a message that it decrypts is plausible, so no file has to say which cipher
//! or direction a key belongs to: the beginning of a message has no tag that proves it.
//!
//! [`Logons`] follows NEGOTIATE and SESSION_SETUP. The keys of 3.1.1 depend on each byte of these messages; if one is
//! missing, only decryption keys help.

use ahash::RandomState;
use smbscope_crypto::kerberos::{self, KerberosLogon};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_crypto::ntlm::{CapturedLogon, server_challenge};
use smbscope_crypto::{Cipher, CipherKey, Keystream, PreauthHash, SessionKeys};
use smbscope_model::FlowDirection;
use smbscope_model::decryption::{DecryptedSession, DecryptedSessions};
use smbscope_wire::bytes::{u16_at, u32_at, u64_at};
use smbscope_wire::smb2::messages::session_setup;
use smbscope_wire::smb2::{COMPRESSION_ID, PROTOCOL_ID, Smb2Command, Smb2Header, Smb2Response, TransformHeader};
use smbscope_wire::status::NtStatus;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Sessions of a flow whose keys are ready; the oldest is evicted, and its keys are tried again if it returns.
const READY_MAX: usize = 64;
/// Sessions of a shard whose keys derive from a logon in the capture.
const DERIVED_MAX: usize = 16 << 10;
/// Keys of one session id from logons: other servers, or a server that started again, may use the same id.
const DERIVED_OF_ID_MAX: usize = 8;
/// Messages after which keys that decrypted none are not tried any more, which bounds the cost of wrong keys.
const TRIALS_MAX: u32 = 256;
/// Consecutive implausible messages after which all keys of the session are tried again: a restarted server reuses session ids.
const DAMAGED_MAX: u32 = 8;
/// Bytes that are decrypted first: the header and the fixed fields of most messages.
const FIRST: usize = 128;

/// Keys of a shard: the user's, and those that derive from logons.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    ring: Arc<KeyRing>,
    derived: HashMap<u64, Vec<Arc<Keystream>>, RandomState>,
    /// Buffer for the message being read.
    pub(crate) scratch: Vec<u8>,
    pub(crate) sessions: DecryptedSessions,
}

impl Keys {
    pub(crate) fn new(ring: Arc<KeyRing>) -> Keys {
        Keys { ring, derived: HashMap::default(), scratch: Vec::new(), sessions: DecryptedSessions::default() }
    }

    fn derive(&mut self, session_id: u64, cipher: Cipher, keys: &SessionKeys) {
        if self.derived.len() >= DERIVED_MAX && !self.derived.contains_key(&session_id) {
            return;
        }
        let streams = self.derived.entry(session_id).or_default();
        let new = [&keys.encryption, &keys.decryption].into_iter().filter_map(|key| Keystream::new(cipher, key));
        streams.splice(0..0, new.map(Arc::new));
        streams.truncate(2 * DERIVED_OF_ID_MAX);
    }

    fn candidates(&self, session_id: u64) -> Vec<Arc<Keystream>> {
        let mut found = self.derived.get(&session_id).cloned().unwrap_or_default();
        for secrets in self.ring.session(session_id) {
            found.extend(secrets.cipher_keys.iter().flat_map(streams));
            // The key of 3.0 derives from the session key alone.
            if let Some(key) = &secrets.session_key {
                let keys = SessionKeys::smb3_0(key);
                let both = [&keys.encryption, &keys.decryption].into_iter();
                found.extend(both.filter_map(|key| Keystream::new(Cipher::Aes128Ccm, key)).map(Arc::new));
            }
        }
        found
    }
}

fn streams(key: &CipherKey) -> impl Iterator<Item = Arc<Keystream>> {
    let all = [Cipher::Aes128Gcm, Cipher::Aes128Ccm, Cipher::Aes256Gcm, Cipher::Aes256Ccm];
    all.into_iter().filter_map(|cipher| Keystream::new(cipher, key)).map(Arc::new)
}

/// Logons and keys of the sessions of a flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowKeys {
    logons: Logons,
    ready: Vec<ReadySession>,
    /// Some message was decrypted: one that can't be read is damaged.
    proven: bool,
}

#[derive(Debug, Clone)]
struct ReadySession {
    id: u64,
    candidates: Vec<Arc<Keystream>>,
    /// Index of the candidate that decrypts messages of a direction.
    chosen: [Option<usize>; 2],
    trials: u32,
    damaged: u32,
}

impl FlowKeys {
    pub(crate) fn footprint(&self) -> usize {
        let candidates: usize = self.ready.iter().map(|ready| ready.candidates.len()).sum();
        size_of::<FlowKeys>()
            + self.logons.footprint()
            + self.ready.capacity() * size_of::<ReadySession>()
            + candidates * (size_of::<Arc<Keystream>>() + size_of::<Keystream>() + 512)
    }
}

pub(crate) enum DecryptResult {
    /// The message of this length was decrypted up to the requested byte.
    Plain(u64),
    /// No key of the session decrypts.
    Unknown,
    /// Keys of the session decrypt other messages but not this one.
    Damaged,
}

/// Keys as seen from one direction of a flow.
pub(crate) struct Decryptor<'k> {
    pub(crate) flow: &'k mut FlowKeys,
    pub(crate) shared: &'k mut Keys,
    pub(crate) direction: FlowDirection,
}

impl Decryptor<'_> {
    /// Follows a logon. `message` is the whole payload of a frame, or its captured part if `whole` is false.
    pub(crate) fn note_plain(&mut self, message: &[u8], whole: bool) {
        let Some((session_id, logon)) = self.flow.logons.take(message, whole, &self.shared.ring) else {
            return;
        };
        let is_known = |ready: &ReadySession| ready.id == session_id && ready.chosen != [None; 2];
        // Keys stay when a user authenticates again.
        if self.flow.ready.iter().any(is_known) && !logon.is_first {
            return;
        }
        let found = logon.keys(self.flow.logons.negotiated(), session_id, &self.shared.ring);
        self.shared.sessions.note(session_id, found.problems);
        for (cipher, keys) in &found.keys {
            self.shared.derive(session_id, *cipher, keys);
        }
        self.flow.ready.retain(|ready| ready.id != session_id);
    }

    /// Returns true once a message of the flow was decrypted.
    pub(crate) fn is_proven(&self) -> bool {
        self.flow.proven
    }

    /// Decrypts the first `wanted` bytes of a message, or all that is captured, into `plain`. `frame` begins with a whole
    /// TRANSFORM_HEADER and belongs to a frame of `length` bytes.
    pub(crate) fn decrypt(&mut self, frame: &[u8], length: usize, wanted: usize, plain: &mut Vec<u8>) -> DecryptResult {
        let header = TransformHeader::parse(frame);
        let session = header.and_then(|header| header.session_id);
        let parts = frame.split_first_chunk::<{ TransformHeader::LENGTH }>();
        let (Some(session_id), Some((header, sealed))) = (session, parts) else { return DecryptResult::Unknown };
        let nonce: &[u8; 16] =
            header[TransformHeader::NONCE].first_chunk().expect("the header holds 16 bytes of nonce");
        let index = self.ready(session_id);
        let ready = &mut self.flow.ready[index];
        let sealed = &sealed[..sealed.len().min(wanted.max(FIRST)).min(length - TransformHeader::LENGTH)];
        let direction = self.direction.index();
        let apply = |stream: &Keystream, plain: &mut Vec<u8>| {
            plain.clear();
            plain.extend_from_slice(sealed);
            stream.apply(nonce, 0, plain);
            is_plausible_message(plain, length - TransformHeader::LENGTH, session_id)
        };
        if let Some(stream) = ready.chosen[direction].and_then(|chosen| ready.candidates.get(chosen)) {
            if apply(stream, plain) {
                ready.damaged = 0;
                return DecryptResult::Plain((length - TransformHeader::LENGTH) as u64);
            }
            ready.damaged += 1;
            if ready.damaged >= DAMAGED_MAX {
                (ready.damaged, ready.trials, ready.chosen) = (0, 0, [None; 2]);
            }
            return DecryptResult::Damaged;
        }
        if ready.candidates.is_empty() || ready.trials >= TRIALS_MAX || sealed.len() < LEAST_PROOF {
            return DecryptResult::Unknown;
        }
        ready.chosen[direction] = ready.candidates.iter().position(|stream| apply(stream, plain));
        if ready.chosen[direction].is_none() {
            ready.trials += 1;
            return DecryptResult::Unknown;
        }
        self.flow.proven = true;
        DecryptResult::Plain((length - TransformHeader::LENGTH) as u64)
    }

    /// Counts a frame of a session once its content is known.
    pub(crate) fn count(&mut self, session_id: Option<u64>, decrypted: bool) {
        let Some(session_id) = session_id else { return };
        let has_key = self.flow.ready.iter().any(|ready| ready.id == session_id && !ready.candidates.is_empty());
        let frames = DecryptedSession {
            decrypted: u64::from(decrypted),
            refused: u64::from(!decrypted && has_key),
            without_key: u64::from(!decrypted && !has_key),
            ..DecryptedSession::default()
        };
        self.shared.sessions.note(session_id, frames);
    }

    /// Returns the index of the session's keys, which are collected when its first message comes.
    fn ready(&mut self, session_id: u64) -> usize {
        let ready = &mut self.flow.ready;
        if let Some(index) = ready.iter().position(|ready| ready.id == session_id) {
            return index;
        }
        if ready.len() >= READY_MAX {
            ready.remove(0);
        }
        let candidates = self.shared.candidates(session_id);
        // The session key alone suffices in 3.0 only.
        let is_underived = !self.shared.derived.contains_key(&session_id);
        let mut secrets = self.shared.ring.session(session_id).iter();
        if is_underived && secrets.any(|secrets| secrets.session_key.is_some() && secrets.cipher_keys.is_empty()) {
            let incomplete = DecryptedSession { logon_incomplete: true, ..DecryptedSession::default() };
            self.shared.sessions.note(session_id, incomplete);
        }
        ready.push(ReadySession { id: session_id, candidates, chosen: [None; 2], trials: 0, damaged: 0 });
        ready.len() - 1
    }
}

/// Unfinished logons of a connection; older ones are forgotten, and their sessions need other keys.
const LOGONS_MAX: usize = 32;

#[derive(Debug, Default, Clone)]
struct NegotiatedKeys {
    dialect: Option<u16>,
    cipher: Option<Cipher>,
    preauth: Option<PreauthHash>,
}

#[derive(Debug, Clone, Default)]
struct Logons {
    /// Hash after the latest NEGOTIATE request.
    asked: Option<PreauthHash>,
    negotiated: NegotiatedKeys,
    /// By message id, until the response.
    requests: VecDeque<(u64, Logon)>,
    /// By session id, until the next request.
    responses: VecDeque<(u64, Logon)>,
}

#[derive(Debug, Clone, Default)]
struct Logon {
    /// Hash over all messages so far; `None` if one is incomplete.
    preauth: Option<PreauthHash>,
    challenge: Option<[u8; 8]>,
    session_keys: Vec<Zeroizing<Vec<u8>>>,
    kerberos: Option<KerberosLogon>,
    password_failed: bool,
    ticket_failed: bool,
    /// Began without a session, which a later authentication of the same session does not.
    is_first: bool,
}

struct LogonKeys {
    keys: Vec<(Cipher, SessionKeys)>,
    problems: DecryptedSession,
}

impl Logons {
    fn footprint(&self) -> usize {
        (self.requests.capacity() + self.responses.capacity()) * (size_of::<(u64, Logon)>() + 32)
    }

    fn negotiated(&self) -> &NegotiatedKeys {
        &self.negotiated
    }

    /// Follows a message. Returns the session id and the logon that it completes.
    fn take(&mut self, message: &[u8], whole: bool, ring: &KeyRing) -> Option<(u64, Logon)> {
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
    fn keys(&self, negotiated: &NegotiatedKeys, session_id: u64, ring: &KeyRing) -> LogonKeys {
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

/// Fewest bytes that prove a key. With protocol id, structure size, command, flags and NextCommand, a wrong key passes
/// once in 2^80 messages.
const LEAST_PROOF: usize = 32;

const STRUCTURE_SIZE: u16 = 64;
/// Compression algorithms (MS-SMB2 §2.2.3.1.3).
const LAST_ALGORITHM: u16 = 5;
/// Length of the uncompressed message; frames have less than 16 MiB.
const LARGEST_MESSAGE: u32 = 1 << 24;

/// Returns true if the bytes begin a message of `length` bytes in the session. Accepts shorter beginnings, as long as
/// nothing in them contradicts.
fn is_plausible_message(plain: &[u8], length: usize, session_id: u64) -> bool {
    if plain.starts_with(&COMPRESSION_ID) {
        let algorithm = u16_at(plain, 8).is_none_or(|algorithm| algorithm <= LAST_ALGORITHM);
        let chained = u16_at(plain, 10).is_none_or(|flags| flags <= 1);
        return algorithm && chained && u32_at(plain, 4).is_none_or(|size| (1..LARGEST_MESSAGE).contains(&size));
    }
    let is_header = plain.len() >= 6 && plain.starts_with(&PROTOCOL_ID) && u16_at(plain, 4) == Some(STRUCTURE_SIZE);
    is_header && is_plausible_header(plain, length) && is_of_session(plain, session_id)
}

fn is_plausible_header(plain: &[u8], length: usize) -> bool {
    plain.len() < Smb2Header::LEAST || Smb2Header::is_plausible(plain, length)
}

/// The server's breaks have no session id in the header inside (MS-SMB2 §2.2.23.2).
fn is_of_session(plain: &[u8], session_id: u64) -> bool {
    const MESSAGE_ID: usize = 24;
    const SESSION_ID: usize = 40;
    let is_unsolicited = u64_at(plain, MESSAGE_ID) == Some(u64::MAX);
    u64_at(plain, SESSION_ID).is_none_or(|id| id == session_id || id == 0 && is_unsolicited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::Smb2Command;

    fn message(session_id: u64, message_id: u64) -> Vec<u8> {
        let header = Smb2Header { session_id: Some(session_id), message_id, ..Smb2Header::new(Smb2Command::ECHO) };
        let mut message = header.to_bytes().to_vec();
        message.extend([4, 0, 0, 0]);
        message
    }

    #[test]
    fn messages_of_the_session_and_breaks_are_accepted() {
        assert!(is_plausible_message(&message(7, 1), 68, 7));
        assert!(!is_plausible_message(&message(8, 1), 68, 7) && !is_plausible_message(&message(0, 1), 68, 7));
        assert!(is_plausible_message(&message(0, u64::MAX), 68, 7));
        assert!(is_plausible_message(&message(7, 1)[..LEAST_PROOF], 68, 7), "the snap length cut the session id off");
    }

    #[test]
    fn random_bytes_are_refused() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            let mut bytes = [0; 64];
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
            assert!(!is_plausible_message(&bytes, 64, 7));
            bytes[..6].copy_from_slice(&[0xfe, b'S', b'M', b'B', 64, 0]);
            assert!(!is_plausible_message(&bytes, 64, 7));
        }
    }
}

//! Decryption of messages in a TRANSFORM_HEADER with keys that the user supplies (MS-SMB2 §3.1.4.3).
//!
//! [`Decryptor`] finds the key of a session and decrypts as many of the first bytes of a message as the analysis reads.
//! A key is accepted for a direction when a message that it decrypts is plausible, so no file has to say which cipher or
//! direction a key belongs to. [`logon`] follows NEGOTIATE and SESSION_SETUP, from which keys derive.

mod logon;
mod plausible;

use crate::decryption::logon::Logons;
use ahash::RandomState;
use smbscope_crypto::key_ring::KeyRing;
use smbscope_crypto::{Cipher, CipherKey, Keystream, SessionKeys};
use smbscope_model::FlowDirection;
use smbscope_model::decryption::{DecryptedSession, DecryptedSessions};
use smbscope_wire::smb2::TransformHeader;
use std::collections::HashMap;
use std::sync::Arc;

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
            plausible::is_message(plain, length - TransformHeader::LENGTH, session_id)
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
        if ready.candidates.is_empty() || ready.trials >= TRIALS_MAX || sealed.len() < plausible::LEAST {
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

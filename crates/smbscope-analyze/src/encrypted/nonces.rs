//! Nonces of encrypted messages. Samba counts the messages that it encrypts with a key, so gaps reveal lost messages.
//!
//! The specification requires no order (MS-SMB2 §3.1.4.3), and other implementations choose random nonces, so only
//! nonces that are observed to count are used. With several channels, each connection shows a part.

use super::sizes;
use crate::frame::{Frame, Losses};
use crate::unseen::SequenceTracker;
use smbscope_wire::smb2::Nonce;

/// Keys per connection whose nonces are followed.
const MAX_KEYS: usize = 8;

#[derive(Debug)]
struct NonceSequence {
    session: u64,
    salt: u64,
    counter: SequenceTracker<64>,
    end: u64,
}

#[derive(Debug, Default)]
pub(super) struct Nonces {
    keys: Vec<NonceSequence>,
    settled: u64,
    others: bool,
}

impl Nonces {
    pub(super) fn note(
        &mut self,
        sender: Option<(u64, Nonce)>,
        frame: &Frame,
        losses: &Losses,
        from_the_beginning: bool,
    ) {
        let Some((session, nonce)) = sender else {
            self.others = true;
            return;
        };
        let known = self.keys.iter().position(|key| (key.session, key.salt) == (session, nonce.salt));
        let mut key = match known {
            Some(at) => self.keys.remove(at),
            None => self.begin(session, nonce, frame, losses, from_the_beginning),
        };
        let lost = losses.hidden_between(key.end, frame.start, 1).next().is_some();
        key.counter.note(nonce.count, lost);
        key.end = frame.end;
        self.keys.push(key);
    }

    fn begin(
        &mut self,
        session: u64,
        nonce: Nonce,
        frame: &Frame,
        losses: &Losses,
        from_the_beginning: bool,
    ) -> NonceSequence {
        if self.keys.len() == MAX_KEYS {
            let oldest = self.keys.remove(0);
            self.settled = self.settled.saturating_add(oldest.counter.missing().unwrap_or(0));
        }
        let mut key = NonceSequence { session, salt: nonce.salt, counter: SequenceTracker::default(), end: 0 };
        // The first message has nonce 1. A larger one follows messages on another channel if they don't fit the missing
        // bytes.
        let hidden: u64 = losses.hidden_between(0, frame.start, 1).fold(0, u64::saturating_add);
        if from_the_beginning && (1..=1 + hidden / sizes::SHORTEST_FRAME).contains(&nonce.count) {
            key.counter.begin();
        }
        key
    }

    /// Returns the nonce of the latest message and the stream position after it, if a single key counts all messages.
    pub(super) fn latest(&self) -> Option<(u64, u64)> {
        match self.keys.as_slice() {
            [key] if !self.others && self.settled == 0 && key.counter.is_exact() => {
                key.counter.latest().map(|number| (number, key.end))
            }
            _ => None,
        }
    }

    pub(super) fn missing(&self) -> Option<u64> {
        if self.keys.is_empty() || self.others {
            return None;
        }
        let mut keys = self.keys.iter();
        keys.try_fold(self.settled, |missing, key| Some(missing.saturating_add(key.counter.missing()?)))
    }
}

//! Conclusions from the size of an encrypted message: the fixed parts of SMB2 bodies (MS-SMB2 §2.2).
//!
//! Also follows nonces: Samba counts the messages that it encrypts with a key, so gaps reveal lost messages. The
//! specification requires no order (MS-SMB2 §3.1.4.3), and other implementations choose random nonces, so only nonces
//! that are observed to count are used. With several channels, each connection shows a part.
//!
//! Sections without a document name refer to MS-SMB2. The functions named `may_…` return true if such a message can
//! have that size.

use crate::content::FrameContent;
use crate::frame::{Frame, Losses};
use crate::unseen::SequenceTracker;
use smbscope_model::FlowDirection;
use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb2::{Nonce, Smb2Header, TransformHeader};

const AROUND: u64 = (HEADER_LENGTH + TransformHeader::LENGTH) as u64;
const HEADER: u64 = Smb2Header::LENGTH as u64;

/// ERROR response without data (§2.2.2). Interim responses have the same size.
const ERROR: u64 = HEADER + 9;
/// Some servers omit the padding byte for the empty data.
const SHORT_ERROR: u64 = HEADER + 8;
/// Oplock and lease break notifications (§2.2.23).
const BREAKS: [u64; 2] = [HEADER + 24, HEADER + 44];
/// Oplock and lease break acknowledgments (§2.2.24).
const BREAK_ACKNOWLEDGMENTS: [u64; 2] = [HEADER + 24, HEADER + 36];
/// ECHO, LOGOFF, TREE_DISCONNECT, CANCEL, the responses to these, and the responses to FLUSH and LOCK.
const EMPTY: u64 = HEADER + 4;
const LONGER_THAN_EMPTY: u64 = EMPTY + 1;
/// CLOSE and FLUSH requests, oplock break acknowledgments, and TREE_CONNECT to a share with a short name.
const CLOSE: u64 = HEADER + 24;
/// READ request (§2.2.19), with and without the padding byte for the empty buffer.
const READ: u64 = HEADER + 49;
const SHORT_READ: u64 = HEADER + 48;
/// CLOSE response (§2.2.16).
const CLOSED: u64 = HEADER + 60;
/// CHANGE_NOTIFY request (§2.2.35).
const CHANGE_NOTIFY: u64 = HEADER + 32;
/// SET_INFO response (§2.2.40), the shortest final response.
const SET_INFO_RESPONSE: u64 = HEADER + 2;
/// LOCK request with one lock (§2.2.26), and the size of each additional lock.
const LOCK: u64 = HEADER + 48;
const LOCK_ELEMENT: u64 = 24;
/// WRITE responses (§2.2.22), with and without the padding byte; the first is also a TREE_CONNECT response's (§2.2.10).
const SMALL: [u64; 2] = [HEADER + 16, HEADER + 17];
/// Requests with more data than this are WRITE: all others carry names, tokens or attributes.
const SURELY_WRITE: u64 = 4096;

/// Larger requests contain only WRITE: an FSCTL_SRV_COPYCHUNK of 256 chunks takes 6,296 bytes (§2.2.31.1).
const NOTHING_BUT_WRITE: u64 = 8192;
/// Shortest response to a compound with WRITE: a WRITE response and, aligned to 8 bytes, a SET_INFO response.
const COMPOUND_WITH_WRITE: u64 = SMALL[0] + SET_INFO_RESPONSE;

const MANY_CHANGES: u64 = 4096;

pub(super) const SHORTEST_FRAME: u64 = AROUND + SET_INFO_RESPONSE;
pub(super) const LESS_THAN_TWO: u64 = 2 * SHORTEST_FRAME;
const MOST_BREAKS: u64 = 2;

pub(super) fn plain(payload: u64) -> u64 {
    payload.saturating_sub(TransformHeader::LENGTH as u64)
}

pub(super) fn may_be_error(response: u64) -> bool {
    matches!(response, ERROR | SHORT_ERROR)
}

/// Scores a message: positive if its sender is probably the client, negative for the server. Few responses are as long
/// as READ and CLOSE requests, and few requests as errors and responses to CLOSE, WRITE and SET_INFO.
pub(super) fn speaks_for_client(plain: u64) -> i32 {
    match plain {
        READ | SHORT_READ => 2,
        CLOSE => 1,
        CLOSED => -1,
        ERROR | SET_INFO_RESPONSE => -2,
        _ if SMALL.contains(&plain) => -2,
        _ => 0,
    }
}

pub(super) fn alike(request: u64) -> u64 {
    request.min(NOTHING_BUT_WRITE)
}

pub(super) fn may_be_interim(response: u64) -> bool {
    response == ERROR
}

pub(super) fn may_be_break(response: u64) -> bool {
    BREAKS.contains(&response)
}

pub(super) fn may_acknowledge_break(request: u64) -> bool {
    BREAK_ACKNOWLEDGMENTS.contains(&request)
}

pub(super) fn is_empty(plain: u64) -> bool {
    plain == EMPTY
}

/// A CANCEL has no response of its own.
pub(super) fn may_be_cancel(request: u64) -> bool {
    request == EMPTY
}

/// Returns true if the request may wait for something other than the server: a change or a lock.
pub(super) fn may_linger(request: u64) -> bool {
    request == CHANGE_NOTIFY || request == LOCK
}

pub(super) fn may_hide_lingering(bytes: u64) -> bool {
    !is_one_request(bytes) || may_linger(bytes - AROUND)
}

/// Returns true if clients commonly continue with other requests after an interim response to this one.
pub(super) fn may_stay_pending(request: u64) -> bool {
    may_linger(request) || request >= SURELY_WRITE
}

/// Returns true for possible final responses to LOCK or CHANGE_NOTIFY (§2.2.36; entries take 14 bytes, MS-FSCC §2.7.1).
pub(super) fn may_answer_lingering(response: u64) -> bool {
    matches!(response, EMPTY | SHORT_ERROR | ERROR) || (HEADER + 8 + 14..MANY_CHANGES).contains(&response)
}

pub(super) fn may_hide_lingering_answer(bytes: u64) -> bool {
    bytes.checked_sub(AROUND).is_some_and(may_answer_lingering)
}

/// Returns true if the response may be a final one for the request. Most request sizes fit several commands or a
/// compound, but the shortest don't. A request of unknown size (0) fits everything.
pub(super) fn may_answer(request: u64, response: u64) -> bool {
    if request == 0 {
        return true;
    }
    let to_short = match request {
        0..=EMPTY => matches!(response, EMPTY | SHORT_ERROR | ERROR),
        LONGER_THAN_EMPTY..CHANGE_NOTIFY => {
            matches!(response, EMPTY | SHORT_ERROR | ERROR | CLOSE | CLOSED) || SMALL.contains(&response)
        }
        NOTHING_BUT_WRITE.. => response == ERROR || SMALL.contains(&response) || response >= COMPOUND_WITH_WRITE,
        SURELY_WRITE.. => response == ERROR || response >= SMALL[0],
        _ => true,
    };
    let of_short = match response {
        SET_INFO_RESPONSE => request >= CHANGE_NOTIFY,
        EMPTY => request <= CLOSE || request >= LOCK && (request - LOCK).is_multiple_of(LOCK_ELEMENT),
        _ => true,
    };
    to_short && of_short
}

pub(super) fn most_requests(bytes: u64) -> u64 {
    (bytes / (AROUND + EMPTY)).max(1)
}

pub(super) fn is_one_request(bytes: u64) -> bool {
    (AROUND + EMPTY + 1..LESS_THAN_TWO).contains(&bytes)
}

pub(super) fn only_request(bytes: u64) -> Option<u64> {
    (bytes < LESS_THAN_TWO).then(|| bytes.saturating_sub(AROUND))
}

pub(super) fn most_responses(bytes: u64) -> u64 {
    bytes / SHORTEST_FRAME
}

/// Returns true if hidden bytes may consist of break notifications and, if `interim_possible`, one interim response.
pub(super) fn may_be_without_final(bytes: u64, interim_possible: bool) -> bool {
    may_be_breaks(bytes) || interim_possible && bytes.checked_sub(AROUND + ERROR).is_some_and(may_be_breaks_or_none)
}

fn may_be_breaks_or_none(bytes: u64) -> bool {
    bytes == 0 || may_be_breaks(bytes)
}

pub(super) fn may_be_breaks(bytes: u64) -> bool {
    let [oplock, lease] = BREAKS.map(|size| AROUND + size);
    (0..=MOST_BREAKS).any(|oplocks| {
        (0..=MOST_BREAKS - oplocks).any(|leases| oplocks + leases > 0 && oplocks * oplock + leases * lease == bytes)
    })
}

/// Encrypted frames until ports decide roles: `sides_guessed`.
const MAX_UNDECIDED: usize = 32;
/// Decisive score. A size that is rare on the other side counts 1, an impossible one counts 2.
const DECISIVE: i32 = 4;

#[derive(Debug, Clone)]
pub(crate) struct UndecidedFrame {
    pub(crate) direction: FlowDirection,
    pub(crate) frame: Frame,
    pub(crate) reached: [u64; 2],
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Undecided {
    frames: Vec<UndecidedFrame>,
    forward: i32,
}

impl Undecided {
    pub(crate) fn push(&mut self, waiting: UndecidedFrame) -> Option<FlowDirection> {
        let UndecidedFrame { direction, frame, .. } = &waiting;
        let weight = match frame.content {
            FrameContent::Encrypted { .. } => speaks_for_client(plain(frame.length())),
            _ => 0,
        };
        self.forward += if *direction == FlowDirection::Forward { weight } else { -weight };
        self.frames.push(waiting);
        let client = if self.forward > 0 { FlowDirection::Forward } else { FlowDirection::Backward };
        (self.forward.abs() >= DECISIVE).then_some(client)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= MAX_UNDECIDED
    }

    pub(crate) fn footprint(&self) -> usize {
        self.frames.capacity() * size_of::<UndecidedFrame>()
    }

    pub(crate) fn take_frames(&mut self) -> Vec<UndecidedFrame> {
        std::mem::take(&mut self.frames)
    }
}

/// Keys per connection whose nonces are followed.
const MAX_KEYS: usize = 8;

#[derive(Debug, Clone)]
struct NonceSequence {
    session: u64,
    salt: u64,
    counter: SequenceTracker<64>,
    end: u64,
}

#[derive(Debug, Clone, Default)]
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
        if from_the_beginning && (1..=1 + hidden / SHORTEST_FRAME).contains(&nonce.count) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_is_answered_by_a_close_response_or_an_error_alone() {
        // MS-SMB2 §2.2.15 and §2.2.16: bodies of 24 and 60 bytes; a CREATE response has at least 88 (§2.2.14).
        assert!(may_answer(64 + 24, 64 + 60) && may_answer(64 + 24, 64 + 9));
        assert!(!may_answer(64 + 24, 64 + 88) && !may_answer(64 + 24, 64 + 16 + 4096));
    }

    #[test]
    fn a_close_response_answers_no_write() {
        // MS-SMB2 §2.2.22: 16 bytes; a compound has another response of at least 2 bytes (§2.2.40).
        assert!(may_answer(31_638, 64 + 16) && may_answer(31_638, 64 + 9) && may_answer(31_638, 80 + 64 + 2));
        assert!(!may_answer(31_638, 64 + 60) && !may_answer(31_638, 64 + 32));
        assert!(may_answer(6_296, 64 + 60), "FSCTL_SRV_COPYCHUNK (2.2.31.1, 2.2.32.1)");
    }

    #[test]
    fn an_echo_response_answers_no_create() {
        // MS-SMB2 §2.2.13: a body of 56 bytes and a name; §2.2.29: 4 bytes. A body of 48 bytes may be a LOCK (§2.2.26).
        assert!(!may_answer(64 + 32, 64 + 4));
        assert!(may_answer(64 + 4, 64 + 4) && may_answer(64 + 48, 64 + 4));
    }

    #[test]
    fn hidden_bytes_without_a_final_response_have_few_sizes() {
        // Frames have 4 + 52 bytes of overhead: an interim response takes 129 bytes, the breaks 144 and 164.
        assert!(may_be_without_final(129, true) && !may_be_without_final(129, false));
        for bytes in [144, 164, 288, 308, 328, 129 + 144] {
            assert!(may_be_without_final(bytes, true), "{bytes}");
        }
        for bytes in [0, 122, 136, 180, 208, 65_672] {
            assert!(!may_be_without_final(bytes, true), "{bytes}");
        }
    }

    #[test]
    fn a_hidden_frame_is_one_request_unless_two_would_fit() {
        assert!(is_one_request(56 + 88) && is_one_request(56 + 140));
        assert!(!is_one_request(56 + 68), "a CANCEL has no response");
        assert!(!is_one_request(2 * (56 + 66)) && !is_one_request(60));
        assert_eq!((most_requests(60), most_requests(1448)), (1, 11));
    }
}

//! Result of decrypting the sessions of a capture.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sessions with a line of their own; those with the smallest ids stay, whatever the order of merges.
const SESSIONS_MAX: usize = 1024;

/// Frames of an encrypted session by their result, and why keys may be missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecryptedSession {
    pub decrypted: u64,
    /// Frames that no key of the session decrypts.
    pub refused: u64,
    pub without_key: u64,
    /// A session key is known, but its decryption keys derive from messages that the capture does not hold.
    pub logon_incomplete: bool,
    /// The passwords are wrong for the user who logged on.
    pub password_failed: bool,
    /// No key of the keytabs opens the ticket.
    pub ticket_failed: bool,
}

impl DecryptedSession {
    fn merge(&mut self, other: &DecryptedSession) {
        self.decrypted += other.decrypted;
        self.refused += other.refused;
        self.without_key += other.without_key;
        self.logon_incomplete |= other.logon_incomplete;
        self.password_failed |= other.password_failed;
        self.ticket_failed |= other.ticket_failed;
    }

    /// Returns why no frame of the session was decrypted. `None` if one was, or if no key was given for it.
    pub fn problem(&self, session_id: u64) -> Option<String> {
        let frames = self.refused + self.without_key;
        if self.decrypted > 0 || frames == 0 {
            return None;
        }
        Some(if self.password_failed {
            format!("the password does not fit the logon of session {session_id:#018x}, which stays encrypted")
        } else if self.ticket_failed {
            format!("no key of the keytab opens the ticket of session {session_id:#018x}, which stays encrypted")
        } else if self.logon_incomplete {
            format!(
                "the session key of session {session_id:#018x} is not enough: the capture lacks the beginning of its \
                 connection; its decryption keys would do"
            )
        } else if self.refused > 0 {
            format!("key for session {session_id:#018x} does not decrypt")
        } else {
            return None;
        })
    }
}

/// Results by session id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecryptedSessions(BTreeMap<u64, DecryptedSession>);

impl DecryptedSessions {
    pub fn note(&mut self, session_id: u64, session: DecryptedSession) {
        self.0.entry(session_id).or_default().merge(&session);
        if self.0.len() > SESSIONS_MAX {
            self.0.pop_last();
        }
    }

    pub fn merge(&mut self, other: DecryptedSessions) {
        other.0.into_iter().for_each(|(id, session)| self.note(id, session));
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &DecryptedSession)> {
        self.0.iter().map(|(id, session)| (*id, session))
    }

    /// Returns a sentence for each session whose keys failed.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.iter().filter_map(|(id, session)| session.problem(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_keys_is_no_problem_of_keys() {
        let frames = DecryptedSession { without_key: 5, ..DecryptedSession::default() };
        assert_eq!(frames.problem(7), None);
        assert_eq!(DecryptedSession { password_failed: true, ..DecryptedSession::default() }.problem(7), None);
        let damaged = DecryptedSession { decrypted: 5, refused: 1, ..DecryptedSession::default() };
        assert_eq!(damaged.problem(7), None);
    }

    #[test]
    fn each_problem_has_a_sentence_of_its_own() {
        let refused = DecryptedSession { refused: 1, ..DecryptedSession::default() };
        assert_eq!(refused.problem(7).unwrap(), "key for session 0x0000000000000007 does not decrypt");
        let sentences = [
            refused,
            DecryptedSession { logon_incomplete: true, ..refused },
            DecryptedSession { password_failed: true, ..refused },
            DecryptedSession { ticket_failed: true, ..refused },
        ];
        let sentences = sentences.map(|session| session.problem(7).unwrap());
        assert_eq!(sentences.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
    }

    #[test]
    fn the_smallest_ids_stay_in_any_order_of_merges() {
        let one = DecryptedSession { decrypted: 1, ..DecryptedSession::default() };
        let part = |ids: &mut dyn Iterator<Item = u64>| {
            let mut sessions = DecryptedSessions::default();
            ids.for_each(|id| sessions.note(id, one));
            sessions
        };
        let whole = part(&mut (0..3_000));
        let mut merged = part(&mut (0..3_000).rev().filter(|id| id % 2 == 0));
        merged.merge(part(&mut (0..3_000).filter(|id| id % 2 == 1)));
        assert_eq!((&merged, merged.iter().count()), (&whole, SESSIONS_MAX));
    }
}

//! Keys with labels: the output of `smbinfo keys`, the kernel log of a Linux client that dumps keys, and Samba's log
//! with `debug encryption = yes`, which prints bytes as a dump. Named ciphers are ignored: a trial finds the right one.

use super::{SessionSecrets, cipher_key, hex};
use zeroize::Zeroizing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyLabel {
    SessionId,
    SessionKey,
    /// To the server (ServerIn) or from it (ServerOut).
    CipherKey,
    /// Ends the value before.
    Other,
}

const LABELS: &[(&str, KeyLabel)] = &[
    ("session id", KeyLabel::SessionId),
    ("sessionid", KeyLabel::SessionId),
    ("session key", KeyLabel::SessionKey),
    ("sessionkey", KeyLabel::SessionKey),
    ("serverin key", KeyLabel::CipherKey),
    ("serverout key", KeyLabel::CipherKey),
    ("server encryption key", KeyLabel::CipherKey),
    ("server decryption key", KeyLabel::CipherKey),
    ("signing key", KeyLabel::Other),
    ("signing algo", KeyLabel::Other),
    ("application key", KeyLabel::Other),
    ("channel key", KeyLabel::Other),
    ("cipher", KeyLabel::Other),
];

/// Bytes of a session key: DES has 8, and Kerberos with AES-256 has 32.
const SESSION_KEY: std::ops::RangeInclusive<usize> = 8..=64;

/// Returns the sessions, or `None` if no label has the bytes of a session id.
pub(super) fn parse(text: &str) -> Option<Vec<(u64, SessionSecrets)>> {
    let mut found = LabelledSessions::default();
    text.lines().for_each(|line| found.line(line));
    found.end_value();
    found.end_session();
    found.is_known.then_some(found.sessions)
}

#[derive(Default)]
struct LabelledSessions {
    sessions: Vec<(u64, SessionSecrets)>,
    is_known: bool,
    id: Option<u64>,
    secrets: SessionSecrets,
    open: Option<(KeyLabel, Zeroizing<Vec<u8>>)>,
}

impl LabelledSessions {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim_start();
        if let (Some(bytes), Some((_, value))) = (dumped(trimmed), &mut self.open) {
            if value.len() + bytes.len() <= *SESSION_KEY.end() {
                value.extend_from_slice(&bytes);
            }
            return;
        }
        self.end_value();
        if !may_have_label(line) {
            return;
        }
        let lower = Zeroizing::new(line.to_ascii_lowercase());
        let found = LABELS.iter().find_map(|(text, label)| Some((*label, lower.find(text)? + text.len())));
        let Some((label, end)) = found else { return };
        let value = line.get(end..).unwrap_or_default().trim_matches([':', '=', ' ', '\t']);
        let bytes = dumped(value).or_else(|| hex(value)).filter(|bytes| bytes.len() <= *SESSION_KEY.end());
        self.open = Some((label, bytes.unwrap_or_default()));
    }

    fn end_value(&mut self) {
        let Some((label, value)) = self.open.take().filter(|(_, value)| !value.is_empty()) else { return };
        match label {
            KeyLabel::SessionId => {
                let Ok(id) = value[..].try_into().map(u64::from_le_bytes) else { return };
                self.end_session();
                self.is_known = true;
                self.id = Some(id);
            }
            KeyLabel::SessionKey if SESSION_KEY.contains(&value.len()) => self.secrets.session_key = Some(value),
            KeyLabel::CipherKey => self.secrets.cipher_keys.extend(cipher_key(&value)),
            KeyLabel::SessionKey | KeyLabel::Other => {}
        }
    }

    fn end_session(&mut self) {
        let secrets = std::mem::take(&mut self.secrets);
        if let Some(id) = self.id.take().filter(|_| secrets.is_useful()) {
            self.sessions.push((id, secrets));
        }
    }
}

/// Returns false for most lines of a log, which saves the search for labels.
fn may_have_label(line: &str) -> bool {
    ["ey", "EY", "ession", "ESSION", "ipher", "IPHER", "lgo", "LGO"].iter().any(|part| line.contains(part))
}

/// Returns the bytes of a line of Samba's dump: `[0000] 54 0A 00 00 6A 1B 0C 9E   33 … 41   T...j... 3…A`.
fn dumped(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    /// 16 bytes with a gap in the middle; what follows is their text.
    const WIDTH: usize = 50;
    let (offset, bytes) = text.strip_prefix('[')?.split_once("] ")?;
    if offset.len() != 4 || !offset.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    hex(bytes.get(..WIDTH).unwrap_or(bytes))
}

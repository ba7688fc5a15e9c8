//! Formats of files with keys and passwords.
//!
//! Wireshark's table `smb2_seskey_list` has session id, session key, server-to-client key and client-to-server key, as
//! hexadecimal bytes in the order of the wire, separated by commas; empty fields are unknown. Labelled keys are in the
//! output of `smbinfo keys`, the kernel log of a Linux client that dumps keys, and Samba's log with `debug encryption =
//! yes`, which prints bytes as a dump; named ciphers are ignored, because a trial finds the right one. A file of
//! passwords has one in its first line, as for `bench`, or is the credentials file of smbclient and mount.cifs.

use super::{KeyFileError, SessionSecrets, cipher_key, hex, session_id};
use crate::{CipherKey, SessionKeys};
use std::fmt::{self, Write};
use zeroize::Zeroizing;

/// Begins a line of Wireshark's preferences, or of the option `-o` of tshark.
const PREFERENCE: &str = "uat:smb2_seskey_list:";

/// Returns true if the first line with content has a session id in the first of two to four fields.
pub(super) fn looks_like_wireshark(text: &str) -> bool {
    wireshark_lines(text).next().is_some_and(|(_, line)| {
        let fields = wireshark_fields(line);
        (2..=4).contains(&fields.len()) && session_id(fields[0]).is_some()
    })
}

pub(super) fn parse_wireshark(text: &str) -> Result<Vec<(u64, SessionSecrets)>, KeyFileError> {
    wireshark_lines(text)
        .map(|(line, entry)| wireshark_session(entry).map_err(|expected| KeyFileError::Malformed { line, expected }))
        .collect()
}

fn wireshark_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Splits a line. Wireshark puts text into quotation marks, but no bytes; other programs may.
fn wireshark_fields(line: &str) -> Vec<&str> {
    let line = line.strip_prefix(PREFERENCE).unwrap_or(line);
    line.split(',').map(|field| field.trim().trim_matches('"')).collect()
}

fn wireshark_session(line: &str) -> Result<(u64, SessionSecrets), &'static str> {
    let fields = wireshark_fields(line);
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    if fields.len() > 4 {
        return Err("session id, session key, server-to-client key, client-to-server key");
    }
    let id = session_id(field(0)).ok_or("a session id of 8 bytes")?;
    let mut secrets = SessionSecrets::default();
    if !field(1).is_empty() {
        let key = hex(field(1)).filter(|key| (1..=64).contains(&key.len()));
        secrets.session_key = Some(key.ok_or("a session key of 1 to 64 bytes")?);
    }
    for key in [field(2), field(3)].into_iter().filter(|key| !key.is_empty()) {
        let key = hex(key).and_then(|key| cipher_key(&key)).ok_or("a decryption key of 16 or 32 bytes")?;
        secrets.cipher_keys.push(key);
    }
    if !secrets.is_useful() {
        return Err("a session key or a decryption key");
    }
    Ok((id, secrets))
}

/// Formats the line of a session. The memory of the result is cleared when it is dropped.
pub fn session_line(session_id: u64, session_key: &[u8], keys: &SessionKeys) -> Zeroizing<String> {
    // Reserved, because growing would leave copies.
    let mut line = Zeroizing::new(String::with_capacity(512));
    let mut field = |bytes: &[u8]| bytes.iter().for_each(|byte| write!(line, "{byte:02x}").expect("a string grows"));
    field(&session_id.to_le_bytes());
    for key in [session_key, bytes(&keys.decryption), bytes(&keys.encryption)] {
        line.push(',');
        key.iter().take(64).for_each(|byte| write!(line, "{byte:02x}").expect("a string grows"));
    }
    line.push('\n');
    line
}

fn bytes(key: &CipherKey) -> &[u8] {
    key.as_bytes()
}

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
pub(super) fn parse_labelled(text: &str) -> Option<Vec<(u64, SessionSecrets)>> {
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

/// Password of a user, or of any user if `user` is `None`.
pub struct UserPassword {
    pub user: Option<String>,
    pub domain: Option<String>,
    pub text: Zeroizing<String>,
}

impl UserPassword {
    /// Returns true unless the file restricts the password to another user or domain.
    pub fn may_belong_to(&self, user: &str, domain: &str) -> bool {
        let fits = |wanted: &Option<String>, there: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.to_lowercase() == there.to_lowercase())
        };
        fits(&self.user, user) && fits(&self.domain, domain)
    }
}

impl fmt::Debug for UserPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserPassword(secret)")
    }
}

/// Parses `username = …`, `password = …` and `domain = …`, each user beginning with his name; or a single password.
pub(super) fn parse_passwords(text: &str) -> Result<Vec<UserPassword>, KeyFileError> {
    let Some(entries) = password_entries(text) else {
        // Blanks are part of the password.
        let text = text.lines().next().unwrap_or_default();
        return match text.is_empty() {
            true => Err(KeyFileError::Malformed { line: 1, expected: "a password" }),
            false => Ok(vec![UserPassword { user: None, domain: None, text: Zeroizing::new(text.to_owned()) }]),
        };
    };
    let mut found: Vec<UserPassword> = Vec::new();
    let (mut user, mut domain, mut password) = (None, None, None);
    let mut end = |user: &mut Option<String>, domain: &mut Option<String>, password: &mut Option<Zeroizing<String>>| {
        if let Some(text) = password.take() {
            found.push(UserPassword { user: user.take(), domain: domain.take(), text });
        }
    };
    for (key, value) in entries {
        match key {
            CredentialKey::User => {
                end(&mut user, &mut domain, &mut password);
                user = Some(value.trim().to_owned());
            }
            CredentialKey::Domain => domain = Some(value.trim().to_owned()).filter(|domain| !domain.is_empty()),
            CredentialKey::Password => password = Some(Zeroizing::new(value.to_owned())),
        }
    }
    end(&mut user, &mut domain, &mut password);
    if found.is_empty() { Err(KeyFileError::NoKeys) } else { Ok(found) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CredentialKey {
    User,
    Password,
    Domain,
}

/// Returns the entries if every line is one, and one of them is a password.
fn password_entries(text: &str) -> Option<Vec<(CredentialKey, &str)>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let entries: Option<Vec<_>> = lines
        .map(|line| {
            let (key, value) = line.split_once('=')?;
            let key = match key.trim().to_ascii_lowercase().as_str() {
                "username" | "user" => CredentialKey::User,
                "password" | "pass" => CredentialKey::Password,
                "domain" | "dom" | "workgroup" => CredentialKey::Domain,
                _ => return None,
            };
            // smbclient and mount.cifs skip blanks before a value.
            Some((key, value.trim_start()))
        })
        .collect();
    entries.filter(|entries| entries.iter().any(|(key, _)| *key == CredentialKey::Password))
}

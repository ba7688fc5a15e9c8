//! Keys and passwords that a user supplies to decrypt captures, from the files that other programs write.
//!
//! The format of a file is recognised by its content. No error message repeats content of a file.

mod formats;

#[cfg(test)]
mod tests;

pub use formats::{UserPassword, session_line};

use crate::kerberos::{KEYTAB, ServiceKey};
use crate::{CipherKey, SessionKeys};
use formats::{looks_like_wireshark, parse_labelled, parse_passwords, parse_wireshark};
use std::collections::HashMap;
use std::fmt;
use zeroize::Zeroizing;

/// Sessions of all files: a log of Samba with a million sessions takes a few hundred MB.
const SESSIONS_MAX: usize = 1 << 20;
/// Keys of one session id. Servers number their sessions independently, so several may have the same id.
const KEYS_OF_SESSION_MAX: usize = 16;
/// Passwords; each is tried for each logon.
const PASSWORDS_MAX: usize = 256;
/// Keys of services; each is tried for each ticket of its encryption type.
const SERVICE_KEYS_MAX: usize = 1024;

/// Keys by session, and passwords. Its memory is cleared when it is dropped.
#[derive(Default)]
pub struct KeyRing {
    sessions: HashMap<u64, Vec<SessionSecrets>>,
    count: usize,
    passwords: Vec<UserPassword>,
    service_keys: Vec<ServiceKey>,
}

/// Keys of one session in a file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SessionSecrets {
    /// Key of the authentication, from which the others derive.
    pub session_key: Option<Zeroizing<Vec<u8>>>,
    /// Decryption keys, in any order: which belongs to which direction shows when they are tried.
    pub cipher_keys: Vec<CipherKey>,
}

impl SessionSecrets {
    fn is_useful(&self) -> bool {
        self.session_key.is_some() || !self.cipher_keys.is_empty()
    }
}

impl fmt::Debug for SessionSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecrets(secret)")
    }
}

/// Converts the sessions in a log of Samba with `debug encryption = yes` to lines of Wireshark's `smb2_seskey_list`. The
/// memory of the result is cleared when it is dropped.
pub fn lines_of_samba_log(log: &[u8]) -> Zeroizing<String> {
    let log = Zeroizing::new(String::from_utf8_lossy(log).into_owned());
    let sessions = parse_labelled(&log).unwrap_or_default();
    let lines: Vec<Zeroizing<String>> = sessions
        .iter()
        .filter_map(|(id, secrets)| match (&secrets.session_key, &secrets.cipher_keys[..]) {
            // ServerIn comes before ServerOut.
            (Some(session_key), [encryption, decryption]) => {
                let (encryption, decryption) = (encryption.clone(), decryption.clone());
                Some(session_line(*id, session_key, &SessionKeys { signing: [0; 16], encryption, decryption }))
            }
            _ => None,
        })
        .collect();
    let mut text = Zeroizing::new(String::with_capacity(lines.iter().map(|line| line.len()).sum()));
    lines.iter().for_each(|line| text.push_str(line));
    text
}

/// Reason that a file was refused. It names lines, never their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFileError {
    NotText,
    /// Begins as a keytab, but is damaged.
    Keytab,
    /// No known format.
    Unknown,
    /// Malformed entry: its line, and the expected content.
    Malformed {
        line: usize,
        expected: &'static str,
    },
    /// A known format without any key.
    NoKeys,
    TooMany(usize),
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFileError::NotText => f.write_str("it is neither text nor a keytab"),
            KeyFileError::Keytab => f.write_str("the keytab is damaged"),
            KeyFileError::Unknown => f.write_str(
                "unknown format; expected lines of Wireshark's smb2_seskey_list, the output of `smbinfo keys`, a log \
                 of Samba with `debug encryption = yes`, or a keytab",
            ),
            KeyFileError::Malformed { line, expected } => write!(f, "line {line}: expected {expected}"),
            KeyFileError::NoKeys => f.write_str("it contains no key of a session"),
            KeyFileError::TooMany(most) => write!(f, "more than {most} entries"),
        }
    }
}

impl std::error::Error for KeyFileError {}

impl KeyRing {
    /// Adds the keys of a file. Returns the number of sessions, or of keys in a keytab.
    pub fn add_keys(&mut self, content: &[u8]) -> Result<usize, KeyFileError> {
        if content.starts_with(&KEYTAB) {
            return self.add_keytab(content);
        }
        let text = text(content)?;
        let sessions = match looks_like_wireshark(text) {
            true => parse_wireshark(text)?,
            false => parse_labelled(text).ok_or(KeyFileError::Unknown)?,
        };
        if sessions.is_empty() {
            return Err(KeyFileError::NoKeys);
        }
        let added = sessions.len();
        sessions.into_iter().try_for_each(|(id, secrets)| self.add(id, secrets))?;
        Ok(added)
    }

    fn add_keytab(&mut self, content: &[u8]) -> Result<usize, KeyFileError> {
        let keys = ServiceKey::parse_all(content).ok_or(KeyFileError::Keytab)?;
        let added = keys.len();
        if added == 0 {
            return Err(KeyFileError::NoKeys);
        }
        if self.service_keys.len() + added > SERVICE_KEYS_MAX {
            return Err(KeyFileError::TooMany(SERVICE_KEYS_MAX));
        }
        self.service_keys.extend(keys);
        Ok(added)
    }

    /// Adds the password or passwords of a file.
    pub fn add_passwords(&mut self, content: &[u8]) -> Result<(), KeyFileError> {
        let found = parse_passwords(text(content)?)?;
        if self.passwords.len() + found.len() > PASSWORDS_MAX {
            return Err(KeyFileError::TooMany(PASSWORDS_MAX));
        }
        self.passwords.extend(found);
        Ok(())
    }

    fn add(&mut self, session_id: u64, secrets: SessionSecrets) -> Result<(), KeyFileError> {
        let known = self.sessions.entry(session_id).or_default();
        if known.contains(&secrets) {
            return Ok(());
        }
        if self.count >= SESSIONS_MAX || known.len() >= KEYS_OF_SESSION_MAX {
            return Err(KeyFileError::TooMany(if known.len() >= KEYS_OF_SESSION_MAX {
                KEYS_OF_SESSION_MAX
            } else {
                SESSIONS_MAX
            }));
        }
        known.push(secrets);
        self.count += 1;
        Ok(())
    }

    pub fn session(&self, session_id: u64) -> &[SessionSecrets] {
        self.sessions.get(&session_id).map_or(&[], Vec::as_slice)
    }

    pub fn passwords(&self) -> &[UserPassword] {
        &self.passwords
    }

    pub fn service_keys(&self) -> &[ServiceKey] {
        &self.service_keys
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.passwords.is_empty() && self.service_keys.is_empty()
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyRing { sessions, passwords, service_keys, .. } = self;
        let counts = (sessions.len(), passwords.len(), service_keys.len());
        write!(f, "KeyRing({} sessions, {} passwords, {} service keys)", counts.0, counts.1, counts.2)
    }
}

/// Returns the text of a file, which Windows programs begin with a byte-order mark.
fn text(content: &[u8]) -> Result<&str, KeyFileError> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    std::str::from_utf8(content).map_err(|_| KeyFileError::NotText)
}

/// Parses hexadecimal bytes, with or without blanks, colons or dashes between them.
fn hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    let mut high = None;
    for byte in text.bytes() {
        match (digit(byte), high.take()) {
            (Some(value), None) => high = Some(value),
            (Some(value), Some(high)) => bytes.push(high << 4 | value),
            (None, None) if matches!(byte, b' ' | b'\t' | b':' | b'-') => {}
            _ => return None,
        }
    }
    high.is_none().then_some(bytes)
}

/// Session ids are in the byte order of the wire.
fn session_id(text: &str) -> Option<u64> {
    hex(text)?[..].try_into().ok().map(u64::from_le_bytes)
}

fn cipher_key(bytes: &[u8]) -> Option<CipherKey> {
    match bytes.len() {
        16 => bytes.try_into().ok().map(CipherKey::Bits128),
        32 => bytes.try_into().ok().map(CipherKey::Bits256),
        _ => None,
    }
}

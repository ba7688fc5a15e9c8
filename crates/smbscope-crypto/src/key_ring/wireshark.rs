//! Wireshark's table `smb2_seskey_list`: session id, session key, server-to-client key, client-to-server key, as
//! hexadecimal bytes in the order of the wire, separated by commas. Empty fields are unknown.

use super::{KeyFileError, SessionSecrets, cipher_key, hex, session_id};
use crate::{CipherKey, SessionKeys};
use std::fmt::Write;
use zeroize::Zeroizing;

/// Begins a line of Wireshark's preferences, or of the option `-o` of tshark.
const PREFERENCE: &str = "uat:smb2_seskey_list:";

/// Returns true if the first line with content has a session id in the first of two to four fields.
pub(super) fn looks_like(text: &str) -> bool {
    lines(text).next().is_some_and(|(_, line)| {
        let fields = fields(line);
        (2..=4).contains(&fields.len()) && session_id(fields[0]).is_some()
    })
}

pub(super) fn parse(text: &str) -> Result<Vec<(u64, SessionSecrets)>, KeyFileError> {
    lines(text)
        .map(|(line, entry)| session(entry).map_err(|expected| KeyFileError::Malformed { line, expected }))
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Splits a line. Wireshark puts text into quotation marks, but no bytes; other programs may.
fn fields(line: &str) -> Vec<&str> {
    let line = line.strip_prefix(PREFERENCE).unwrap_or(line);
    line.split(',').map(|field| field.trim().trim_matches('"')).collect()
}

fn session(line: &str) -> Result<(u64, SessionSecrets), &'static str> {
    let fields = fields(line);
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

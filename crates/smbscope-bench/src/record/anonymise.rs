//! Names of files as a keyed hash of theirs: equal names stay equal, directories stay as deep, and extensions stay, since
//! servers and virus scanners treat files by them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Extensions that are kept: longer ones may be names.
const EXTENSION_LONGEST: usize = 5;
/// Hexadecimal digits of a name: among a hundred thousand names, two are alike once in 14 million recordings.
const DIGITS: usize = 14;

/// What names are hashed with. Who has it can try names; it is made anew for each recording and kept nowhere.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Of these bytes, which nobody is to guess.
    pub fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// A path with other names, as deep.
    pub(super) fn path(&self, path: &str) -> String {
        path.split('\\').map(|name| self.name(name)).collect::<Vec<_>>().join("\\")
    }

    /// A pattern: one with wildcards keeps these and its extension alone.
    pub(super) fn pattern(&self, pattern: &str) -> String {
        let is_wildcard = |c: char| matches!(c, '*' | '?' | '<' | '>' | '"');
        if !pattern.contains(is_wildcard) {
            return self.name(pattern);
        }
        match pattern.rsplit_once('.') {
            Some((_, extension)) if is_kept(extension) => format!("*.{extension}"),
            _ => "*".to_owned(),
        }
    }

    fn name(&self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        let (stem, extension) = match name.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() && is_kept(extension) => (stem, Some(extension)),
            _ => (name, None),
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(stem.to_lowercase().as_bytes());
        let hash: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        match extension {
            Some(extension) => format!("{}.{extension}", &hash[..DIGITS]),
            None => hash[..DIGITS].to_owned(),
        }
    }
}

fn is_kept(extension: &str) -> bool {
    !extension.is_empty()
        && extension.len() <= EXTENSION_LONGEST
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_depth_extension_and_equality_and_nothing_else() {
        let key = Key::new([7; 32]);
        let path = key.path(r"Clients\Miller\offer Miller.docx");
        let parts: Vec<&str> = path.split('\\').collect();
        assert_eq!(parts.len(), 3);
        assert!(parts[2].ends_with(".docx") && !path.to_lowercase().contains("miller"), "{path}");
        assert_eq!(key.path(r"clients\MILLER"), parts[..2].join("\\"), "servers do not tell cases apart");
        assert_ne!(Key::new([8; 32]).path("clients"), parts[0], "another key, other names");
        assert_eq!(key.path(""), "");
    }

    #[test]
    fn patterns_keep_their_wildcards_and_single_names_are_names() {
        let key = Key::new([7; 32]);
        assert_eq!(key.pattern("*"), "*");
        assert_eq!(key.pattern("Miller*.doc"), "*.doc");
        assert_eq!(key.pattern("a.miller?"), "*");
        assert_eq!(key.pattern("Miller.doc"), key.path("miller.doc"));
    }
}

//! Pseudonyms: names and addresses replaced by a keyed hash. Equal names stay equal.
//!
//! [`PseudonymKey`] is for recordings, where names may change length. It preserves path depth and extensions, as
//! servers and virus scanners treat files by extension. [`Disguise`] is for captures, where names keep their length.

mod disguise;

pub use disguise::{Disguise, PseudonymKind, WILDCARDS};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;

/// Maximum length of preserved extensions; longer ones may be names.
const EXTENSION_LONGEST: usize = 5;
/// Hexadecimal digits in a pseudonym. With 100,000 names, one in 14 million recordings has a collision.
const DIGITS: usize = 14;

/// Key of the hash. Allows its owner to test guesses of names.
#[derive(Clone)]
pub struct PseudonymKey([u8; 32]);

impl fmt::Debug for PseudonymKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl PseudonymKey {
    pub fn new(bytes: [u8; 32]) -> PseudonymKey {
        PseudonymKey(bytes)
    }

    pub fn of_bytes(bytes: &[u8]) -> PseudonymKey {
        PseudonymKey(Sha256::digest(bytes).into())
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }

    pub fn path(&self, path: &str) -> String {
        path.split('\\').map(|name| self.name(name)).collect::<Vec<_>>().join("\\")
    }

    pub fn pattern(&self, pattern: &str) -> String {
        if !pattern.contains(WILDCARDS) {
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
        let digest = self.digest(&[stem.to_lowercase().as_bytes()]);
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
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
        let key = PseudonymKey::new([7; 32]);
        let path = key.path(r"Clients\Miller\offer Miller.docx");
        let parts: Vec<&str> = path.split('\\').collect();
        assert_eq!(parts.len(), 3);
        assert!(parts[2].ends_with(".docx") && !path.to_lowercase().contains("miller"), "{path}");
        assert_eq!(key.path(r"clients\MILLER"), parts[..2].join("\\"), "servers do not tell cases apart");
        assert_ne!(PseudonymKey::new([8; 32]).path("clients"), parts[0], "another key, other names");
        assert_eq!(key.path(""), "");
    }

    #[test]
    fn patterns_keep_their_wildcards_and_single_names_are_names() {
        let key = PseudonymKey::new([7; 32]);
        assert_eq!(key.pattern("*"), "*");
        assert_eq!(key.pattern("Miller*.doc"), "*.doc");
        assert_eq!(key.pattern("a.miller?"), "*");
        assert_eq!(key.pattern("Miller.doc"), key.path("miller.doc"));
    }
}

//! Names and addresses as a keyed hash of theirs: equal ones stay equal, and whoever lacks the key can't try names.
//!
//! A recording has names of any length. Directories stay as deep, and extensions stay, since servers and virus scanners
//! treat files by them. In a capture a name has to keep its length: [`Disguise`] makes those.

mod addresses;
mod fixed;

pub use fixed::{Disguise, PseudonymKind, WILDCARDS};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;

/// Extensions that are kept: longer ones may be names.
const EXTENSION_LONGEST: usize = 5;
/// Hexadecimal digits of a name: among a hundred thousand names, two are alike once in 14 million recordings.
const DIGITS: usize = 14;

/// What names are hashed with. Who has it can try names.
#[derive(Clone)]
pub struct PseudonymKey([u8; 32]);

impl fmt::Debug for PseudonymKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl PseudonymKey {
    /// Of these bytes, which nobody is to guess.
    pub fn new(bytes: [u8; 32]) -> PseudonymKey {
        PseudonymKey(bytes)
    }

    /// Of the bytes of a file, as many as there are.
    pub fn of_bytes(bytes: &[u8]) -> PseudonymKey {
        PseudonymKey(Sha256::digest(bytes).into())
    }

    /// The hash of some parts, which say together what is hashed.
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }

    /// A path with other names, as deep.
    pub fn path(&self, path: &str) -> String {
        path.split('\\').map(|name| self.name(name)).collect::<Vec<_>>().join("\\")
    }

    /// A pattern: one with wildcards keeps these and its extension alone.
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

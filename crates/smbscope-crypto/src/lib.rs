//! Message protection: keys, signatures and encryption (MS-SMB2 3.1.4, MS-CIFS 3.1.4.1).
//!
//! The primitives are RustCrypto's. Keyed state is prepared once per session, and no message needs an allocation.
//! Session keys (MS-SMB2 3.1.4.2, 3.2.5.3.3) come from SP 800-108 in counter mode with HMAC-SHA256. In SMB 3.1.1 they
//! depend on the pre-authentication integrity hash (3.2.5.2 and 3.2.5.3) over all messages before.

#![forbid(unsafe_code)]

pub mod kerberos;
pub mod key_ring;
pub mod ntlm;
mod sealing;
mod signing;
#[cfg(test)]
mod tests;

pub use sealing::{Cipher, Keystream, Sealer};
pub use signing::{Signer, SigningAlgorithm, Smb1Signer};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};
use std::fmt;
use std::hint::black_box;
use zeroize::Zeroize;

/// Compares authentication codes in constant time.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && black_box(difference) == 0
}

/// Label and context of each key before 3.1.1, both including their terminating zero.
mod smb3_0 {
    pub(super) const SIGNING: (&[u8], &[u8]) = (b"SMB2AESCMAC\0", b"SmbSign\0");
    pub(super) const ENCRYPTION: (&[u8], &[u8]) = (b"SMB2AESCCM\0", b"ServerIn \0");
    pub(super) const DECRYPTION: (&[u8], &[u8]) = (b"SMB2AESCCM\0", b"ServerOut\0");
}

/// Labels of 3.1.1. The context is the pre-authentication hash.
mod smb3_1_1 {
    pub(super) const SIGNING: &[u8] = b"SMBSigningKey\0";
    pub(super) const ENCRYPTION: &[u8] = b"SMBC2SCipherKey\0";
    pub(super) const DECRYPTION: &[u8] = b"SMBS2CCipherKey\0";
}

#[derive(Clone, PartialEq, Eq)]
pub struct SessionKeys {
    pub signing: [u8; 16],
    /// Session.EncryptionKey, for messages to the server.
    pub encryption: CipherKey,
    /// Session.DecryptionKey, for messages from the server.
    pub decryption: CipherKey,
}

impl SessionKeys {
    /// Keys of 2.0.2 and 2.1: the session key itself signs, and there is no encryption.
    pub fn smb2(session_key: &[u8]) -> SessionKeys {
        let signing = session_key_from(session_key);
        SessionKeys { signing, encryption: CipherKey::default(), decryption: CipherKey::default() }
    }

    /// Keys of 3.0 and 3.0.2, with AES-128-CCM as the only cipher.
    pub fn smb3_0(session_key: &[u8]) -> SessionKeys {
        let key = session_key_from(session_key);
        SessionKeys {
            signing: derive(&key, smb3_0::SIGNING.0, smb3_0::SIGNING.1),
            encryption: CipherKey::Bits128(derive(&key, smb3_0::ENCRYPTION.0, smb3_0::ENCRYPTION.1)),
            decryption: CipherKey::Bits128(derive(&key, smb3_0::DECRYPTION.0, smb3_0::DECRYPTION.1)),
        }
    }

    /// 256-bit ciphers use all of `full_session_key`, which with Kerberos may be longer than 16 bytes.
    pub fn smb3_1_1(full_session_key: &[u8], preauth: &PreauthHash, cipher: Option<Cipher>) -> SessionKeys {
        let key = session_key_from(full_session_key);
        let cipher_key = |label| match cipher {
            Some(Cipher::Aes256Ccm | Cipher::Aes256Gcm) => {
                let full = if full_session_key.len() < key.len() { &key } else { full_session_key };
                CipherKey::Bits256(derive(full, label, preauth.value()))
            }
            _ => CipherKey::Bits128(derive(&key, label, preauth.value())),
        };
        SessionKeys {
            signing: derive(&key, smb3_1_1::SIGNING, preauth.value()),
            encryption: cipher_key(smb3_1_1::ENCRYPTION),
            decryption: cipher_key(smb3_1_1::DECRYPTION),
        }
    }
}

impl Drop for SessionKeys {
    fn drop(&mut self) {
        self.signing.zeroize();
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKeys(secret)")
    }
}

#[derive(Clone, PartialEq, Eq)]
pub enum CipherKey {
    Bits128([u8; 16]),
    Bits256([u8; 32]),
}

impl CipherKey {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            CipherKey::Bits128(key) => key,
            CipherKey::Bits256(key) => key,
        }
    }
}

impl Drop for CipherKey {
    fn drop(&mut self) {
        match self {
            CipherKey::Bits128(key) => key.zeroize(),
            CipherKey::Bits256(key) => key.zeroize(),
        }
    }
}

impl Default for CipherKey {
    fn default() -> CipherKey {
        CipherKey::Bits128([0; 16])
    }
}

impl fmt::Debug for CipherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CipherKey(secret)")
    }
}

/// Session.SessionKey: the first 16 bytes of the authentication's key, zero-padded if it is shorter.
pub fn session_key_from(full_session_key: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    key.iter_mut().zip(full_session_key).for_each(|(to, from)| *to = *from);
    key
}

/// Computes one block of the key derivation function, which has 32 bytes and so covers every key length. Counter and
/// length are 32-bit big-endian numbers; label and context are separated by a zero.
fn derive<const LENGTH: usize>(key: &[u8], label: &[u8], context: &[u8]) -> [u8; LENGTH] {
    let bits = u32::try_from(8 * LENGTH).expect("keys have 16 or 32 bytes");
    let block: [u8; 32] = Hmac::<Sha256>::new_from_slice(key)
        .expect("HMAC takes keys of any length")
        .chain_update(1u32.to_be_bytes())
        .chain_update(label)
        .chain_update([0])
        .chain_update(context)
        .chain_update(bits.to_be_bytes())
        .finalize()
        .into_bytes()
        .into();
    *block.first_chunk().expect("keys have 16 or 32 bytes")
}

/// PreauthIntegrityHashValue of a connection, or of a session, which continues from a copy of the connection's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreauthHash([u8; 64]);

impl PreauthHash {
    pub fn new() -> PreauthHash {
        PreauthHash([0; 64])
    }

    /// Adds a message: NEGOTIATE both ways, then SESSION_SETUP both ways except for the response with STATUS_SUCCESS.
    pub fn update(&mut self, message: &[u8]) {
        self.0 = Sha512::new().chain_update(self.0).chain_update(message).finalize().into();
    }

    pub fn value(&self) -> &[u8; 64] {
        &self.0
    }
}

impl Default for PreauthHash {
    fn default() -> PreauthHash {
        PreauthHash::new()
    }
}

impl From<[u8; 64]> for PreauthHash {
    fn from(value: [u8; 64]) -> PreauthHash {
        PreauthHash(value)
    }
}

//! Decryption of the first bytes of a message without its tag (MS-SMB2 3.1.4.3).
//!
//! Both modes of SMB are counter modes, so any prefix of a message can be decrypted: one that is truncated, or one of
//! which only the headers are needed. Without the tag nothing proves that the result is right: callers check that it is
//! a plausible message.

use crate::{Cipher, CipherKey};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use std::fmt;

const BLOCK: usize = 16;

/// Cipher with its key. Its memory is cleared when it is dropped.
pub struct Keystream {
    cipher: Cipher,
    key: Box<ExpandedKey>,
}

#[expect(clippy::large_enum_variant, reason = "it is only used in a box")]
enum ExpandedKey {
    Bits128(Aes128),
    Bits256(Aes256),
}

impl Keystream {
    /// Expands the key. Returns `None` if it has the wrong length for the cipher.
    pub fn new(cipher: Cipher, key: &CipherKey) -> Option<Keystream> {
        let key = match (cipher, key) {
            (Cipher::Aes128Ccm | Cipher::Aes128Gcm, CipherKey::Bits128(key)) => {
                ExpandedKey::Bits128(Aes128::new(key.into()))
            }
            (Cipher::Aes256Ccm | Cipher::Aes256Gcm, CipherKey::Bits256(key)) => {
                ExpandedKey::Bits256(Aes256::new(key.into()))
            }
            _ => return None,
        };
        Some(Keystream { cipher, key: Box::new(key) })
    }

    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Decrypts (or encrypts) in place the bytes of a message that begin with its block number `block`.
    pub fn apply(&self, nonce: &[u8; 16], block: u32, bytes: &mut [u8]) {
        for (number, bytes) in (block..).zip(bytes.chunks_mut(BLOCK)) {
            let mut counter = self.counter(nonce, number).into();
            match &*self.key {
                ExpandedKey::Bits128(key) => key.encrypt_block(&mut counter),
                ExpandedKey::Bits256(key) => key.encrypt_block(&mut counter),
            }
            bytes.iter_mut().zip(counter).for_each(|(byte, key)| *byte ^= key);
        }
    }

    /// Returns the counter block of a block of the message. The tag uses the first counter.
    fn counter(&self, nonce: &[u8; 16], number: u32) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        match self.cipher {
            // RFC 3610 2.3: flags with the counter's length - 1, a nonce of 11 bytes, a counter from 1 on.
            Cipher::Aes128Ccm | Cipher::Aes256Ccm => {
                block[0] = 3;
                block[1..12].copy_from_slice(&nonce[..11]);
                block[12..].copy_from_slice(&number.wrapping_add(1).to_be_bytes());
            }
            // NIST SP 800-38D 7.1: a nonce of 12 bytes, a counter from 2 on.
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                block[..12].copy_from_slice(&nonce[..12]);
                block[12..].copy_from_slice(&number.wrapping_add(2).to_be_bytes());
            }
        }
        block
    }
}

impl fmt::Debug for Keystream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keystream({:?})", self.cipher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sealer;
    use smbscope_wire::smb2::TransformHeader;

    /// The expected message is what the AEAD of RustCrypto sealed.
    #[test]
    fn any_prefix_of_a_sealed_message_decrypts_with_each_cipher() {
        let message: Vec<u8> = (0..1_000u32).map(|i| (i * 7) as u8).collect();
        for cipher in [Cipher::Aes128Ccm, Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm] {
            let key = match cipher {
                Cipher::Aes128Ccm | Cipher::Aes128Gcm => CipherKey::Bits128([7; 16]),
                _ => CipherKey::Bits256([9; 32]),
            };
            let mut frame = Vec::new();
            let nonce = std::array::from_fn(|i| i as u8 + 1);
            Sealer::new(cipher, &key, &key).unwrap().seal_with(nonce, 5, &message, &mut frame);
            let keystream = Keystream::new(cipher, &key).unwrap();
            for length in [0, 1, 15, 16, 17, 64, 1_000] {
                let mut prefix = frame[TransformHeader::LENGTH..][..length].to_vec();
                keystream.apply(&nonce, 0, &mut prefix);
                assert_eq!(prefix, message[..length], "{cipher:?}, {length} bytes");
            }
            let mut behind = frame[TransformHeader::LENGTH + 32..].to_vec();
            keystream.apply(&nonce, 2, &mut behind);
            assert_eq!(behind, message[32..]);
        }
    }

    #[test]
    fn a_key_of_the_wrong_length_is_refused() {
        assert!(Keystream::new(Cipher::Aes256Gcm, &CipherKey::Bits128([0; 16])).is_none());
        assert!(Keystream::new(Cipher::Aes128Ccm, &CipherKey::Bits256([0; 32])).is_none());
    }
}

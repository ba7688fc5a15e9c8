//! Encryption of messages with AES-CCM and AES-GCM (MS-SMB2 3.1.4.3): [`Sealer`] encrypts and decrypts whole messages
//! with a TRANSFORM_HEADER (2.2.41), [`Keystream`] the first bytes of a message without its tag.
//!
//! Both modes of SMB are counter modes, so any prefix of a message can be decrypted: one that is truncated, or one of
//! which only the headers are needed. Without the tag nothing proves that the result is right: callers check that it is
//! a plausible message.

use crate::CipherKey;
use aes::cipher::BlockCipherEncrypt;
use aes::{Aes128, Aes256};
use aes_gcm::aead::consts::{U11, U16};
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, KeyInit};
use ccm::Ccm;
use serde::{Deserialize, Serialize};
use smbscope_wire::bytes::{array_at, u16_at, u32_at};
use smbscope_wire::smb2::{TRANSFORM_ID, TransformHeader};
use std::fmt;
use std::ops::Range;

/// Cipher IDs (MS-SMB2 2.2.3.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// 0x0001, the only one of 3.0 and 3.0.2.
    Aes128Ccm,
    Aes128Gcm,
    Aes256Ccm,
    Aes256Gcm,
}

impl Cipher {
    const IDS: [(u16, Cipher); 4] =
        [(1, Cipher::Aes128Ccm), (2, Cipher::Aes128Gcm), (3, Cipher::Aes256Ccm), (4, Cipher::Aes256Gcm)];

    pub fn from_id(id: u16) -> Option<Cipher> {
        Cipher::IDS.iter().find(|(known, _)| *known == id).map(|(_, cipher)| *cipher)
    }
}

mod field {
    use super::{Range, TransformHeader};

    pub(super) const SIGNATURE: Range<usize> = 4..20;
    pub(super) const NONCE: Range<usize> = 20..36;
    pub(super) const ORIGINAL_MESSAGE_SIZE: usize = 36;
    pub(super) const FLAGS: usize = 42;
    /// Additional authenticated data: the header after the signature.
    pub(super) const ASSOCIATED: Range<usize> = 20..TransformHeader::LENGTH;
}

/// Flags of 3.1.1 and EncryptionAlgorithm AES-128-CCM of 3.0 share the value 1.
const ENCRYPTED: u16 = 0x0001;

type Aes128Ccm = Ccm<Aes128, U16, U11>;
type Aes256Ccm = Ccm<Aes256, U16, U11>;

pub struct Sealer {
    encryption: Box<KeyedCipher>,
    decryption: Box<KeyedCipher>,
    /// Number of encrypted messages. It makes nonces unique per key.
    sealed: u64,
}

enum KeyedCipher {
    Aes128Ccm(Aes128Ccm),
    Aes128Gcm(Aes128Gcm),
    Aes256Ccm(Aes256Ccm),
    Aes256Gcm(Aes256Gcm),
}

impl Sealer {
    /// Prepares the keys. Returns `None` if a key has the wrong length for the cipher.
    pub fn new(cipher: Cipher, encryption_key: &CipherKey, decryption_key: &CipherKey) -> Option<Sealer> {
        Some(Sealer {
            encryption: Box::new(KeyedCipher::new(cipher, encryption_key)?),
            decryption: Box::new(KeyedCipher::new(cipher, decryption_key)?),
            sealed: 0,
        })
    }

    /// Returns the sealer of a further channel. Channels share keys, so the channel number makes their nonces distinct.
    pub fn of_channel(mut self, channel: u8) -> Sealer {
        self.sealed = u64::from(channel) << 56;
        self
    }

    /// Appends a TRANSFORM_HEADER and the encrypted message or compound, which must not be signed.
    pub fn seal(&mut self, session_id: u64, message: &[u8], out: &mut Vec<u8>) {
        self.sealed += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.sealed.to_le_bytes());
        self.seal_with(nonce, session_id, message, out);
    }

    /// Decrypts a frame with a TRANSFORM_HEADER in place. Returns `None` if it isn't one or was modified.
    pub fn open<'a>(&self, frame: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (header, message) = frame.split_at_mut_checked(TransformHeader::LENGTH)?;
        let is_whole = u32_at(header, field::ORIGINAL_MESSAGE_SIZE)? as usize == message.len();
        if !header.starts_with(&TRANSFORM_ID) || u16_at(header, field::FLAGS)? != ENCRYPTED || !is_whole {
            return None;
        }
        let nonce = array_at(header, field::NONCE.start)?;
        let signature = array_at(header, field::SIGNATURE.start)?;
        let associated = header.get(field::ASSOCIATED)?;
        self.decryption.decrypt(&nonce, associated, message, &signature).then_some(message)
    }

    /// Encrypts with the given nonce field of 16 bytes. CCM uses 11 of them, GCM 12.
    pub(crate) fn seal_with(&self, nonce: [u8; 16], session_id: u64, message: &[u8], out: &mut Vec<u8>) {
        let original_message_size = u32::try_from(message.len()).expect("a frame has less than 16 MiB");
        let start = out.len();
        out.extend_from_slice(&TRANSFORM_ID);
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&original_message_size.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&ENCRYPTED.to_le_bytes());
        out.extend_from_slice(&session_id.to_le_bytes());
        out.extend_from_slice(message);
        let (header, message) = out[start..].split_at_mut(TransformHeader::LENGTH);
        let signature = self.encryption.encrypt(&nonce, &header[field::ASSOCIATED], message);
        header[field::SIGNATURE].copy_from_slice(&signature);
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.encryption {
            KeyedCipher::Aes128Ccm(_) => "Sealer(AES-128-CCM)",
            KeyedCipher::Aes128Gcm(_) => "Sealer(AES-128-GCM)",
            KeyedCipher::Aes256Ccm(_) => "Sealer(AES-256-CCM)",
            KeyedCipher::Aes256Gcm(_) => "Sealer(AES-256-GCM)",
        })
    }
}

macro_rules! each {
    ($keyed:expr, $nonce:expr, ($cipher:ident, $used:ident) => $call:expr) => {
        match $keyed {
            KeyedCipher::Aes128Ccm($cipher) => each!(@nonce 11, $nonce, $used => $call),
            KeyedCipher::Aes128Gcm($cipher) => each!(@nonce 12, $nonce, $used => $call),
            KeyedCipher::Aes256Ccm($cipher) => each!(@nonce 11, $nonce, $used => $call),
            KeyedCipher::Aes256Gcm($cipher) => each!(@nonce 12, $nonce, $used => $call),
        }
    };
    (@nonce $length:literal, $nonce:expr, $used:ident => $call:expr) => {{
        let $used = $nonce.first_chunk::<$length>().expect("the field has 16 bytes").into();
        $call
    }};
}

impl KeyedCipher {
    fn new(cipher: Cipher, key: &CipherKey) -> Option<KeyedCipher> {
        match (cipher, key) {
            (Cipher::Aes128Ccm, CipherKey::Bits128(key)) => Some(KeyedCipher::Aes128Ccm(Ccm::new(key.into()))),
            (Cipher::Aes128Gcm, CipherKey::Bits128(key)) => Some(KeyedCipher::Aes128Gcm(Aes128Gcm::new(key.into()))),
            (Cipher::Aes256Ccm, CipherKey::Bits256(key)) => Some(KeyedCipher::Aes256Ccm(Ccm::new(key.into()))),
            (Cipher::Aes256Gcm, CipherKey::Bits256(key)) => Some(KeyedCipher::Aes256Gcm(Aes256Gcm::new(key.into()))),
            _ => None,
        }
    }

    fn encrypt(&self, nonce: &[u8; 16], associated: &[u8], message: &mut [u8]) -> [u8; 16] {
        each!(self, nonce, (cipher, nonce) => {
            cipher.encrypt_inout_detached(nonce, associated, InOutBuf::from(message))
        })
        .expect("a frame has less than 16 MiB, which every nonce length allows")
        .into()
    }

    fn decrypt(&self, nonce: &[u8; 16], associated: &[u8], message: &mut [u8], tag: &[u8; 16]) -> bool {
        each!(self, nonce, (cipher, nonce) => {
            cipher.decrypt_inout_detached(nonce, associated, InOutBuf::from(message), tag.into())
        })
        .is_ok()
    }
}

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
